"""A copy of the program to add something to, with the files named that were touched for it."""

import shutil
import tomllib
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]


class ProgramCopy:
    """`env` makes the installed command run the copy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.touched: list[str] = []
        # What is compiled already comes along, since compiling the whole program costs more than the test.
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.pyc.*"))
        shutil.copytree(ROOT / "ui", folder / "ui")
        shutil.copy(ROOT / "pyproject.toml", folder)
        self.env = {"PYTHONPATH": str(folder / "src")}

    def write(self, path: str, text: str) -> None:
        assert not (self.folder / path).exists()
        (self.folder / path).parent.mkdir(exist_ok=True)
        (self.folder / path).write_text(text)
        self.touched.append(path)

    def install(self) -> None:
        """Make the entry points known that its pyproject.toml has by now, as an installation does."""
        project = tomllib.loads((self.folder / "pyproject.toml").read_text())["project"]
        about = self.folder / "src" / "agent_gate-0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: agent-gate\nVersion: {version('agent-gate')}\n"
        )
        groups = project["entry-points"].items()
        lines = [
            line for group, points in groups for line in (f"[{group}]", *map(" = ".join, points.items()))
        ]
        (about / "entry_points.txt").write_text("\n".join(lines))

    def insert(self, path: str, after: str, line: str) -> None:
        """One more line, or the beginning of one, behind the text `after`, which stands there once."""
        text = (self.folder / path).read_text()
        assert text.count(after) == 1, f"{path} has {after!r} {text.count(after)} times"
        (self.folder / path).write_text(text.replace(after, f"{after}{line}"))
        if path not in self.touched:
            self.touched.append(path)


def named_in_architecture(kind: str) -> list[str]:
    """The files that the table of ARCHITECTURE.md names for an addition of this kind."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    [row] = [line for line in text.splitlines() if line.startswith(f"| {kind} |")]
    return row.split("`")[1::2]
