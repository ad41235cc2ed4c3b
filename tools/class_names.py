"""The name of a type means one thing in the whole program: fails where two files under `src/` define the same.

    python tools/class_names.py

A type is a class, or a name that stands for one: `Key = tuple[str, str]`. Constants are written in capitals.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
TYPE = re.compile(r"[A-Z]\w*[a-z]\w*")


def find_types(text: str) -> Iterator[str]:
    """The names of the types that a file defines."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name) and TYPE.fullmatch(target.id):
                    yield target.id


def find_shared() -> dict[str, list[Path]]:
    """The names that more than one file defines."""
    found: dict[str, list[Path]] = defaultdict(list)
    for file in sorted(SOURCE.rglob("*.py")):
        for name in set(find_types(file.read_text())):
            found[name].append(file.relative_to(SOURCE))
    return {name: files for name, files in found.items() if len(files) > 1}


def main() -> int:
    shared = find_shared()
    for name in sorted(shared):
        files = ", ".join(map(str, shared[name]))
        sys.stdout.write(f"The type name {name} is given twice: {files}. Rename one of them\n")
    return 1 if shared else 0


if __name__ == "__main__":
    sys.exit(main())
