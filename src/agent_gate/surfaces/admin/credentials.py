"""Which agents there are: those of the files, and those that people made."""

from pathlib import Path

from agent_gate.access.tokens import Credential, digest, ensure_token
from agent_gate.config.settings import AgentSettings, Settings
from agent_gate.surfaces.admin.agents import caller_of
from agent_gate.surfaces.admin.keys import Keys


def configured(settings: Settings, folder: Path) -> list[Credential]:
    """The agents of the files; where they name none, one whose token is made once and kept beside the store."""
    agents = list(settings.agents.values())
    if not agents:
        token = ensure_token(folder / "agent.token")
        agents = [AgentSettings(token=token, rate_limit=settings.rate_limit)]
    return [
        Credential(
            bytes.fromhex(agent.token_hash) if agent.token_hash else digest(agent.token), agent.caller()
        )
        for agent in agents
    ]


def credentials(settings: Settings, folder: Path, keys: Keys) -> list[Credential]:
    """Everybody's; the files win where both name one agent."""
    named = configured(settings, folder)
    names = {credential.caller.name for credential in named}
    made = [Credential(key.digest, caller_of(key)) for key in keys.list("agent")]
    return [*named, *(credential for credential in made if credential.caller.name not in names)]
