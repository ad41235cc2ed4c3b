"""Devices that are told of questions by Web Push: each person's own."""

from agent_gate.approval.channels.devices import PushDevice
from agent_gate.errors import InvalidArgs
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.routing import TEXT, OperatorRequest, Route, RouteAnswer

SUBSCRIPTION = ("address", "p256dh", "auth")


class PushRoutes:
    def __init__(self, admin: Admin) -> None:
        self._pushing = admin.pushing

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/api/devices", self._list, "Your devices that are told of questions"),
            Route(
                "POST",
                "/api/devices",
                self._add,
                "Have a device told: a browser's subscription to Web Push",
                body={"name": TEXT, "address": TEXT, "p256dh": TEXT, "auth": TEXT},
                required=SUBSCRIPTION,
                role="approver",
            ),
            Route("DELETE", "/api/devices/{id}", self._remove, "Have a device told no more", role="approver"),
            Route(
                "POST",
                "/api/devices/{id}/try",
                self._try,
                "Send a device a message that asks nothing",
                role="approver",
            ),
        ]

    async def _list(self, ask: OperatorRequest) -> RouteAnswer:
        devices = [shown(device) for device in await self._pushing.read_of(ask.person)]
        return {"key": await self._pushing.read_key(), "devices": devices}

    async def _add(self, ask: OperatorRequest) -> RouteAnswer:
        body = ask.body()
        name, address, p256dh, auth = (body.get(key, "") for key in ("name", *SUBSCRIPTION))
        if not all(isinstance(value, str) for value in (name, address, p256dh, auth)) or not address:
            raise InvalidArgs("Send the browser's subscription: {name, address, p256dh, auth}, each a text")
        device = await self._pushing.add(ask.person, name, address, p256dh, auth)
        return shown(device)

    async def _remove(self, ask: OperatorRequest) -> RouteAnswer:
        await self._pushing.remove(ask.person, ask.values["id"])
        return {"removed": ask.values["id"]}

    async def _try(self, ask: OperatorRequest) -> RouteAnswer:
        return {"taken": await self._pushing.try_out(ask.person, ask.values["id"])}


def shown(device: PushDevice) -> dict[str, str | float]:
    """A device without what would let others push to it."""
    return {"id": device.id, "name": device.name, "since": device.since}
