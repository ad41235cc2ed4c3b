"""`serve --stdio` with something else than pipes: files, and nothing at all."""

import json
import subprocess
from pathlib import Path

import pytest
from tests import nursery
from tests.gateway import COMMAND, TOKEN
from tests.waiting import PATIENCE

ASKED = b"""{"jsonrpc": "2.0", "id": 1, "method": "ping"}
{"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": {"uri": "no:where"}}
"""


@pytest.fixture
def argv(tmp_path: Path) -> list[str]:
    config = {"gateway": {"port": 0}, "admin": {"port": 0}, "agent": {"token": TOKEN}}
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    (tmp_path / "asked").write_bytes(ASKED)
    return [COMMAND, "serve", "--config", "config.yaml", "--stdio"]


@pytest.mark.parametrize("given", ["asked", "/dev/null"])
@pytest.mark.parametrize("taken", ["answered", "/dev/null"])
def test_files_and_nothing_are_served_to_their_end(
    tmp_path: Path, argv: list[str], given: str, taken: str
) -> None:
    with (tmp_path / given).open("rb") as source, (tmp_path / taken).open("wb") as sink:
        ended = nursery.run(
            argv,
            cwd=tmp_path,
            stdin=source,
            stdout=sink,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
            check=False,
        )
    assert (ended.returncode, b"Traceback" in ended.stderr) == (0, False), ended.stderr
    if (given, taken) == ("asked", "answered"):
        answers = [json.loads(line) for line in (tmp_path / "answered").read_bytes().splitlines()]
        assert sorted(answer["id"] for answer in answers) == [1, 2]


def test_a_pipe_on_one_side_and_a_file_on_the_other_go_together(tmp_path: Path, argv: list[str]) -> None:
    with (tmp_path / "asked").open("rb") as source:
        ended = nursery.run(
            argv, cwd=tmp_path, stdin=source, capture_output=True, timeout=PATIENCE, check=False
        )
    assert sorted(json.loads(line)["id"] for line in ended.stdout.splitlines()) == [1, 2], ended.stderr
