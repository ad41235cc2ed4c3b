"""A channel is added where ARCHITECTURE.md says, and nowhere else; then it asks people and is known to the files."""

import json
import subprocess
from functools import partial

import pytest
from tests.gateway import COMMAND, TOKEN, Api, running
from tests.shape.program_copy import ProgramCopy, named_in_architecture
from tests.waiting import wait_until

PAPER = '''
"""The paper channel: each question on a sheet of its own in a folder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from agent_gate.approval.channels.desk import Desk
from agent_gate.approval.channels.kind import ChannelKind, ChannelSettings, Names, PersonKey
from agent_gate.core.approval import Approval
from agent_gate.core.notes import GIVEN, Filled


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperSettings(ChannelSettings):
    """Sheets of paper in a folder."""

    folder: Annotated[Path, "Where the sheets are put."]
    readers: Annotated[tuple[str, ...], "Who reads them.", Filled("so nobody could answer")]
    name: Annotated[str, "Name in records and logs."] = "paper"
    type: Annotated[str, "Kind of channel.", GIVEN] = "paper"


class Paper:
    def __init__(self, settings: PaperSettings, desk: Desk, names: Names) -> None:
        self.name, self._settings, self._desk, self._names = settings.name, settings, desk, names

    async def ask(self, approval: Approval) -> str:
        sheet = self._settings.folder / approval.id
        readers = [self._names.get(reader, reader) for reader in self._settings.readers]
        sheet.write_text(f"{self._desk.card(approval).signature} for {readers}")
        return str(sheet)

    async def show_end(self, approval: Approval, message: str) -> None:
        Path(message).write_text(approval.state.value)

    async def run(self) -> None:
        pass


PAPER = ChannelKind(
    settings=PaperSettings,
    make=Paper,
    people=lambda settings: settings.readers,
    person_key=PersonKey(str, "Initials on a sheet."),
)
'''
CONFIG = f"""
gateway: {{port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agent: {{token: {TOKEN}}}
people: {{anna: {{paper: AK}}}}
channels: [{{type: paper, folder: ., readers: [AK, BB]}}]
"""
SERVICE = "services: {kitchen: {url: '%s', tools: {boil: {request: {method: GET, path: /boil}}}}}\n"


@pytest.fixture
def program(tmp_path):
    program = ProgramCopy(tmp_path / "program")
    program.write("src/agent_gate/approval/channels/paper.py", PAPER)
    registry = "src/agent_gate/approval/channels/registry.py"
    program.insert(registry, "CHANNELS: Mapping[str, ChannelKind[Any]] = {\n", '    "paper": PAPER,\n')
    program.insert(
        registry,
        "from agent_gate.approval.channels.kind import ChannelKind\n",
        "from agent_gate.approval.channels.paper import PAPER\n",
    )
    return program


@pytest.fixture
def run(program, tmp_path):
    env = {"PATH": "/usr/bin", **program.env}
    return partial(subprocess.run, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)


def test_a_channel_is_a_file_and_a_line_and_asks_people(program, tmp_path):
    own, registry = named_in_architecture("an approval channel")
    assert program.touched == [f"src/agent_gate/{own}".replace("*", "paper"), f"src/agent_gate/{registry}"]
    with Api() as api:
        files = {"config.yaml": CONFIG + SERVICE % api.url}
        with running(tmp_path, files, "--insecure", env=program.env) as gateway:
            assert gateway.call("boil", wait=0).status == 202
            [asked] = gateway.admin.get("/api/approvals")
            sheet = tmp_path / asked["id"]
            wait_until(
                lambda: sheet.exists() and sheet.read_text() == "boil for ['anna', 'BB']", "the question"
            )
            gateway.answer("deny")
            wait_until(lambda: sheet.read_text() == "denied", "its end")


def test_a_channel_of_ones_own_is_in_the_schema_and_its_mistakes_have_their_place(run, tmp_path):
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "permissions.yaml").write_text("rules: [{pattern: '*', action: ask, approvers: [BB]}]\n")
    assert "can be answered by nobody" not in run([COMMAND, "check"]).stdout
    (tmp_path / "config.yaml").write_text(CONFIG.replace("[AK, BB]", "[]"))
    mistake = "config.yaml:6:46: channels[0].readers: is empty, so nobody could answer"
    assert mistake in run([COMMAND, "check"]).stdout
    schema = json.loads(run([COMMAND, "schema", "config"]).stdout)["$defs"]
    assert schema["Person"]["properties"]["paper"]["description"] == "Initials on a sheet."
    assert "paper" in schema["Channel"]["properties"]["type"]["enum"]
