"""Who answers: the people of the configuration as it is now, and what each is known by."""

from collections.abc import Callable, Container, Mapping
from typing import Protocol

from agent_gate.access.roles import EVERY_ANSWER, EVERYTHING, NOTHING, Rights, Role

OPERATOR = "operator"


class Listed(Protocol):
    """A person as the configuration has them."""

    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> int | None: ...
    @property
    def login(self) -> str | None: ...
    @property
    def passphrase(self) -> str | None: ...
    @property
    def role(self) -> Role: ...
    @property
    def namespaces(self) -> tuple[str, ...] | None: ...
    @property
    def groups(self) -> tuple[str, ...]: ...


def nobody_more(_name: str) -> Rights | None:
    return None


class People:
    """Reads what is in use each time, so that one removed from the file is out at once."""

    def __init__(
        self,
        listed: Callable[[], Mapping[str, Listed]],
        on_channels: Callable[[], Container[str]],
        common: Callable[[], str | None],
        signed_in: Callable[[str], Rights | None] = nobody_more,
    ) -> None:
        """`common` is the passphrase of those who have none of their own; `signed_in` says what somebody may do whom no
        file lists and a provider vouched for, None for everybody else."""
        self._listed, self._on_channels, self._common = listed, on_channels, common
        self._signed_in = signed_in

    def with_uid(self, uid: int | None) -> str | None:
        """The person that this user of the machine is."""
        people = self._listed().values()
        return next((person.name for person in people if person.uid is not None and person.uid == uid), None)

    def known(self, name: str) -> bool:
        """Whether somebody of that name may come to the page at all."""
        return self._own(name).include("viewer")

    def _own(self, name: str) -> Rights:
        if name == OPERATOR:
            return EVERYTHING
        person = self._listed().get(name)
        if person is None:
            return self._signed_in(name) or NOTHING
        return Rights(person.role, None if person.namespaces is None else frozenset(person.namespaces))

    def rights(self, name: str) -> Rights:
        """What this person may do now. Who is named only by a channel answers there, for everything."""
        own = self._own(name)
        return EVERY_ANSWER if own is NOTHING and name in self._on_channels() else own

    def answers(self, name: str) -> bool:
        """Whether an answer with that name would still count, on some channel."""
        return self.rights(name).include("approver")

    def names(self) -> list[str]:
        """Everybody who is known by name, and the operator."""
        return [*(person.name for person in self._listed().values()), OPERATOR]

    def logins(self) -> dict[str, str]:
        """The names by their login on the page."""
        return {person.login: person.name for person in self._listed().values() if person.login}

    def passphrase(self, name: str) -> str | None:
        """What they type to answer; None where nothing is asked for."""
        person = self._listed().get(name)
        return (person.passphrase if person else None) or self._common()
