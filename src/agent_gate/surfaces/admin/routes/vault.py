"""The vault as an operator handles it: secrets by name, never by value, and the vault's key."""

from agent_gate.errors import InvalidArgs, Unauthorized, ViewFailed
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.routing import TERMINAL, TEXT, OperatorRequest, Route, RouteAnswer


class VaultRoutes:
    def __init__(self, admin: Admin) -> None:
        self._vault, self._secrets = admin.secrets.custody.vault, admin.secrets.custody.secrets
        self._changed, self._uses = admin.secrets.changed, admin.secrets.uses
        self._check = admin.who.passphrases.check

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET", "/api/secrets", self._list, "The names of secrets, when each was set, and who uses it"
            ),
            Route(
                "PUT",
                "/api/secrets/{name}",
                self._set,
                "Keep a secret under a name",
                body={"value": TEXT, "passphrase": TEXT},
                required=("value",),
            ),
            Route(
                "DELETE", "/api/secrets/{name}", self._remove, "Forget a secret", body={"passphrase": TEXT}
            ),
            Route("GET", "/api/vault", self._show_status, "Where the vault's key is, and how much it keeps"),
            Route("POST", "/api/vault/rotate", self._rotate, "Seal everything with a new key"),
            Route("POST", "/api/vault/forget", self._forget, "Give up what cannot be opened any more"),
        ]

    async def _list(self, _ask: OperatorRequest) -> RouteAnswer:
        """Those in the vault, and those that something refers to and nobody has set."""
        uses = self._uses()
        kept = {one.name: one.updated_at for one in await self._secrets.list_names()}
        return [
            {"name": name, "updated_at": kept.get(name), "used_by": uses.get(name, [])}
            for name in sorted({*kept, *uses})
        ]

    def _confirm(self, ask: OperatorRequest, passphrase: object) -> None:
        """A person with a passphrase gives it; whoever is at the gateway's own terminal need not."""
        if ask.channel != TERMINAL and not self._check(ask.person, passphrase):
            raise Unauthorized("This gateway wants the approver's passphrase before it changes a secret")

    async def _set(self, ask: OperatorRequest) -> RouteAnswer:
        name, value = ask.values["name"], ask.body().get("value")
        if not isinstance(value, str):
            raise InvalidArgs('Send {"value": SECRET}')
        self._confirm(ask, ask.body().get("passphrase"))
        await self._secrets.set(name, value)
        return {"set": name, "used_by": self._changed(name)}

    async def _remove(self, ask: OperatorRequest) -> RouteAnswer:
        name = ask.values["name"]
        self._confirm(ask, ask.body().get("passphrase"))
        if not await self._secrets.remove(name):
            raise ViewFailed(f"The vault has no secret named {name[:64]}. See `agent-gate secrets list`")
        return {"removed": name, "used_by": self._changed(name)}

    async def _show_status(self, _ask: OperatorRequest) -> RouteAnswer:
        vault = self._vault
        return {
            "open": vault.is_open,
            "fault": "" if vault.is_open else vault.fault,
            "key": vault.key.id if vault.is_open else "",
            "master": vault.master_id,
            "where": vault.where,
            "values": await vault.count(),
        }

    async def _rotate(self, _ask: OperatorRequest) -> RouteAnswer:
        values = await self._vault.rotate()
        return {"values": values, "key": self._vault.key.id, "where": self._vault.where}

    async def _forget(self, _ask: OperatorRequest) -> RouteAnswer:
        """Only what is shut is given up: what opens can be removed one by one."""
        if self._vault.is_open:
            raise InvalidArgs("The vault is open; remove its secrets one by one")
        lost = await self._vault.count()
        await self._vault.forget_all()
        return {"forgotten": lost}
