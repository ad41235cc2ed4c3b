"""The admin API: what operators can see and do, one method per route."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import msgspec

from agent_gate import __version__
from agent_gate.approval.grants import Grants
from agent_gate.audit import Filters, export, search, show, verify
from agent_gate.calls import Calls
from agent_gate.core.approval import Answer
from agent_gate.core.catalog import Catalog, Shelf
from agent_gate.errors import GatewayError, InvalidArgs, ToolNotFound, Unauthorized
from agent_gate.net.http import Request, Response, StreamResponse, error_response, json_response
from agent_gate.observe.metrics import Metrics
from agent_gate.policy import Policy
from agent_gate.store.statement import Store
from agent_gate.surfaces.admin import shown
from agent_gate.surfaces.admin.routes import Ask, Reply, Route, Routes


class Operated(Protocol):
    """The sources, as an operator handles them."""

    def states(self) -> Sequence[Any]: ...
    def reconnect(self, key: str) -> None: ...
    def changes(self) -> Sequence[Any]: ...
    def accept(self, source: str, tool: str) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    """Everything the API works on; handed over by the composition root."""

    calls: Calls
    grants: Grants
    store: Store
    shelf: Shelf
    sources: Operated
    metrics: Metrics
    audit_key: bytes
    policy: Callable[[], Policy]
    agents: Callable[[], Sequence[Any]]
    reload: Callable[[], Awaitable[list[str]]]
    status: Callable[[], dict[str, Any]]
    check_passphrase: Callable[[str, str | None], bool]


class AdminApi:
    """Serves operators who are already known by name; who they are is decided before."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self.routes = Routes(self._table())

    def _table(self) -> list[Route]:
        return [
            Route("GET", "/api/status", self._status, "The gateway at a glance"),
            Route("POST", "/api/reload", self._reload, "Read the configuration again, all or nothing"),
            Route("GET", "/api/approvals", self._approvals, "Open questions, or past ones with ?state=all"),
            Route("GET", "/api/approvals/{id}", self._approval, "One question"),
            Route("POST", "/api/approvals/{id}", self._answer, "Answer a question"),
            Route("GET", "/api/grants", self._grants, "Remembered answers that still count"),
            Route("DELETE", "/api/grants/{id}", self._revoke, "Take a grant back"),
            Route("GET", "/api/calls", self._calls_page, "The record, newest first"),
            Route("GET", "/api/calls/{id}", self._call, "Every row of one call"),
            Route("GET", "/api/audit/verify", self._verify, "Check the record's hash chain"),
            Route("GET", "/api/audit/export", self._export, "The record as JSON lines or CSV"),
            Route("GET", "/api/tools", self._tools, "Every tool"),
            Route("GET", "/api/sources", self._sources, "Every source and its state"),
            Route("POST", "/api/sources/{key}/connect", self._connect, "Try a source now"),
            Route("GET", "/api/changes", self._changes, "Definitions that are not what they were"),
            Route("POST", "/api/changes/accept", self._accept, "Accept a changed definition"),
            Route("POST", "/api/explain", self._explain, "Why a call would be allowed, asked or denied"),
            Route("GET", "/api/agents", self._agents, "Who may call, and what they see"),
            Route("GET", "/api/events", self._events, "Approvals as they come and go (Server-Sent Events)"),
            Route("GET", "/metrics", self._metrics, "Prometheus"),
            Route("GET", "/servers", self._sources, "Every source and its state"),
            Route("POST", "/servers/{key}/connect", self._connect, "Try a source now"),
            Route("GET", "/openapi.json", self._openapi, "This API"),
        ]

    async def handle(self, request: Request, person: str, channel: str) -> Reply:
        try:
            return await self.routes.dispatch(request, person, channel)
        except GatewayError as error:
            return error_response(error)

    async def _status(self, _ask: Ask) -> Reply:
        return json_response(200, self._admin.status())

    async def _reload(self, _ask: Ask) -> Reply:
        return json_response(200, {"reloaded": True, "warnings": await self._admin.reload()})

    async def _approvals(self, ask: Ask) -> Reply:
        inbox = self._admin.calls.inbox
        if ask.request.params().get("state", "pending") == "pending":
            found = inbox.open()
        else:
            found = await inbox.history(
                int(ask.number("limit", 100, 1000)), ask.number("before", 0, 1e12) or None
            )
        return json_response(200, [shown.approval(a) for a in found])

    async def _approval(self, ask: Ask) -> Reply:
        return json_response(200, shown.approval(await self._admin.calls.inbox.find(ask.values["id"])))

    async def _answer(self, ask: Ask) -> Reply:
        body = ask.body()
        verdict, lifetime = body.get("verdict"), body.get("lifetime", "once")
        if verdict not in ("approve", "deny") or lifetime not in shown.LIFETIMES:
            raise InvalidArgs(
                'Answer with {"verdict": "approve" or "deny", "lifetime": "once", "session", "hour" or "always"}'
            )
        if not self._admin.check_passphrase(ask.person, body.get("passphrase")):
            raise Unauthorized("This gateway wants the approver's passphrase with every answer")
        answer = Answer(
            verdict=verdict,
            person=ask.person,
            channel=ask.channel,
            lifetime=lifetime,
            reason=str(body.get("reason", ""))[:500],
        )
        approval = await self._admin.calls.inbox.find(ask.values["id"])
        return json_response(200, shown.approval(await self._admin.calls.answer(approval.id, answer)))

    async def _grants(self, _ask: Ask) -> Reply:
        return json_response(200, [shown.grant(g) for g in await self._admin.grants.list()])

    async def _revoke(self, ask: Ask) -> Reply:
        matches = [
            g.id
            for g in await self._admin.grants.list()
            if g.id.startswith(ask.values["id"]) or g.id.endswith(ask.values["id"])
        ]
        if len(matches) != 1 or not await self._admin.grants.revoke(matches[0]):
            raise InvalidArgs("There is no one live grant with that id. See `agent-gate grants list`")
        return json_response(200, {"revoked": matches[0]})

    async def _calls_page(self, ask: Ask) -> Reply:
        await self._admin.store.flush()
        params = ask.request.params()
        filters = Filters(
            caller=params.get("caller"),
            tool=params.get("tool"),
            state=params.get("state"),
            text=params.get("text"),
            since=ask.number("since", 0, 1e12) or None,
            until=ask.number("until", 0, 1e12) or None,
        )
        page = await search(
            self._admin.store, filters, limit=int(ask.number("limit", 50, 1000)), cursor=params.get("cursor")
        )
        return json_response(200, {"rows": [row.decoded() for row in page.rows], "next": page.cursor})

    async def _call(self, ask: Ask) -> Reply:
        await self._admin.store.flush()
        rows = await show(self._admin.store, ask.values["id"])
        if not rows:
            raise InvalidArgs("There is no call with that id in the record")
        return json_response(200, [row.decoded() for row in rows])

    async def _verify(self, _ask: Ask) -> Reply:
        await self._admin.store.flush()
        report = await verify(self._admin.store, self._admin.audit_key)
        return json_response(200, asdict(report) | {"ok": not report.problems})

    async def _export(self, ask: Ask) -> Reply:
        await self._admin.store.flush()
        kind = ask.request.params().get("format", "jsonl")
        if kind not in ("jsonl", "csv"):
            raise InvalidArgs("format must be jsonl or csv")
        lines = export(self._admin.store, kind)  # type: ignore[arg-type]
        return StreamResponse(
            200, (line.encode() async for line in lines), content_type=b"text/plain; charset=utf-8"
        )

    async def _tools(self, _ask: Ask) -> Reply:
        catalog = self._admin.shelf.catalog
        excluded = [asdict(left_out) for left_out in catalog.excluded]
        return json_response(
            200,
            {"digest": catalog.digest, "tools": [shown.tool(t) for t in catalog.tools], "excluded": excluded},
        )

    async def _sources(self, _ask: Ask) -> Reply:
        return json_response(200, [asdict(state) for state in self._admin.sources.states()])

    async def _connect(self, ask: Ask) -> Reply:
        self._admin.sources.reconnect(ask.values["key"])
        return json_response(202, {"connecting": ask.values["key"]})

    async def _changes(self, _ask: Ask) -> Reply:
        return json_response(200, [asdict(change) for change in self._admin.sources.changes()])

    async def _accept(self, ask: Ask) -> Reply:
        body = ask.body()
        source, tool = str(body.get("source", "")), str(body.get("tool", ""))
        if not self._admin.sources.accept(source, tool):
            raise InvalidArgs(f"{source} has no changed definition of {tool}")
        return json_response(200, {"accepted": tool})

    async def _explain(self, ask: Ask) -> Reply:
        """Check the arguments as a call would be checked, then show every rule on the way."""
        body = ask.body()
        name, arguments, caller = (
            str(body.get("tool", "")),
            body.get("arguments", {}),
            str(body.get("caller", "default")),
        )
        tool = self._admin.shelf.catalog.find(name)
        if tool is None:
            raise ToolNotFound(f"Unknown tool: {name[:120]}")
        if not isinstance(arguments, dict):
            raise InvalidArgs("arguments must be an object")
        filled = {**tool.defaults, **arguments}
        tool.validate(filled)
        signature = tool.sign(filled)
        decision = self._admin.policy().explain(tool, filled, signature, caller)
        return json_response(
            200, {"tool": tool.wire, "signature": signature, "caller": caller, **shown.decision(decision)}
        )

    async def _agents(self, _ask: Ask) -> Reply:
        return json_response(200, list(self._admin.agents()))

    async def _metrics(self, _ask: Ask) -> Reply:
        return Response(
            200, self._admin.metrics.text().encode(), content_type=b"text/plain; version=0.0.4; charset=utf-8"
        )

    async def _openapi(self, _ask: Ask) -> Reply:
        return json_response(200, self.routes.openapi(__version__))

    async def _events(self, _ask: Ask) -> Reply:
        return StreamResponse(200, self._stream())

    async def _stream(self) -> AsyncIterator[bytes]:
        """Every approval that comes or goes, and a comment now and then so that silence is never a broken line."""
        queue: asyncio.Queue[bytes] = asyncio.Queue(1000)

        def push(kind: str, value: Any) -> None:
            if not queue.full():
                queue.put_nowait(b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode(value)))

        def changed(_before: Catalog, now: Catalog) -> None:
            push("catalog", {"digest": now.digest, "tools": len(now.tools)})

        undo = [
            self._admin.calls.inbox.subscribe(lambda a: push("approval", shown.approval(a))),
            self._admin.shelf.subscribe(changed),
        ]
        try:
            yield b": connected\n\n"
            while True:
                try:
                    yield await asyncio.wait_for(queue.get(), 15)
                except TimeoutError:
                    yield b": still here\n\n"
        finally:
            for forget in undo:
                forget()
