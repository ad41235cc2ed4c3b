"""The way of one allowed call stays as short as it is."""

from pathlib import Path

from tests.hotpath.story import one_call

MOST_FILES, MOST_CHANGES = 41, 32


async def test_an_allowed_call_passes_few_files_and_changes_folders_seldom(tmp_path: Path) -> None:
    story = await one_call(tmp_path)
    assert len(story.files) <= MOST_FILES
    assert story.changes <= MOST_CHANGES
