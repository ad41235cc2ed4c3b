"""Logins that the operator keeps for origins: what is filled in, and that agents never see it."""

from collections.abc import Mapping

from agent_gate.core.credentials import Identity, SignInNeeded
from agent_gate.core.references import read_reference
from agent_gate.errors import ConfigError, DependencyUnavailable, InvalidArgs
from agent_gate.observe.redact import Mask
from agent_gate.sources.access import Access
from agent_gate.sources.browser.facts import complete
from agent_gate.sources.browser.settings import KEY, BrowserSettings
from agent_gate.sources.browser.tab import origin_of
from agent_gate.sources.toolbox import Toolbox

PASSWORD = "PASSWORD"  # noqa: S105 -- the name under which the vault hands it over


def origins(logins: Mapping[str, str]) -> dict[str, str]:
    """The configured logins by their plain origins."""
    return {origin_of(complete(origin)): secret for origin, secret in logins.items()}


def check_logins(settings: BrowserSettings) -> None:
    """A login is a reference to where the secret is: a password in the file would be one in its backups too."""
    for origin, secret in settings.logins.items():
        if read_reference(secret) is None:
            raise ConfigError(
                f"browser.logins: {origin} must refer to a secret, such as vault:shop", where=settings.where
            )


class KeptLogins:
    """User and password by origin, looked up with each login; masked in every result from then on."""

    def __init__(self, settings: BrowserSettings, toolbox: Toolbox) -> None:
        self._learn, self._mask = toolbox.learn, Mask()
        self._access: dict[str, Access] = {
            origin: toolbox.access(Identity(source=KEY, title="the browser", env={PASSWORD: secret}))
            for origin, secret in origins(settings.logins).items()
        }

    async def find(self, origin: str, caller: str) -> tuple[str, str]:
        """The user, where the secret names one, and the password."""
        access = self._access.get(origin)
        if access is None:
            raise InvalidArgs(no_login(origin))
        try:
            proof = access.at_hand(caller) or await access.fetch(caller)
        except SignInNeeded as error:  # one login is missing; the browser and its other logins are not
            raise DependencyUnavailable(error.message) from None
        user, colon, password = proof.env[PASSWORD].partition(":")
        user, password = (user, password) if colon else ("", user)
        self._learn([password])
        self._mask.learn([password])
        return user, password

    def masked(self, body: bytes) -> bytes:
        return self._mask.body(body)


def no_login(origin: str) -> str:
    return f"There is no login for {origin} (browser.logins). A person has to add one"
