"""The gateway at a glance: status, what runs now, what needs a person, and the last hour in numbers."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from agent_gate import __version__
from agent_gate.calls.perform import Performance
from agent_gate.net.http import Response, json_response
from agent_gate.observe.trends import EVERY
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.routing import OperatorRequest, Reply, Route

Need = dict[str, Any]
TROUBLED = {
    "failed": "cannot be reached",
    "degraded": "does not feel well",
    "needs_auth": "needs a sign-in",
}


def need(problem: str, reason: str, page: str, *, act: tuple[str, str] | None = None) -> Need:
    """One thing to do: what is wrong, why, where to look, and the button (label and POST path) that may mend it."""
    action = {"label": act[0], "path": act[1]} if act else None
    return {"problem": problem, "reason": reason, "page": page, "action": action}


def part(key: str) -> str:
    """A source's key as one part of a path."""
    return quote(key, safe="")


def running(performance: Performance) -> dict[str, Any]:
    case = performance.case
    return {
        "call": case.call.id,
        "tool": case.tool.wire,
        "signature": case.signature,
        "caller": case.call.caller.name,
        "surface": case.call.surface,
        "since": performance.marks.get("dispatched") or performance.marks.get("received"),
    }


def status(admin: Admin) -> dict[str, Any]:
    return {
        "version": __version__,
        **admin.setup.listeners.announcement(),
        "sources": [
            {"key": s.key, "state": str(s.status), "reason": s.reason, "tools": s.tools}
            for s in admin.sources.states()
        ],
        "tools": len(admin.shelf.catalog.tools),
        "agents": [caller.name for caller in admin.who.callers()],
        "pending_approvals": len(admin.calls.inbox.open()),
        "running_calls": len(admin.calls.running()),
        "store_fault": admin.record.store.fault,
        "reload_fault": admin.setup.configuration.fault,
        "channel_faults": admin.setup.channel_faults(),
        "warnings": admin.setup.warnings(),
    }


class Overview:
    """The routes that concern the gateway as a whole."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/api/status", self._status, "The gateway at a glance"),
            Route("GET", "/api/me", self._me, "Who is logged in"),
            Route("GET", "/api/now", self._now, "What runs, what waits, what needs a person"),
            Route("GET", "/api/trends", self._trends, "Throughput, failures and latency of the last hour"),
            Route("POST", "/api/reload", self._reload, "Read the configuration again, all or nothing"),
            Route("GET", "/metrics", self._metrics, "Prometheus"),
        ]

    async def _status(self, _ask: OperatorRequest) -> Reply:
        return json_response(200, status(self._admin))

    async def _me(self, ask: OperatorRequest) -> Reply:
        wants = not self._admin.who.passphrases.check(ask.person, None)
        return json_response(200, {"person": ask.person, "channel": ask.channel, "passphrase": wants})

    async def _reload(self, _ask: OperatorRequest) -> Reply:
        return json_response(200, {"reloaded": True, "warnings": await self._admin.setup.reload()})

    async def _now(self, _ask: OperatorRequest) -> Reply:
        calls = self._admin.calls
        now = {
            "running": [running(performance) for performance in calls.running()],
            "pending": len(calls.inbox.open()),
            "needs": list(self._needs()),
        }
        return json_response(200, now)

    def _needs(self) -> Iterator[Need]:
        store, configuration = self._admin.record.store, self._admin.setup.configuration
        if store.fault:
            yield need("Calls are refused: the store cannot be written", store.fault, "health")
        if configuration.fault:
            reload = "Reload", "/api/reload"
            yield need("The new configuration is not used", configuration.fault, "policy", act=reload)
        for channel, why in self._admin.setup.channel_faults().items():
            yield need(f"Questions do not get through to {channel}", why, "approvals")
        for state in self._admin.sources.states():
            if state.status in TROUBLED:
                again = ("Try now", f"/api/sources/{part(state.key)}/connect")
                problem = f"{state.title or state.key} {TROUBLED[state.status]}"
                if state.status == "needs_auth":
                    yield need(problem, state.reason, f"connections/{part(state.key)}")
                else:
                    yield need(problem, state.reason, f"sources/{part(state.key)}", act=again)
        for change in self._admin.sources.changes():
            problem = f"{change.tool} of {change.source} is not what you accepted"
            held = "What you accepted is served until you accept what it is now."
            reason = held if change.held else "The new definition is served already."
            yield need(problem, reason, f"sources/{part(change.source)}")
        for warning in self._admin.setup.warnings():
            yield need("The configuration has a warning", warning, "policy")

    async def _trends(self, _ask: OperatorRequest) -> Reply:
        trends = self._admin.numbers.trends
        sources = self._admin.numbers.metrics.client
        return json_response(
            200,
            {
                "every": EVERY,
                "points": list(trends.points),
                "totals": trends.totals(),
                "sources": [
                    {"source": labels[0], "calls": sum(row[:-1]), "mean": row[-1] / max(1.0, sum(row[:-1]))}
                    for labels, row in sorted(sources.values.items())
                ],
            },
        )

    async def _metrics(self, _ask: OperatorRequest) -> Reply:
        text = self._admin.numbers.metrics.text().encode()
        return Response(200, text, content_type=b"text/plain; version=0.0.4; charset=utf-8")
