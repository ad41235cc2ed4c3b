"""The fuzzer itself: it finds what is there to find, makes it small, and keeps it."""

from pathlib import Path

import pytest
from tests.fuzz import fuzzing
from tests.fuzz.fuzzing import FindingError, Target, repeat, search, smaller


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(fuzzing, "CORPUS", tmp_path / "corpus")
    monkeypatch.setattr(fuzzing, "GROWN", tmp_path / "grown")
    (tmp_path / "corpus" / "t").mkdir(parents=True)
    (tmp_path / "corpus" / "t" / "seed").write_bytes(b"GET /abc")
    return tmp_path


def breaks_on_nul(data: bytes) -> None:
    if b"\0" in data:
        raise ValueError("NUL")


def test_a_finding_is_made_small_and_begins_the_next_run(folders: Path) -> None:
    target = Target("t", breaks_on_nul)
    with pytest.raises(FindingError, match="t breaks on"):
        search(target, 20)
    (kept,) = (folders / "corpus" / "t").glob("finding-*")
    assert kept.read_bytes() == b"\0"
    with pytest.raises(FindingError):
        repeat(target, 0)


def test_an_input_that_takes_a_new_step_is_kept_for_later_runs(folders: Path) -> None:
    from agent_gate.errors import InvalidArgs
    from agent_gate.net.http import parse_query

    def run(data: bytes) -> None:
        try:
            parse_query(data.decode("latin-1"))
        except InvalidArgs:
            pass

    search(Target("t", run, words=(b"%", b"&a=1&a=2", b"%ff")), 1)
    assert list((folders / "grown" / "t").iterdir())


def test_repeating_tries_the_same_inputs_each_time_and_keeps_none(folders: Path) -> None:
    tried: list[list[bytes]] = []
    for _ in range(2):
        inputs: list[bytes] = []
        assert repeat(Target("t", inputs.append), 50) == 51
        tried.append(inputs)
    assert tried[0] == tried[1]
    assert not (folders / "grown").exists()


def test_making_smaller_leaves_only_what_is_needed() -> None:
    assert smaller(b"a" * 500 + b"X" + b"b" * 500 + b"Y", lambda d: b"X" in d and b"Y" in d) == b"XY"
