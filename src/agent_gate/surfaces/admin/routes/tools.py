"""Tools as an operator sees them: what they take, who may call them, what they cost, and trying one out."""

import asyncio
from dataclasses import asdict
from typing import Any

import msgspec

from agent_gate.core.call import Call, Caller, Outcome, Pending
from agent_gate.core.tool import Tool
from agent_gate.discovery import tokens
from agent_gate.discovery.economy import measure
from agent_gate.errors import InvalidArgs, ToolNotFound
from agent_gate.results.data import content_of, data_of
from agent_gate.surfaces.admin import shown
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.routing import FLAG, NUMBER, OBJECT, TEXT, OperatorRequest, Route, RouteAnswer
from agent_gate.surfaces.admin.standing import show_standings, standing

LONGEST_TRY = 60.0


def as_listed(tool: Tool) -> str:
    """The definition as an agent's prompt holds it."""
    listed = {"name": tool.wire, "description": tool.description, "inputSchema": tool.input_schema}
    return msgspec.json.encode(listed).decode()


def ended(outcome: Outcome | Pending) -> dict[str, Any]:
    if isinstance(outcome, Pending):
        waiting = {"approval": outcome.approval_id, "expires_at": outcome.expires_at}
        return {"call": outcome.call_id, "status": "pending", **waiting}
    if outcome.error is not None:
        return {"call": outcome.call_id, "status": str(outcome.state), "error": outcome.error.as_dict()}
    assert outcome.result is not None
    content = content_of(outcome.result)
    return {
        "call": outcome.call_id,
        "status": "executed",
        "data": msgspec.Raw(data_of(outcome.result)),
        "content": msgspec.Raw(content) if content is not None else None,
    }


class ToolRoutes:
    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._sizes: dict[str, int] = {}

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/api/tools",
                self._list,
                "Every tool; for an agent, with what its calls of it meet",
                query={"brief": FLAG, "agent": TEXT},
            ),
            Route("GET", "/api/tools/{name}", self._show_one, "One tool: schema, size, who may call it"),
            Route(
                "POST",
                "/api/tools/{name}/try",
                self._try,
                "Call a tool as an agent would: same rules, same record",
                body={"agent": TEXT, "arguments": OBJECT, "wait": NUMBER},
                required=("agent",),
            ),
            Route(
                "GET",
                "/api/tries/{call}",
                self._follow,
                "What became of a call that was tried",
                query={"agent": TEXT, "wait": NUMBER},
                role="operator",
            ),
            Route("GET", "/api/economy", self._show_economy, "Tokens per mode, server and agent"),
        ]

    async def _list(self, ask: OperatorRequest) -> RouteAnswer:
        catalog = self._admin.shelf.catalog
        if agent := ask.param("agent"):
            caller = self._admin.caller(agent)
            tools = await show_standings(self._admin.setup.policy(), catalog.tools, caller)
        else:
            render = shown.tool_row if ask.param("brief") else shown.tool
            tools = [render(tool) for tool in catalog.tools]
        excluded = [asdict(left_out) for left_out in catalog.excluded]
        return {"digest": catalog.digest, "tools": tools, "excluded": excluded}

    def _find(self, name: str) -> Tool:
        tool = self._admin.shelf.catalog.find(name)
        if tool is None:
            raise ToolNotFound(f"Unknown tool: {name[:120]}")
        return tool

    async def _show_one(self, ask: OperatorRequest) -> RouteAnswer:
        tool = self._find(ask.values["name"])
        policy, callers = self._admin.setup.policy(), self._admin.who.callers()
        who = [standing(policy, tool, caller) for caller in callers]
        return shown.tool(tool) | {"tokens": await self._count_tokens(tool), "who": who}

    async def _count_tokens(self, tool: Tool) -> int:
        """Exact tokens of the definition; counting long schemas must not hold up calls."""
        size = self._sizes.get(tool.pin)
        if size is None:
            size = self._sizes[tool.pin] = await asyncio.to_thread(tokens.count, as_listed(tool))
        return size

    async def _try(self, ask: OperatorRequest) -> RouteAnswer:
        body = ask.body()
        tool, arguments = self._find(ask.values["name"]), body.get("arguments", {})
        if not isinstance(arguments, dict):
            raise InvalidArgs("arguments must be an object")
        caller = self._admin.caller(body.get("agent"))
        call = Call(tool=tool.id, arguments=arguments, caller=caller, surface=ask.channel)
        return ended(await self._admin.calls.run(call, wait=self._patience(body)))

    def _patience(self, body: dict[str, Any]) -> float:
        wait = body.get("wait", 1.0)
        return min(LONGEST_TRY, max(0.0, float(wait))) if isinstance(wait, int | float) else 1.0

    async def _follow(self, ask: OperatorRequest) -> RouteAnswer:
        caller = self._admin.caller(ask.param("agent"))
        wait = ask.number("wait", 0, LONGEST_TRY)
        return ended(await self._admin.calls.await_outcome(ask.values["call"], caller, wait=wait))

    async def _show_economy(self, _ask: OperatorRequest) -> RouteAnswer:
        """Counting a large catalog takes a moment, which calls must not wait for."""
        callers = list(self._admin.who.callers())
        return await asyncio.to_thread(lambda: [self._cost(caller) for caller in callers])

    def _cost(self, caller: Caller) -> dict[str, Any]:
        found = measure(self._admin.view.tools(caller))
        return {"agent": caller.name, "mode": caller.mode, **asdict(found)}
