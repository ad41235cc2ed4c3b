"""A class name means one thing in the whole program: fails where two files under `src/` define the same.

    python tools/class_names.py

`STANDING` are those that wait to be renamed. There are none, and it only shrinks.
"""

import ast
import sys
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
STANDING: frozenset[str] = frozenset()


def defined() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = defaultdict(list)
    for file in sorted(SOURCE.rglob("*.py")):
        names = {
            node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ClassDef)
        }
        for name in names:
            found[name].append(file.relative_to(SOURCE))
    return found


def main() -> int:
    shared = {name: files for name, files in defined().items() if len(files) > 1}
    for name in sorted(shared.keys() - STANDING):
        files = ", ".join(map(str, shared[name]))
        sys.stdout.write(f"The class name {name} is given twice: {files}. Rename one of them\n")
    for name in sorted(STANDING - shared.keys()):
        sys.stdout.write(f"{name} is unique now: take it out of STANDING in tools/class_names.py\n")
    return 1 if shared.keys() ^ STANDING else 0


if __name__ == "__main__":
    sys.exit(main())
