"""Who answers: the people of the configuration as it is now, and what each is known by."""

from agent_gate.approval.channels.make import channel_people
from agent_gate.config.configuration import Configuration

OPERATOR = "operator"


class People:
    """Reads the configuration in use each time, so that one removed from the file is out at once."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def with_uid(self, uid: int | None) -> str | None:
        """The person that this user of the machine is."""
        people = self._configuration.settings.people.values()
        return next((person.name for person in people if person.uid is not None and person.uid == uid), None)

    def known(self, name: str) -> bool:
        return name == OPERATOR or name in self._configuration.settings.people

    def answers(self, name: str) -> bool:
        """Whether an answer with that name would still count, on some channel."""
        return self.known(name) or name in channel_people(self._configuration.settings.channels)

    def logins(self) -> dict[str, str]:
        """The names by their login on the page."""
        people = self._configuration.settings.people.values()
        return {person.login: person.name for person in people if person.login}

    def passphrase(self, name: str) -> str | None:
        """What they type to answer; None where nothing is asked for."""
        settings = self._configuration.settings
        person = settings.people.get(name)
        return (person.passphrase if person else None) or settings.approvers.passphrase
