"""What people may do: look, answer questions (of which namespaces), operate. Each includes what comes before it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from agent_gate.errors import Forbidden

Role = Literal["viewer", "approver", "operator"]
DOES: dict[Role, str] = {"viewer": "view", "approver": "answer", "operator": "operate"}
"""The roles in order, each with what it adds."""
ORDER = list(DOES)


@dataclass(frozen=True, slots=True)
class Rights:
    """A person's role; None for somebody who may do nothing. `namespaces` None answers for all of them."""

    role: Role | None = None
    namespaces: frozenset[str] | None = None

    def include(self, needed: Role) -> bool:
        return self.role is not None and ORDER.index(self.role) >= ORDER.index(needed)

    def may(self) -> list[str]:
        """What they may do, in words that the page and programs go by."""
        return [word for role, word in DOES.items() if self.include(role)]

    def answer_for(self, namespace: str) -> bool:
        """Whether a question about a tool there is theirs to answer."""
        if self.include("operator"):
            return True
        return self.include("approver") and (self.namespaces is None or namespace in self.namespaces)


NOTHING = Rights()
EVERYTHING = Rights("operator")
EVERY_ANSWER = Rights("approver")


def widest(found: Collection[Rights]) -> Rights:
    """What somebody may do who has all of these: the highest role, and for answers all their namespaces together."""
    roles = [one.role for one in found if one.role is not None]
    if not roles:
        return NOTHING
    role = max(roles, key=ORDER.index)
    answering = [one.namespaces for one in found if one.include("approver")]
    if not answering or None in answering:
        return Rights(role)
    return Rights(role, frozenset[str]().union(*(one for one in answering if one is not None)))


def check_role(rights: Rights, needed: Role, person: str) -> None:
    if not rights.include(needed):
        does = {"viewer": "look at this", "approver": "answer questions", "operator": "do this"}[needed]
        raise Forbidden(
            f"{person} may not {does}: that needs the role {needed}. An operator gives roles under `people:`"
        )


def check_answer(rights: Rights, namespace: str, person: str) -> None:
    """Raise where a question about a tool of that namespace is not this person's to answer."""
    check_role(rights, "approver", person)
    if not rights.answer_for(namespace):
        raise Forbidden(
            f"{person} answers for {', '.join(sorted(rights.namespaces or ())) or 'nothing'}, and not for {namespace}"
        )
