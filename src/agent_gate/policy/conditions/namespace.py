"""`namespace: git`: only tools of a service or server, as a glob."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from agent_gate.core.ids import fold_namespace
from agent_gate.core.tool import Tool
from agent_gate.policy.conditions.condition import Condition, ConditionKind

GLOB = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class InNamespace(Condition):
    wanted: str

    names_tools = True

    def label(self) -> str:
        return f"namespace {self.wanted}"

    def reaches(self, namespace: str, source: str, *, allows: bool) -> bool:
        """A rule that refuses or asks may also spell the source as the file does."""
        return fnmatchcase(namespace, self.wanted) or (not allows and fnmatchcase(source, self.wanted))

    def excludes(self, tool: Tool, caller: str, *, allows: bool) -> str | None:
        there = self.reaches(tool.namespace, tool.source, allows=allows)
        return None if there else f"namespace is {tool.namespace}"

    def instead(self, namespaces: Sequence[str]) -> str | None:
        if "*" in namespaces or any(fnmatchcase(one, self.wanted) for one in namespaces):
            return None
        return f"the namespaces are {', '.join(namespaces)}"


def parse(written: str) -> InNamespace | None:
    """A name is folded like that of a source; a glob is taken as it is. The empty one asks for nothing."""
    if not written:
        return None
    return InNamespace(fold_namespace(written) if GLOB.isdisjoint(written) else written)


NAMESPACE = ConditionKind(
    key="namespace",
    doc="Only tools of this service or server (a glob).",
    type=str,
    schema={"type": ["string", "null"]},
    parse=parse,
)
