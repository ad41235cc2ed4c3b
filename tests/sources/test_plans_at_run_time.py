"""A kind of source in a package of its own that brings sources, and takes them away, while the gateway runs."""

from pathlib import Path

import pytest
from tests.gateway import TOKEN, running
from tests.waiting import wait_until

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "notebooks" / "src"
KIND = """
import asyncio
from pathlib import Path

from agent_gate_notebooks import NOTEBOOKS, NotebookSettings, NotebookSource
from agent_gate.config.kinds import section
from agent_gate.core.ports import Plan

HALLS = section("halls", NotebookSettings, "Folders of notebooks.")


class Hall(NotebookSource):
    kind = "halls"

    def __init__(self, settings, plans):
        super().__init__(settings)
        self.plans, self.there = plans, set()

    async def connect(self):
        return []

    async def watch(self):
        while True:
            found = {folder.name for folder in self.settings.folder.iterdir()}
            for name in sorted(found - self.there):
                one = NotebookSettings(name=name, folder=self.settings.folder / name)
                await self.plans.add(Plan(source=NotebookSource(one), settings=one))
            for name in self.there - found:
                await self.plans.remove(name)
            self.there = found
            await asyncio.sleep(0.02)


class Halls:
    name = "halls"
    section = HALLS

    def make(self, settings, toolbox):
        return [Plan(source=Hall(one, toolbox.plans), settings=one) for one in HALLS.of(settings).values()]


KIND = Halls()
"""
CONFIG = f"""
gateway: {{port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agents: {{a: {{token: {TOKEN}}}}}
permissions: permissions.yaml
halls: {{hall: {{folder: hall}}}}
"""
ALLOW = "defaults: [{pattern: '*', action: allow}]\nrules: []\n"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Where the kind stands, with what an installation writes about it."""
    folder = tmp_path / "installed"
    about = folder / "halls-1.dist-info"
    about.mkdir(parents=True)
    (folder / "halls.py").write_text(KIND)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: halls\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[agent_gate.sources]\nhalls = halls:KIND\n")
    return folder


def test_a_kind_adds_sources_and_removes_them_while_the_gateway_runs(installed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "gate"
    note = folder / "hall/kitchen/pancakes.md"
    (folder / "hall").mkdir(parents=True)
    files = {"config.yaml": CONFIG, "permissions.yaml": ALLOW}
    env = {"PYTHONPATH": f"{installed}:{EXAMPLE}"}
    with running(folder, files, "--insecure", env=env) as gateway:
        assert gateway.call("kitchen__list_notes").status == 404
        note.parent.mkdir()
        note.write_text("Two eggs.")
        wait_until(lambda: gateway.call("kitchen__list_notes").status == 200, "the new source")
        gateway.admin.request("POST", "/api/reload", {})
        assert gateway.call("kitchen__read_note", {"note": "pancakes"}).json["data"] == "Two eggs."
        note.unlink()
        note.parent.rmdir()
        wait_until(lambda: gateway.call("kitchen__list_notes").status == 404, "the source's end")
