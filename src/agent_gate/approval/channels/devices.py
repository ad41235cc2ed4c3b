"""The devices that want to be told by Web Push: browsers in which somebody who is logged in said so.

Each is sealed in the vault, since whoever has its address and keys could push to it; so is the gateway's own key.
"""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from agent_gate.core.approval import Approval
from agent_gate.core.call import new_id
from agent_gate.core.ports import Clock
from agent_gate.errors import InvalidArgs
from agent_gate.net.webpush import AUTH_BYTES, bytes_of, new_sender_key, point_of, public_of
from agent_gate.vault.vault import Vault

DEVICE, OWN, OWN_KEY = "push device", "push", "push key"
MOST_DEVICES = 50
MOST_ADDRESS = 2000
MOST_NAME = 80


class PushDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One browser. `address` is where its push service takes messages for it."""

    id: str
    person: str
    name: str
    address: str
    p256dh: str
    auth: str
    since: float

    def __repr__(self) -> str:
        return f"PushDevice({self.id}, {self.person})"


@dataclass(frozen=True, slots=True)
class PushDevices:
    """`known` says whether a person's answer would still count: one who left is told nothing more. `may_answer` says
    whether it would count for the tools of a namespace."""

    vault: Vault
    clock: Clock
    known: Callable[[str], bool]
    may_answer: Callable[[str, str], bool]

    async def ensure_key(self) -> str:
        """The gateway's key, made at its first use. Gateways on one store share it."""
        kept = await self.vault.get(OWN, OWN_KEY)
        if kept is None:
            await self.vault.put_once(OWN, OWN_KEY, new_sender_key().encode())
            kept = await self.vault.get(OWN, OWN_KEY)
        if kept is None:
            raise InvalidArgs("The key for push messages could not be kept; try again")
        return kept.value.decode()

    async def read_key(self) -> str:
        return public_of(await self.ensure_key())

    async def read_all(self) -> list[PushDevice]:
        kept = await self.vault.read_all(DEVICE)
        devices = [msgspec.json.decode(secret.value, type=PushDevice) for secret in kept.values()]
        return sorted((device for device in devices if self.known(device.person)), key=lambda one: one.since)

    async def read_of(self, person: str) -> list[PushDevice]:
        return [device for device in await self.read_all() if device.person == person]

    async def read_for(self, approval: Approval) -> list[PushDevice]:
        """The devices of those who may answer a question."""
        named = approval.decision.approvers
        return [
            device
            for device in await self.read_all()
            if (not named or device.person in named) and self.may_answer(device.person, approval.namespace)
        ]

    async def add(self, person: str, name: str, address: str, p256dh: str, auth: str) -> PushDevice:
        """Keep a subscription; the same browser again takes the place of what was kept of it."""
        point_of(p256dh)
        bytes_of(auth, AUTH_BYTES, "auth")
        if len(address) > MOST_ADDRESS:
            raise InvalidArgs(f"A push address has at most {MOST_ADDRESS} characters")
        before = await self.read_all()
        same = next((device for device in before if device.address == address), None)
        if same is None and len(before) >= MOST_DEVICES:
            raise InvalidArgs(f"{MOST_DEVICES} devices are told already. Take one away first")
        device = PushDevice(
            id=same.id if same else new_id(),
            person=person,
            name=name[:MOST_NAME] or "a browser",
            address=address,
            p256dh=p256dh,
            auth=auth,
            since=self.clock.now(),
        )
        await self.vault.put(device.id, DEVICE, msgspec.json.encode(device))
        return device

    async def remove(self, device: str) -> bool:
        return await self.vault.remove(device, DEVICE)
