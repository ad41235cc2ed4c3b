"""Keys that make a promise to a caller or a person: where gateways share a store, one is good on all of them."""

import logging
from pathlib import Path

from agent_gate.errors import ConfigError
from agent_gate.store.statement import Store
from agent_gate.vault.sealing import VaultFault
from agent_gate.vault.vault import Vault

log = logging.getLogger("agent_gate.vault")
OWNER = "gateways"


async def share_key(vault: Vault, store: Store, name: str, own: bytes) -> bytes:
    """The key of that name, which all gateways have; the first one's `own` where there is none yet. A gateway that has its
    store alone keeps its own."""
    if not store.shared:
        return own
    try:
        await vault.put_once(OWNER, name, own)
        kept = await vault.get(OWNER, name)
    except (VaultFault, ConfigError) as fault:
        log.error("What other gateways promise with the key %s is not good here: %s", name, fault)
        return own
    return kept.value if kept is not None else own


def say_same_key(vault: Vault, store: Store, folder: Path) -> None:
    """Where gateways share a store they need one master key: say what to do where this one has another."""
    if store.shared and not vault.is_open:
        log.error(
            "All gateways on one store need the same master key. Give this one the AGENT_GATE_SECRET of the others, or "
            "copy their vault.key to %s, then start it again; until then their request states, buttons and secrets are "
            "not good here",
            folder / "vault.key",
        )
