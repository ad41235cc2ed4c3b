"""Small secret files that are made once: the keys of the gateway, and the token of its first agent."""

import errno
import os
from pathlib import Path

import pytest

from agent_gate.access.tokens import ensure_token
from agent_gate.audit import ensure_key
from agent_gate.errors import ConfigError

MAKERS = [ensure_key, ensure_token]


@pytest.mark.parametrize("ensure", MAKERS)
def test_a_full_disk_leaves_nothing_behind_and_the_next_start_makes_it(ensure, tmp_path, monkeypatch):
    def full(_file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "secret"
    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        with pytest.raises(ConfigError, match="No space left on device"):
            ensure(path)
    assert list(tmp_path.iterdir()) == []
    assert ensure(path) == ensure(path)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("ensure", MAKERS)
def test_what_a_crash_left_of_an_earlier_try_is_in_nobodys_way(ensure, tmp_path):
    (tmp_path / f".secret.{os.getpid()}").touch()
    assert ensure(tmp_path / "secret")


@pytest.mark.parametrize("ensure", MAKERS)
def test_a_planted_link_is_not_followed(ensure, tmp_path):
    path, elsewhere = tmp_path / "secret", tmp_path / "elsewhere"
    path.symlink_to(elsewhere)
    with pytest.raises(ConfigError, match="cannot be read or made"):
        ensure(path)
    assert not elsewhere.exists()


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe"])
def test_a_file_without_a_token_lets_nobody_in(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "agent.token"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="holds no token"):
        ensure_token(path)
