"""`${VAR}`, `${VAR:-default}` and `${env:VAR}` in text values of a node tree, filled from the environment.

Also what editors write: `${input:some-key}` is the variable SOME_KEY, `${workspaceFolder}` and `${userHome}` are folders.

Runs after parsing, so no value can become YAML; fills values, never keys; fills once, so no value is expanded.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from agent_gate.config.files.nodes import Mark, Node, fail, join
from agent_gate.core.references import read_reference

VARIABLE = re.compile(r"\$\{([^}]*)\}")
SHORTEST_SECRET = 4
ORIGIN = re.compile(
    r"https?://(?:[A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\])(?::[0-9]+)?/?"
    r"|(?:localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}"
)
"""A bare address, which an operator has to see; where a setting is a secret, even this is one. A name with a number behind
it, without `https://`, may as well be a login."""
FORM = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
INPUT = re.compile(r"input:(.+)")


def variable(text: str) -> str:
    """Any text as the name of an environment variable."""
    name = re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_") or "SECRET"
    return f"_{name}" if name[0].isdigit() else name


def folder(name: str, mark: Mark) -> str | None:
    """The folder that an editor calls `name`: a workspace is where its file stands, or where `.vscode` and the like do."""
    if name == "userHome":
        return str(Path.home())
    if name != "workspaceFolder":
        return None
    here = Path(mark.file).absolute().parent
    return str(here.parent if here.name.startswith(".") else here)


class Variables:
    """The environment, and every value taken from it, which is secret material from then on."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self.secrets: set[str] = set()
        self._unset: dict[str, tuple[Mark, str]] = {}

    def fill(self, node: Node, path: str = "") -> Node:
        """`node` with its variables filled. In a block that is switched off an unset one is empty instead."""
        self._unset.clear()
        filled = self._fill(node, path, off=False)
        if self._unset:
            (name, (mark, where)), *more = self._unset.items()
            also = "".join(f", nor is {other} ({at})" for other, (at, _) in more)
            fail(
                mark,
                where,
                f"the environment variable {name} is not set{also}; set it, or write it into .env beside the file",
            )
        return filled

    def _fill(self, node: Node, path: str, *, off: bool) -> Node:
        if isinstance(node.value, dict):
            off = off or is_off(node)
            value = {key: self._fill(item, join(path, key), off=off) for key, item in node.value.items()}
            return Node(value, node.mark, node.keys)
        if isinstance(node.value, list):
            found = [self._fill(item, join(path, i), off=off) for i, item in enumerate(node.value)]
            return Node(found, node.mark)
        if isinstance(node.value, str) and "${" in node.value:
            return Node(self.text(node.value, node.mark, path, off), node.mark, filled=True)
        return node

    def text(self, text: str, mark: Mark, path: str, off: bool) -> str:
        if "${" in VARIABLE.sub("", text):
            fail(mark, path, "has a ${ without its }; write ${NAME}")
        return VARIABLE.sub(lambda found: self.one(found[1], mark, path, off), text)

    def one(self, inside: str, mark: Mark, path: str, off: bool) -> str:
        if asked := INPUT.fullmatch(inside):
            inside = variable(asked[1])
        form = FORM.fullmatch(inside)
        if form is None:
            fail(mark, path, f"${{{inside}}} is no variable; write ${{NAME}} or ${{NAME:-default}}")
        name, default = form.groups()
        value = self.env.get(name)
        if default is not None and not value:
            return str(default)
        if value is None and (place := folder(name, mark)) is not None:
            return place
        if value is None:
            if not off:
                self._unset.setdefault(name, (mark, path))
            return ""
        if not ORIGIN.fullmatch(value):
            self.remember(value)
        return value

    def remember(self, value: str) -> None:
        """Values too short to be a secret are left out: redacting them would only garble the logs."""
        if len(value) >= SHORTEST_SECRET and read_reference(value) is None:
            self.secrets.add(value)


def is_off(node: Node) -> bool:
    """Whether a mapping says `enabled: false` or `disabled: true` about itself."""
    enabled, disabled = node.get("enabled"), node.get("disabled")
    return (enabled is not None and enabled.value is False) or (
        disabled is not None and disabled.value is True
    )
