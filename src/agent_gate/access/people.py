"""Who answers: the people of the configuration as it is now, and what each is known by."""

from collections.abc import Callable, Container, Mapping
from typing import Protocol

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


class People:
    """Reads what is in use each time, so that one removed from the file is out at once."""

    def __init__(
        self,
        listed: Callable[[], Mapping[str, Listed]],
        on_channels: Callable[[], Container[str]],
        common: Callable[[], str | None],
    ) -> None:
        """`common` is the passphrase of those who have none of their own."""
        self._listed, self._on_channels, self._common = listed, on_channels, common

    def with_uid(self, uid: int | None) -> str | None:
        """The person that this user of the machine is."""
        people = self._listed().values()
        return next((person.name for person in people if person.uid is not None and person.uid == uid), None)

    def known(self, name: str) -> bool:
        return name == OPERATOR or name in self._listed()

    def answers(self, name: str) -> bool:
        """Whether an answer with that name would still count, on some channel."""
        return self.known(name) or name in self._on_channels()

    def logins(self) -> dict[str, str]:
        """The names by their login on the page."""
        return {person.login: person.name for person in self._listed().values() if person.login}

    def passphrase(self, name: str) -> str | None:
        """What they type to answer; None where nothing is asked for."""
        person = self._listed().get(name)
        return (person.passphrase if person else None) or self._common()
