"""The gateway at a glance: status, what runs now, what needs a person, and the last hour in numbers."""

from collections.abc import Iterable
from typing import Any

from agent_gate import __version__
from agent_gate.calls.perform import Performance
from agent_gate.errors import InvalidArgs
from agent_gate.net.http import HttpAnswer, Response
from agent_gate.observe.trends import RANGES
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.needs import needs
from agent_gate.surfaces.admin.reasons import SAYS
from agent_gate.surfaces.admin.routes.gateways import list_gateways
from agent_gate.surfaces.admin.routing import TEXT, OperatorRequest, Route, RouteAnswer


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
    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/api/status", self._show_status, "The gateway at a glance"),
            Route("GET", "/api/me", self._show_me, "Who is logged in, and what they may do"),
            Route("GET", "/api/now", self._show_now, "What runs, what waits, what needs a person"),
            Route(
                "GET",
                "/api/trends",
                self._show_trends,
                "Calls, failures, time and agents of the last hour, day, week or month",
                query={"range": {"enum": list(RANGES)}, "gateway": TEXT},
            ),
            Route("POST", "/api/reload", self._reload, "Read the configuration again, all or nothing"),
            Route("GET", "/metrics", self._show_metrics, "Prometheus"),
        ]

    async def _show_status(self, _ask: OperatorRequest) -> RouteAnswer:
        return status(self._admin) | {"gateways": await list_gateways(self._admin)}

    async def _show_me(self, ask: OperatorRequest) -> RouteAnswer:
        wants = not self._admin.who.passphrases.check(ask.person, None)
        narrowed = ask.rights.namespaces
        return {
            "person": ask.person,
            "channel": ask.channel,
            "passphrase": wants,
            "may": ask.rights.may(),
            "namespaces": None if narrowed is None else sorted(narrowed),
        }

    async def _reload(self, _ask: OperatorRequest) -> RouteAnswer:
        return {"reloaded": True, "warnings": await self._admin.setup.reload()}

    async def _show_now(self, _ask: OperatorRequest) -> RouteAnswer:
        calls = self._admin.calls
        kept = [one.name for one in await self._admin.secrets.custody.secrets.list_names()]
        return {
            "running": [running(performance) for performance in calls.running()],
            "pending": len(calls.inbox.open()),
            "needs": list(needs(self._admin, kept)),
        }

    async def _show_trends(self, ask: OperatorRequest) -> RouteAnswer:
        admin, span = self._admin, RANGES.get(ask.param("range") or "hour")
        if span is None:
            raise InvalidArgs(f"range must be one of {', '.join(RANGES)}")
        gateway = ask.param("gateway") or None
        found = await admin.numbers.trends.look_back(span, gateway)
        await self._check_gateway(gateway, found["gateways"])
        sources = admin.numbers.metrics.client
        means = [
            {"source": labels[0], "calls": sum(row[:-1]), "mean": row[-1] / max(1.0, sum(row[:-1]))}
            for labels, row in sorted(sources.values.items())
        ]
        reasons = [{"code": code, "says": SAYS.get(code, code), "count": n} for code, n in found["reasons"]]
        return found | {"reasons": reasons, "sources": means}

    async def _check_gateway(self, wanted: str | None, counted: Iterable[str]) -> None:
        """One that is gone is still known by what it did."""
        known = {*counted, *(one["id"] for one in await list_gateways(self._admin))}
        if wanted and wanted not in known:
            raise InvalidArgs(f"There is no gateway {wanted!r} here. There are: {', '.join(sorted(known))}")

    async def _show_metrics(self, _ask: OperatorRequest) -> HttpAnswer:
        text = self._admin.numbers.metrics.text().encode()
        return Response(200, text, content_type=b"text/plain; version=0.0.4; charset=utf-8")
