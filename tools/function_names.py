"""What acts is a verb: fails where a function under `src/` that acts, and hands something back, is none.

    python tools/function_names.py

Whoever reads `await opened(order)` or `await tokens_of(agent)` cannot see what happens; `await open_stream(order)` and
`await read_tokens(agent)` say it. A callback named after what happened hands nothing back and is let through, as is a
pure conversion: whoever waits for nothing and changes nothing of `self` is taken for one. So is a question that is
answered with yes or no (`holds`). Of nouns a program sees plurals, and the words in `NOUNS`.
`SPOKEN` are names that others build against: ports of sources and plugins, tools of the browser, the client library.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
SPOKEN = frozenset({"refused", "pending", "picture", "screen_picture", "health_check", "tools"})
TOOLS = SOURCE / "agent_gate" / "sources" / "browser" / "tools"
"""Functions in here are called what agents call them, such as `tabs` and `back`."""
NOUNS = frozenset(
    [
        *(
            "account",
            "agent",
            "all",
            "approval",
            "back",
            "browser",
            "caller",
            "case",
            "certificate",
            "client",
        ),
        *(
            "code",
            "credential",
            "entry",
            "error",
            "event",
            "file",
            "first",
            "gateway",
            "health",
            "id",
            "identity",
        ),
        *(
            "key",
            "last",
            "latest",
            "line",
            "link",
            "login",
            "message",
            "middle",
            "name",
            "new",
            "next",
            "number",
        ),
        *(
            "object",
            "of",
            "on",
            "one",
            "origin",
            "over",
            "owner",
            "page",
            "peer",
            "people",
            "person",
            "picture",
        ),
        *(
            "question",
            "response",
            "row",
            "same",
            "screen",
            "secret",
            "server",
            "session",
            "source",
            "tail",
            "text",
        ),
        *("token", "tool", "url", "value", "world"),
    ]
)
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
NO_PLURALS = frozenset({"is", "was", "has", "alias"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_participle(word: str) -> bool:
    return word in IRREGULAR or (word.endswith(("ed", "ing")) and word not in NO_PARTICIPLES)


def is_noun(word: str) -> bool:
    return word in NOUNS or (
        word.endswith("s") and not word.endswith(("ss", "us")) and word not in NO_PLURALS
    )


def asks_yes_or_no(function: Function) -> bool:
    return isinstance(function.returns, ast.Name) and function.returns.id == "bool"


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


def find_nameless(text: str) -> Iterator[tuple[int, str]]:
    """The line and the name of each function that should be a verb."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, Function) or node.name.startswith("__") or is_decorated(node):
            continue
        name, waits = node.name.strip("_"), isinstance(node, ast.AsyncFunctionDef)
        first = name.split("_")[0]
        no_verb = is_participle(first) or (waits and is_noun(first) and not asks_yes_or_no(node))
        if no_verb and hands_back(node) and name not in SPOKEN and acts(node):
            yield node.lineno, node.name


def main() -> int:
    found = 0
    for file in sorted(SOURCE.rglob("*.py")):
        for line, name in find_nameless(file.read_text()) if TOOLS not in file.parents else ():
            found += 1
            where = f"{file.relative_to(SOURCE)}:{line}"
            sys.stdout.write(f"{where}: {name} acts, and its name is no verb. Give it one\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
