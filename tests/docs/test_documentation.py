"""What the documents say is what the program does: links, commands, codes, and nothing that does not belong."""

import re
import subprocess
from pathlib import Path

import pytest

from agent_gate.cli.main import GROUPS, installed
from agent_gate.errors import GatewayError, leaves
from agent_gate.observe.failpoint import NAMES

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def tracked():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    broken = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    assert broken == []


def test_every_command_is_described():
    described = (ROOT / "docs" / "cli.md").read_text()
    names = [name for group in GROUPS.values() for name in group]
    assert [name for name in names if not installed(name)] == []
    assert [name for name in names if f"agent-gate {name}" not in described] == []


def test_every_command_that_a_page_or_a_message_names_exists():
    known = {name for group in GROUPS.values() for name in group}
    named = re.compile(r"`(?:\$ )?agent-gate ([a-z][a-z-]*)")
    for path in [*PAGES, *(ROOT / "src").rglob("*.py")]:
        assert [name for name in named.findall(path.read_text()) if name not in known] == [], path


def test_every_error_code_is_described_with_its_numbers():
    described = (ROOT / "docs" / "protocol.md").read_text()
    for cls in leaves():
        if cls is GatewayError or cls.code in (
            "UNREACHABLE",
            "CONFIG_INVALID",
            "CATALOG_INVALID",
        ):
            continue
        rows = [line for line in described.splitlines() if f"`{cls.code}`" in line]
        assert any(str(cls.rpc) in row and str(cls.status) in row and f"{cls.exit}" in row for row in rows), (
            cls.code
        )


def test_the_readme_names_both_commands_and_every_surface():
    readme = (ROOT / "README.md").read_text()
    for word in (
        "make run",
        "make test",
        "/mcp",
        "/ws",
        "/openapi.json",
        "/runtime/tools.ts",
        "agent-gate request",
    ):
        assert word in readme


def test_every_folder_of_the_program_is_on_the_map():
    described = (ROOT / "ARCHITECTURE.md").read_text()
    folders = [
        path.name for path in (ROOT / "src" / "agent_gate").iterdir() if (path / "__init__.py").exists()
    ]
    assert [name for name in folders if f"`{name}/`" not in described] == []


def test_no_two_decisions_have_one_number():
    numbers = sorted(int(path.name[:4]) for path in (ROOT / "docs" / "decisions").glob("*.md"))
    assert numbers == sorted(set(numbers))


def test_the_lock_names_no_index_and_pins_everything():
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text()
        assert "://" not in text
        assert "--index-url" not in text
        assert "--hash=sha256:" in text


def test_no_file_names_a_registry_or_leaves_work_for_later():
    hosts = re.compile(r"pypi\.org|pythonhosted|registry\.npmjs|deb\.debian\.org", re.IGNORECASE)
    later = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    for path in tracked():
        if path == Path(__file__) or path.suffix in {".png", ".tiktoken", ".lock"}:
            continue
        text = path.read_text(errors="replace")
        assert not hosts.search(text), path
        assert not (path.suffix == ".py" and later.search(text)), path


def test_failpoints_are_all_reached_somewhere():
    source = "\n".join(
        path.read_text() for path in (ROOT / "src").rglob("*.py") if path.name != "failpoint.py"
    )
    assert [name for name in NAMES if f'"{name}"' not in source] == []
