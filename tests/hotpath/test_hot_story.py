"""The way of one allowed call stays as short as it is."""

from tests.hotpath.story import measure

MOST_FILES, MOST_CHANGES = 41, 32


def test_an_allowed_call_passes_few_files_and_changes_folders_seldom() -> None:
    story = measure()
    assert len(story.files) <= MOST_FILES
    assert story.changes <= MOST_CHANGES
