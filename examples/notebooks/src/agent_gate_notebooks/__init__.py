"""A kind of source from a package of its own: folders of notes, below the key `notebooks:` of config.yaml."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Annotated, Self

import msgspec

from agent_gate.config.kinds import section
from agent_gate.config.settings import Settings
from agent_gate.config.shape import GIVEN, AtLeast
from agent_gate.core.call import Result
from agent_gate.core.ids import fold_namespace
from agent_gate.core.ports import Job, Plan
from agent_gate.core.tool import Definition
from agent_gate.core.traits import Traits
from agent_gate.errors import DependencyUnavailable, UpstreamError
from agent_gate.sources.toolbox import Toolbox

READS = Traits(read_only=True, trusted=True)
NAME = {"type": "string", "pattern": "^[a-z0-9-]+$"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookSettings:
    """A folder of notes."""

    name: Annotated[str, "The key under `notebooks`, which is the namespace.", GIVEN]
    folder: Annotated[Path, "Where the notes are, each a file that ends in .md."]
    most: Annotated[int, "How many are listed at most.", AtLeast(1)] = 100
    where: Annotated[str, "File and line of this entry.", GIVEN] = field(default="", compare=False)


NOTEBOOKS = section("notebooks", NotebookSettings, "Folders of notes; each key is a namespace.")


class NotebookSource:
    """Lists the notes of one folder and reads them."""

    kind = "notebooks"
    unwell: str | None = None
    about, watched, context = "Notes in a folder", False, None

    def __init__(self, settings: NotebookSettings) -> None:
        self.settings = settings
        self.key, self.namespace, self.title = settings.name, fold_namespace(settings.name), settings.name

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def connect(self) -> Sequence[Definition]:
        if not self.settings.folder.is_dir():
            raise DependencyUnavailable(f"The folder {self.settings.folder} is not there")
        one = {"type": "object", "properties": {"note": NAME}, "required": ["note"]}
        return [
            Definition(name="list_notes", description="Names of all notes", traits=READS),
            Definition(name="read_note", description="The text of a note", input_schema=one, traits=READS),
        ]

    async def watch(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def answer(self, job: Job) -> Result:
        if job.case.tool.upstream == "list_notes":
            names = sorted(file.stem for file in self.settings.folder.glob("*.md"))
            return Result(msgspec.json.encode(names[: self.settings.most]))
        file = self.settings.folder / f"{job.arguments['note']}.md"
        if not file.is_file():
            raise UpstreamError("There is no such note")
        return Result(msgspec.json.encode(file.read_text()))


class NotebookKind:
    name = "notebooks"
    section = NOTEBOOKS

    def make(self, settings: Settings, _toolbox: Toolbox) -> list[Plan]:
        return [Plan(source=NotebookSource(one), settings=one) for one in NOTEBOOKS.of(settings).values()]


KIND = NotebookKind()
