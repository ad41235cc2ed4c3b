"""Sessions with the command line as text: what is typed after `$`, then stdout, `!` stderr lines and the exit code.

    $ agent-gate request unlock entity_id=lock.front
    ! Error: Denied (-32003): Denied by policy
    = 1

`= 0` may be left out. `…` in an expected line stands for anything. A line `# answer approve` lets a person
answer the next question while the command below it waits (`NAME=value` before it sets a variable); `< text` gives the command its standard input.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Step:
    command: str
    stdin: str = ""
    answer: str | None = None
    stdout: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    code: int = 0


def read(path: Path) -> list[Step]:
    steps: list[Step] = []
    answer: str | None = None
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# answer "):
            answer = line.removeprefix("# answer ")
        elif line.startswith("$ "):
            steps.append(Step(line[2:], answer=answer))
            answer = None
        elif line.startswith("< "):
            steps[-1].stdin += line[2:] + "\n"
        elif line.startswith("! "):
            steps[-1].stderr.append(line[2:])
        elif line.startswith("= "):
            steps[-1].code = int(line[2:])
        elif line and not line.startswith("#"):
            steps[-1].stdout.append(line)
    return steps


def same(expected: list[str], found: str) -> bool:
    """Line by line; `…` in an expected line matches any text."""
    lines = [line for line in found.splitlines() if line]
    patterns = [".*".join(map(re.escape, line.split("…"))) for line in expected]
    return len(lines) == len(patterns) and all(map(re.fullmatch, patterns, lines))
