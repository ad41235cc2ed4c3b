"""What acts is a verb: fails where a function under `src/` that acts, and hands something back, is a participle.

    python tools/function_names.py

Whoever reads `await opened(order)` cannot see what happens; `await open_stream(order)` says it. A callback named
after what happened hands nothing back and is let through, as is a pure conversion: whoever waits for nothing and
changes nothing of `self` is taken for one.
`SPOKEN` are names that others build against: what a source is told after a refusal, and a call of the client library.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
SPOKEN = frozenset({"refused", "pending"})
IRREGULAR = frozenset(
    [
        "begun",
        "bound",
        "built",
        "caught",
        "chosen",
        "done",
        "drawn",
        "found",
        "given",
        "gone",
        "held",
        "heard",
        "hidden",
        "hung",
        "kept",
        "known",
        "left",
        "lost",
        "made",
        "meant",
        "said",
        "seen",
        "sent",
        "shown",
        "spoken",
        "taken",
        "told",
        "withdrawn",
        "written",
    ]
)
NO_PARTICIPLES = frozenset(
    {"bring", "embed", "feed", "heed", "mapping", "need", "ping", "ring", "seed", "shed", "spring", "string"}
)


Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_participle(word: str) -> bool:
    return word in IRREGULAR or (word.endswith(("ed", "ing")) and word not in NO_PARTICIPLES)


def hands_back(function: Function) -> bool:
    return not (isinstance(function.returns, ast.Constant) and function.returns.value is None)


def is_decorated(function: Function) -> bool:
    """Whether it is used as something else than a function, such as a context manager."""
    return bool(function.decorator_list)


def acts(function: Function) -> bool:
    """Whether it waits for something, or sets something of its own object."""
    return isinstance(function, ast.AsyncFunctionDef) or any(map(sets_own, statements(function)))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """What is in a function, without the functions in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from statements(child)


def sets_own(node: ast.AST) -> bool:
    if not isinstance(node, ast.Attribute | ast.Subscript) or isinstance(node.ctx, ast.Load):
        return False
    root: ast.expr = node
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    return isinstance(root, ast.Name) and root.id == "self"


def find_participles(text: str) -> Iterator[tuple[int, str]]:
    """The line and the name of each function that should be a verb."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Function) and hands_back(node) and not is_decorated(node):
            name = node.name.strip("_")
            named = is_participle(name.split("_")[0]) and not node.name.startswith("__")
            if named and name not in SPOKEN and acts(node):
                yield node.lineno, node.name


def main() -> int:
    found = 0
    for file in sorted(SOURCE.rglob("*.py")):
        for line, name in find_participles(file.read_text()):
            found += 1
            where = f"{file.relative_to(SOURCE)}:{line}"
            sys.stdout.write(f"{where}: {name} acts and is named by a participle. Give it a verb\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
