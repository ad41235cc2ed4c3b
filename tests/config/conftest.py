"""Files in a temporary folder, and the ways to load them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_gate.config.load import Loaded, load
from agent_gate.errors import ConfigError

TOKEN = "0123456789abcdef-token"
NAMES = ("AGENT_TOKEN", "PI_TOKEN", "CODER_TOKEN", "HA_TOKEN", "BOT_TOKEN", "GITHUB_TOKEN")
ENV = {name: f"{name.lower()}-{TOKEN}" for name in NAMES}

Write = Callable[..., Path]
Load = Callable[..., Loaded]
Refused = Callable[..., str]


@pytest.fixture
def env() -> dict[str, str]:
    """The variables that the example files use."""
    return dict(ENV)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder that is also the current one, so that errors name files without their folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(folder: Path) -> Write:
    def write(name: str, text: str) -> Path:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def load_text(write: Write) -> Load:
    """Load the given text as config.yaml; more files by keyword, with `__` for the dot."""

    def load_text(text: str, env: dict[str, str] | None = None, **files: str) -> Loaded:
        for name, content in files.items():
            write(name.replace("__", "."), content)
        return load(write("config.yaml", text), None, ENV if env is None else env)

    return load_text


@pytest.fixture
def refused(load_text: Load) -> Refused:
    """The message with which a configuration is refused."""

    def refused(text: str, env: dict[str, str] | None = None, **files: str) -> str:
        with pytest.raises(ConfigError) as caught:
            load_text(text, env, **files)
        return caught.value.message

    return refused
