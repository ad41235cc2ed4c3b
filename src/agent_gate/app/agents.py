"""The agents that may come in: those of the settings, those that were made at run time, and those that signed in."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent_gate.access.keys import Keys, caller_of
from agent_gate.access.tokens import Credential, digest, ensure_token
from agent_gate.config.settings import AgentSettings, Settings

if TYPE_CHECKING:
    from agent_gate.app.gateway import Gateway


def agents_of(gateway: "Gateway", settings: Settings) -> list[Credential]:
    """The agents of these settings, each with the groups of the person it works for."""

    def alone(token: str) -> AgentSettings:
        return AgentSettings(token=token, rate_limit=settings.rate_limit)

    def with_groups(credential: Credential) -> Credential:
        person = credential.caller.person
        if not person:
            return credential
        vouched = gateway.sign_in.vouching.people.groups_vouched(person)
        groups = frozenset(settings.groups_of(person)) | vouched
        return replace(credential, caller=replace(credential.caller, groups=groups))

    signed_in = gateway.sign_in.signed_in.credentials()
    found = credentials(settings.agents.values(), alone, gateway.folder, gateway.kept.keys, signed_in)
    return [with_groups(credential) for credential in found]


def credentials(
    named: Iterable[AgentSettings],
    alone: Callable[[str], AgentSettings],
    folder: Path,
    keys: Keys,
    signed_in: Iterable[Credential] = (),
) -> list[Credential]:
    """Everybody's; the files win where two name one agent, then what was made here.

    Where the files name none there is one, `alone`, whose token is made once and kept beside the store.
    """
    entries = list(named) or [alone(ensure_token(folder / "agent.token"))]
    found = [Credential(digest_of(entry), entry.caller()) for entry in entries]
    names = {credential.caller.name for credential in found}
    made = [Credential(key.digest, caller_of(key)) for key in keys.list("agent")]
    found += [credential for credential in made if credential.caller.name not in names]
    names = {credential.caller.name for credential in found}
    return [*found, *(credential for credential in signed_in if credential.caller.name not in names)]


def digest_of(entry: AgentSettings) -> bytes:
    return bytes.fromhex(entry.token_hash) if entry.token_hash else digest(entry.token)
