"""Keeps the secret arguments of a waiting call out of the database's plain text.

A call that waits for a person must still know them after a restart, so the vault keeps them, at a place of their
question, until the call ran or never will. Everything else of the question is stored as it is, with a mask in their
place.
"""

import logging
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import structs

from agent_gate.core.approval import Approval
from agent_gate.core.call import STEPS, State
from agent_gate.errors import ConfigError, Internal
from agent_gate.store.statement import Statement, Store
from agent_gate.vault.sealing import VaultFault
from agent_gate.vault.vault import Vault

log = logging.getLogger("agent_gate.approvals")
FIELD = "arguments"
OWNER = "approval:"
WAITING = (State.PENDING, State.APPROVED)
LAST_WAITING_STEP = STEPS[State.APPROVED]
FORGET = (
    "DELETE FROM vault WHERE owner = ? AND field = ? "
    f"AND EXISTS (SELECT 1 FROM record WHERE call = ? AND step > {LAST_WAITING_STEP})"
)
FORGET_ENDED = (
    f"DELETE FROM vault WHERE field = ? AND NOT EXISTS (SELECT 1 FROM approvals WHERE '{OWNER}' || id = vault.owner "
    "AND state IN ('pending', 'approved') AND NOT EXISTS "
    f"(SELECT 1 FROM record WHERE record.call = approvals.call AND step > {LAST_WAITING_STEP}))"
)


def owner_of(approval_id: str) -> str:
    return f"{OWNER}{approval_id}"


def secrets_of(approval: Approval) -> dict[str, Any]:
    return {name: value for name, value in approval.arguments.items() if name in approval.asked.secret}


def keeping(vault: Vault, approval_id: str, secret: Mapping[str, Any]) -> Statement:
    return vault.putting(owner_of(approval_id), FIELD, msgspec.json.encode(secret))


class SecretArguments:
    """The place of secret arguments in the vault; without one, no question with a secret can be kept."""

    def __init__(self, store: Store, vault: Vault | None) -> None:
        self._store, self._vault = store, vault

    def write(self, approval: Approval, statements: Sequence[Statement]) -> Awaitable[list[int]]:
        """Write the statements that keep a question, and its secret arguments with them."""
        secret = secrets_of(approval)
        return (
            self._seal_and_write(approval.id, secret, statements)
            if secret
            else self._store.write(*statements)
        )

    async def _seal_and_write(
        self, approval_id: str, secret: Mapping[str, Any], statements: Sequence[Statement]
    ) -> list[int]:
        if self._vault is None:
            raise Internal("There is no vault to keep the secret arguments of this call in")
        vault = self._vault
        return await vault.write_sealed(lambda: [keeping(vault, approval_id, secret), *statements])

    async def fill(self, approval: Approval) -> Approval:
        """The question with its secret arguments, where its call may still run; one that lost them runs out at once."""
        if not secrets_of(approval) or approval.state not in WAITING:
            return approval
        try:
            arguments = {**approval.arguments, **await self._open(approval)}
            return replace(approval, call=structs.replace(approval.call, arguments=arguments))
        except (VaultFault, ConfigError, ValueError) as error:
            log.error("A question cannot be asked any more: %s", error, extra={"approval": approval.id})
            return replace(approval, asked=replace(approval.asked, expires_at=approval.asked.at))

    async def _open(self, approval: Approval) -> dict[str, Any]:
        kept = await self._vault.get(owner_of(approval.id), FIELD) if self._vault is not None else None
        if kept is None:
            raise VaultFault("The vault does not have the secret arguments of this call")
        return msgspec.json.decode(kept.value, type=dict[str, Any])

    def forgetting(self, approval: Approval) -> list[Statement]:
        """Goes with the end of a question whose call will not run."""
        owner = owner_of(approval.id)
        return (
            [Statement("DELETE FROM vault WHERE owner = ? AND field = ?", (owner, FIELD))]
            if approval.asked.secret
            else []
        )

    def forget_performed(self, approval: Approval) -> None:
        """Nobody needs them once the call ran, or is on record as one that will not."""
        if approval.asked.secret:
            self._store.post(Statement(FORGET, (owner_of(approval.id), FIELD, approval.call_id)))

    async def forget_ended(self) -> None:
        """What a crash left behind."""
        await self._store.write(Statement(FORGET_ENDED, (FIELD,)))
