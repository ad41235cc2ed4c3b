"""A kind of source in a package of its own, installed as anybody would, with its own key in config.yaml."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gateway import TOKEN, Gateway

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "notebooks"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package was installed to."""
    target = tmp_path_factory.mktemp("installed")
    source = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("package") / "notebooks")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--target", target, source], check=True)
    return target


@pytest.fixture(scope="module")
def gateway(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("example") / "notebooks")
    config = folder / "config.yaml"
    config.write_text(f"gateway: {{port: 0}}\nadmin: {{port: 0}}\n{config.read_text()}")
    gateway = Gateway(folder, "--insecure", env={"AGENT_TOKEN": TOKEN, "PYTHONPATH": str(installed)})
    try:
        yield gateway.start()
    finally:
        gateway.stop()


def run(installed: Path, folder: Path, *arguments: str) -> tuple[int, str]:
    command = Path(sys.executable).parent / "agent-gate"
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(installed), "AGENT_TOKEN": TOKEN}
    ended = subprocess.run([command, *arguments], cwd=folder, env=env, capture_output=True, text=True)
    return ended.returncode, ended.stdout + ended.stderr


def test_its_tools_are_called_like_any_others(gateway: Gateway) -> None:
    assert gateway.call("kitchen__list_notes").json["data"] == ["pancakes"]
    assert gateway.call("kitchen__read_note", {"note": "pancakes"}).json["data"] == "Two eggs, flour, milk.\n"
    assert gateway.call("kitchen__read_note", {"note": "../x"}).status == 400


def test_a_mistake_below_its_key_has_file_line_and_column(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("notebooks:\n  kitchen:\n    foldr: notes\n")
    code, said = run(installed, tmp_path, "check")
    assert code
    assert 'config.yaml:3:5: notebooks.kitchen.foldr: unknown key, did you mean "folder"?' in said


def test_two_kinds_cannot_have_one_namespace(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "notebooks:\n  kitchen: {folder: .}\nservices:\n  Kitchen: {url: 'http://127.0.0.1'}\n"
    )
    code, said = run(installed, tmp_path, "check")
    assert code
    assert "are the same namespace" in said


def test_editors_know_its_key(installed: Path, tmp_path: Path) -> None:
    code, said = run(installed, tmp_path, "schema", "config")
    assert not code
    schema = json.loads(said)
    assert schema["properties"]["notebooks"]["description"] == "Folders of notes; each key is a namespace."
    assert schema["$defs"]["NotebookSettings"]["properties"].keys() == {"folder", "most"}


def test_without_the_package_its_key_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("notebooks: {}\n")
    code, said = run(tmp_path, tmp_path, "check")
    assert code
    assert "config.yaml:1:1: notebooks: unknown key" in said
