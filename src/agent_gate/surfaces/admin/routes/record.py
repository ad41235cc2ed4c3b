"""The record as an operator reads it: rows, whole calls with their timeline, verification, export."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from agent_gate.audit import Filters, export, search, show, verify
from agent_gate.audit.calls import CallFilters, export_calls, search_calls
from agent_gate.audit.query import Format, csv_lines, harmless
from agent_gate.audit.record import Row
from agent_gate.core.call import State
from agent_gate.errors import InvalidArgs
from agent_gate.net.http import HttpAnswer, StreamResponse
from agent_gate.results.seen import read_seen
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.reasons import SAYS
from agent_gate.surfaces.admin.routing import NUMBER, TEXT, OperatorRequest, Route, RouteAnswer

QUERY = {
    "caller": TEXT,
    "tool": TEXT,
    "state": TEXT,
    "text": TEXT,
    "since": NUMBER,
    "until": NUMBER,
    "limit": NUMBER,
    "cursor": TEXT,
    "by": {"enum": ["row", "call"]},
    "source": TEXT,
    "longer": NUMBER,
}
CALLS = ("caller", "source", "tool", "state", "text", "since", "until", "longer")
ANSWERED = ("approved", "denied", "expired", "withdrawn")


EXPORTED = (
    *("at", "caller", "tool", "arguments", "state", "seconds", "size", "decision", "rule", "error", "call"),
)
MOST_EXPORTED = 100_000
LOOK_SECONDS = 2.0
"""How long one search may look; then it says how far back it came, and goes on from there when asked again."""


def checked_format(ask: OperatorRequest) -> Format:
    kind = ask.param("format") or "jsonl"
    if kind not in ("jsonl", "csv"):
        raise InvalidArgs("format must be jsonl or csv")
    return kind  # type: ignore[return-value]


def as_cell(value: Any) -> str | float | int | None:
    """A value as a cell of a table: what has parts becomes JSON."""
    return (
        value
        if value is None or isinstance(value, str | int | float)
        else msgspec.json.encode(value).decode()
    )


def fitting(calls: Sequence[Sequence[Row]], filters: CallFilters) -> list[dict[str, Any]]:
    """The calls in a line each; how long one took that has a single row is known only now."""
    told = [summary([row.decoded() for row in rows]) for rows in calls]
    longer = filters.longer
    return [call for call in told if longer is None or (call["seconds"] or 0.0) >= longer]


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One call in a line: what was asked, by whom, how it ended, how long it took."""
    first, last = rows[0], rows[-1]
    body, end = first["body"], last["body"]
    began = body.get("received") or end.get("marks", {}).get("received", first["at"])
    return {
        "call": first["call"],
        "at": first["at"],
        "state": last["state"],
        "caller": first["caller"],
        "tool": body.get("wire") or body.get("asked") or first["tool"],
        "tool_id": first["tool"],
        "signature": body.get("signature", ""),
        "surface": body.get("surface", ""),
        "decision": body.get("decision", ""),
        "rule": body.get("rule", ""),
        "where": body.get("where", ""),
        "granted": bool(body.get("grant")),
        "count": body.get("count", 1),
        "arguments": body.get("arguments", {}),
        "seconds": max(0.0, last["at"] - began) if State(last["state"]).final else None,
        "size": end.get("size"),
        "error": end.get("error"),
        "answer": next((answer(row) for row in rows if row["state"] in ANSWERED), None),
    }


def answer(row: dict[str, Any]) -> dict[str, Any]:
    """How the question about a call ended: by whom, where, for how long, and why."""
    said = {name: row["body"].get(name, "") for name in ("by", "channel", "lifetime", "reason")}
    return {"state": row["state"], "at": row["at"], **said}


def spans(rows: Sequence[dict[str, Any]], now: float) -> list[dict[str, Any]]:
    """Where the time went, up to `now` for what still goes on: `{name, start, end}` in the order of the story."""
    at = {row["state"]: row["at"] for row in rows}
    marks = rows[-1]["body"].get("marks", {})
    out: list[dict[str, Any]] = []
    came = rows[0]["body"].get("received")
    here = came or marks.get("received", rows[0]["at"])

    def until(name: str, end: float | None) -> None:
        nonlocal here
        if end is not None:
            out.append({"name": name, "start": here, "end": max(here, end)})
            here = max(here, end)

    answered = next((at[s] for s in ANSWERED if s in at), None)
    if "pending" not in at and "received" in marks:  # of a refusal nobody noted when it came in
        until("checked by the rules", marks.get("dispatched", at.get("dispatching")))
    elif came:
        until("checked by the rules", at["pending"])
    if rows[-1]["state"] == "pending":
        until("waits for a person", now)
    until("waited for a person", answered)
    if answered is not None:
        until("waited for the source", marks.get("dispatched", at.get("dispatching")))
    until("at the source", marks.get("replied"))
    until("recorded", next((at[s] for s in ("completed", "failed", "unknown") if s in at), None))
    return out


class RecordRoutes:
    def __init__(self, admin: Admin) -> None:
        self._admin, self._store = admin, admin.record.store

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/api/calls",
                self._show_page,
                "The record, newest first; ?by=call folds rows",
                query=QUERY,
            ),
            Route(
                "GET",
                "/api/calls/export",
                self._export_calls,
                "The calls that fit, as JSON lines or CSV",
                query={name: QUERY[name] for name in CALLS} | {"format": {"enum": ["jsonl", "csv"]}},
            ),
            Route("GET", "/api/calls/{id}", self._show_rows, "Every row of one call"),
            Route("GET", "/api/calls/{id}/timeline", self._show_timeline, "One call: where its time went"),
            Route("GET", "/api/audit/verify", self._verify, "Check the record's hash chain"),
            Route(
                "POST",
                "/api/audit/cut",
                self._cut,
                "Cut away what is older than so many days",
                body={"days": NUMBER},
                required=("days",),
            ),
            Route(
                "GET",
                "/api/audit/export",
                self._export,
                "The record as JSON lines or CSV",
                query={"format": {"enum": ["jsonl", "csv"]}},
            ),
        ]

    async def _show_page(self, ask: OperatorRequest) -> RouteAnswer:
        await self._store.flush()
        limit, cursor = int(ask.number("limit", 50, 1000)), ask.param("cursor")
        clock = self._admin.clock
        ends = clock.monotonic() + LOOK_SECONDS

        def has_time() -> bool:
            return clock.monotonic() < ends

        if ask.param("by") == "call":
            filters = self._call_filters(ask)
            found = await search_calls(self._store, filters, limit=limit, cursor=cursor, has_time=has_time)
            return {"calls": fitting(found.calls, filters), "next": found.cursor, "back_to": found.back_to}
        filters_ = Filters(
            caller=ask.param("caller"),
            tool=ask.param("tool"),
            state=ask.param("state"),
            text=ask.param("text"),
            since=ask.number("since", 0, 1e12) or None,
            until=ask.number("until", 0, 1e12) or None,
        )
        page = await search(self._store, filters_, limit=limit, cursor=cursor, has_time=has_time)
        rows = [row.decoded() for row in page.rows]
        return {"rows": rows, "next": page.cursor, "back_to": page.back_to}

    def _call_filters(self, ask: OperatorRequest) -> CallFilters:
        """What the query asks for; a tool may be given by any of its names, a source by its key."""
        tool, source = ask.param("tool"), ask.param("source")
        known = self._admin.shelf.catalog.find(tool) if tool else None
        namespaces = {state.key: state.namespace for state in self._admin.sources.states()}
        return CallFilters(
            caller=ask.param("caller"),
            tool=known.id if known is not None else tool,
            namespace=namespaces.get(source, source) if source else None,
            state=ask.param("state"),
            text=ask.param("text"),
            since=ask.number("since", 0, 1e12) or None,
            until=ask.number("until", 0, 1e12) or None,
            longer=ask.number("longer", 0, 1e9) or None,
        )

    async def _export_calls(self, ask: OperatorRequest) -> HttpAnswer:
        await self._store.flush()
        kind = checked_format(ask)
        lines = self._tell_calls(self._call_filters(ask), kind)
        return StreamResponse(200, lines, content_type=b"text/plain; charset=utf-8")

    async def _tell_calls(self, filters: CallFilters, kind: str) -> AsyncIterator[bytes]:
        if kind == "csv":
            yield csv_lines([EXPORTED]).encode()
        async for calls in export_calls(self._store, filters, MOST_EXPORTED):
            told = fitting(calls, filters)
            if kind == "csv":
                yield csv_lines(
                    [tuple(harmless(as_cell(call[name])) for name in EXPORTED) for call in told]
                ).encode()
            else:
                yield msgspec.json.Encoder().encode_lines(told)

    async def _search(self, call: str) -> list[dict[str, Any]]:
        await self._store.flush()
        rows = await show(self._store, call) or await self._search_question(call)
        if not rows:
            raise InvalidArgs("There is no call with that id in the record, nor a question about one")
        return [row.decoded() for row in rows]

    async def _search_question(self, ident: str) -> list[Row]:
        """The rows of the call that a question was about, for whoever has the question's id from a message."""
        try:
            approval = await self._admin.calls.inbox.find(ident)
        except InvalidArgs:
            return []
        return await show(self._store, approval.call_id)

    async def _show_rows(self, ask: OperatorRequest) -> RouteAnswer:
        return await self._search(ask.values["id"])

    async def _show_timeline(self, ask: OperatorRequest) -> RouteAnswer:
        rows, now = await self._search(ask.values["id"]), self._admin.clock.now()
        seen = await read_seen(self._store, rows[0]["call"], now) if ask.rights.include("operator") else None
        result = asdict(seen) | {"cut": seen.cut} if seen is not None else None
        keep = self._admin.setup.configuration.settings.results.keep
        told = {"spans": spans(rows, now), "rows": rows, "result": result, "keep": keep}
        call = summary(rows)
        says = SAYS.get((call["error"] or {}).get("code", call["state"]), "")
        return {**call, **told, "says": says}

    async def _verify(self, _ask: OperatorRequest) -> RouteAnswer:
        await self._store.flush()
        ledger = self._admin.record
        report = await verify(self._store, ledger.audit_key, ledger.heads, ledger.cut_key)
        return asdict(report) | {"ok": report.ok}

    async def _cut(self, ask: OperatorRequest) -> RouteAnswer:
        days = ask.body().get("days")
        if not isinstance(days, int | float) or isinstance(days, bool):
            raise InvalidArgs("Say how many days are kept, as a number such as 90")
        await self._store.flush()
        return {"rows": await self._admin.record.cut(days, ask.person)}

    async def _export(self, ask: OperatorRequest) -> HttpAnswer:
        await self._store.flush()
        lines = export(self._store, checked_format(ask))
        return StreamResponse(
            200, (line.encode() async for line in lines), content_type=b"text/plain; charset=utf-8"
        )
