"""The agents that may come in: those of the settings, those that were made at run time, and those that signed in."""

from dataclasses import replace
from typing import TYPE_CHECKING

from agent_gate.access.credentials import credentials
from agent_gate.access.tokens import Credential
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
