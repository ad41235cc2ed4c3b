"""Sources as an operator handles them: state, connecting, disconnecting, and definitions that changed."""

from dataclasses import asdict

import msgspec

from agent_gate.errors import InvalidArgs
from agent_gate.net.http import HttpAnswer, json_response
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.needs import HELD, SERVED, keyed, mending
from agent_gate.surfaces.admin.routing import TEXT, OperatorRequest, Route, RouteAnswer


class SourceRoutes:
    def __init__(self, admin: Admin) -> None:
        self._admin, self._sources = admin, admin.sources

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/api/sources", self._list, "Every source and its state"),
            Route("POST", "/api/sources/{key}/connect", self._connect, "Try a source now"),
            Route("POST", "/api/sources/{key}/disconnect", self._disconnect, "Close a source"),
            Route(
                "GET",
                "/api/sources/{key}/failures",
                self._show_failures,
                "What failed there in the last hour",
            ),
            Route(
                "GET",
                "/api/sources/{key}/log",
                self._show_log,
                "The last lines about it: what its program printed, and what this gateway logged",
                role="operator",  # a program may print what nobody marked as a secret
            ),
            Route("GET", "/api/changes", self._list_changes, "Definitions that are not what they were"),
            Route(
                "POST",
                "/api/changes/accept",
                self._accept,
                "Accept a changed definition",
                body={"source": TEXT, "tool": TEXT, "pin": TEXT},
                required=("source", "tool"),
            ),
            Route("GET", "/servers", self._list, "Every source and its state"),
            Route("POST", "/servers/{key}/connect", self._connect, "Try a source now"),
            Route("POST", "/servers/{key}/disconnect", self._disconnect, "Close a source"),
        ]

    async def _list(self, _ask: OperatorRequest) -> RouteAnswer:
        secrets = keyed(self._admin)
        return [asdict(one) | mending(one, secrets.get(one.key, ())) for one in self._sources.states()]

    async def _show_failures(self, ask: OperatorRequest) -> RouteAnswer:
        """Whose calls failed in the last hour and of which tools; how many failed in each of the last 24 hours."""
        key = ask.values["key"]
        namespace = next((one.namespace for one in self._sources.states() if one.key == key), key)
        found, hours = await self._admin.numbers.trends.read_failures(namespace)
        calls = [msgspec.structs.asdict(one) for one in found]
        return {"count": sum(one.count for one in found), "calls": calls, "hours": hours}

    async def _show_log(self, ask: OperatorRequest) -> RouteAnswer:
        return [line._asdict() for line in self._sources.lines(ask.values["key"])]

    async def _connect(self, ask: OperatorRequest) -> HttpAnswer:
        key = ask.values["key"]
        waits = next(
            (one for one in self._admin.secrets.sign_ins.all() if one.source == key and one.needed), None
        )
        self._sources.reconnect(key)
        if waits is not None:
            return json_response(202, {"connecting": key, "needs_auth": waits.reason})
        return json_response(202, {"connecting": key})

    async def _disconnect(self, ask: OperatorRequest) -> RouteAnswer:
        await self._sources.disconnect(ask.values["key"], ask.person)
        return {"disconnected": ask.values["key"]}

    async def _list_changes(self, _ask: OperatorRequest) -> RouteAnswer:
        """Each with what it means for the calls of agents."""
        said = {True: HELD, False: SERVED}
        return [asdict(one) | {"says": said[one.held]} for one in self._sources.changes()]

    async def _accept(self, ask: OperatorRequest) -> RouteAnswer:
        body = ask.body()
        source, tool = str(body.get("source", "")), str(body.get("tool", ""))
        if not self._sources.accept(source, tool, str(body.get("pin", ""))):
            raise InvalidArgs(f"{source} has no changed definition of {tool}")
        return {"accepted": tool}
