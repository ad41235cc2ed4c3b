"""`Custody`: the vault and all that is made of it, opened together at the start."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent_gate.core.ports import Clock
from agent_gate.store.leases import Leases
from agent_gate.store.statement import Store
from agent_gate.vault.accounts import Accounts
from agent_gate.vault.flows import Flows
from agent_gate.vault.oauth.challenge import BearerChallenge, parse_challenge
from agent_gate.vault.oauth.reach import Web
from agent_gate.vault.secrets import Secrets
from agent_gate.vault.vault import Vault


async def find_nobody(_caller: str) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Custody:
    """What the gateway keeps for others. `challenges` are what sources were last refused with, by source;
    `find_identity` gives the provider's word for whoever has an account, where they logged in there."""

    vault: Vault
    secrets: Secrets
    web: Web
    accounts: Accounts
    flows: Flows
    find_identity: Callable[[str], Awaitable[str]] = find_nobody
    challenges: dict[str, BearerChallenge] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        vault: Vault,
        store: Store,
        clock: Clock,
        *,
        files: Path,
        env: Callable[[], Mapping[str, str]],
        redirect_uri: Callable[[], str],
        document_url: Callable[[], str | None] = lambda: None,
        find_identity: Callable[[str], Awaitable[str]] = find_nobody,
    ) -> "Custody":
        """`files` is where the configuration lies."""
        web = Web(clock)
        accounts = Accounts(vault, Leases(store, clock), web, clock)
        return cls(
            vault=vault,
            secrets=Secrets(vault, files, env),
            web=web,
            accounts=accounts,
            find_identity=find_identity,
            flows=Flows(vault, web, clock, redirect_uri, document_url),
        )

    def challenged(self, source: str, challenge: str) -> None:
        """An upstream wants a sign-in, in these words."""
        self.challenges[source] = parse_challenge(challenge) or BearerChallenge()

    async def open(self) -> None:
        """Read what is connected, where the vault is open."""
        if self.vault.is_open:
            await self.accounts.load()
