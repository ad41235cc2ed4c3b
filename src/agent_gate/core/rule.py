"""`Rule`: one entry of the permissions file, with the place where it stands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_gate.core.call import Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What is matched (all that is given must hold) and what then happens.

    `pattern` is a case-sensitive glob over the whole signature; `when` holds argument predicates;
    `extra` names the undeclared arguments an allow rule also covers; `lifetime` is how long, in seconds,
    a person has to answer; `approvers` limits who may.
    """

    pattern: str = "*"
    action: Effect = "ask"
    description: str = ""
    namespace: str | None = None
    callers: tuple[str, ...] = ()
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    when: Mapping[str, Any] = field(default_factory=dict)
    extra: frozenset[str] = frozenset()
    lifetime: float | None = None
    approvers: tuple[str, ...] = ()
    via: Literal["person", "client"] = "person"
    where: str = ""
    default: bool = False

    def label(self) -> str:
        """The rule in few words, for a person."""
        parts = [self.pattern] if self.pattern != "*" or not self.namespace else []
        if self.namespace:
            parts.append(f"namespace {self.namespace}")
        parts += [
            f"{name}={getattr(self, name)}".lower() for name in TRAIT_NAMES if getattr(self, name) is not None
        ]
        return f"{self.action} {' '.join(parts)}"


TRAIT_NAMES = ("read_only", "destructive", "idempotent", "open_world")
