"""The record as an operator reads it: rows, whole calls with their timeline, verification, export."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from agent_gate.audit import Filters, export, search, show, verify
from agent_gate.audit.record import SELECT, Row
from agent_gate.core.call import State
from agent_gate.errors import InvalidArgs
from agent_gate.net.http import StreamResponse, json_response
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.routing import NUMBER, TEXT, OperatorRequest, Reply, Route

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
}
ANSWERED = ("approved", "denied", "expired", "withdrawn")


def grouped(rows: Sequence[Row]) -> dict[str, list[dict[str, Any]]]:
    calls: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row.step):
        calls.setdefault(row.call, []).append(row.decoded())
    return calls


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
        until("resolve, validate, decide", marks.get("dispatched", at.get("dispatching")))
    elif came:
        until("resolve, validate, decide", at["pending"])
    if rows[-1]["state"] == "pending":
        until("waits for a person", now)
    until("waited for a person", answered)
    if answered is not None:
        until("waited for the source", marks.get("dispatched", at.get("dispatching")))
    until("upstream", marks.get("replied"))
    until("shaped, settled", next((at[s] for s in ("completed", "failed", "unknown") if s in at), None))
    return out


class Record:
    """The routes of calls and audit."""

    def __init__(self, admin: Admin) -> None:
        self._admin, self._store = admin, admin.record.store

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET", "/api/calls", self._page, "The record, newest first; ?by=call folds rows", query=QUERY
            ),
            Route("GET", "/api/calls/{id}", self._rows, "Every row of one call"),
            Route("GET", "/api/calls/{id}/timeline", self._timeline, "One call: where its time went"),
            Route("GET", "/api/audit/verify", self._verify, "Check the record's hash chain"),
            Route(
                "GET",
                "/api/audit/export",
                self._export,
                "The record as JSON lines or CSV",
                query={"format": {"enum": ["jsonl", "csv"]}},
            ),
        ]

    async def _page(self, ask: OperatorRequest) -> Reply:
        await self._store.flush()
        params = ask.request.params()
        filters = Filters(
            caller=ask.param("caller"),
            tool=ask.param("tool"),
            state=ask.param("state"),
            text=ask.param("text"),
            since=ask.number("since", 0, 1e12) or None,
            until=ask.number("until", 0, 1e12) or None,
        )
        page = await search(
            self._store, filters, limit=int(ask.number("limit", 50, 1000)), cursor=params.get("cursor")
        )
        if params.get("by") == "call":
            return json_response(200, {"calls": await self._fold(page.rows), "next": page.cursor})
        return json_response(200, {"rows": [row.decoded() for row in page.rows], "next": page.cursor})

    async def _fold(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """The calls that the rows belong to, each whole and once, in the order of the rows."""
        ids = list(dict.fromkeys(row.call for row in rows))
        if not ids:
            return []
        marks = ", ".join("?" * len(ids))
        found = await self._store.read(f"{SELECT} WHERE call IN ({marks})", tuple(ids))
        calls = grouped([Row(*values) for values in found])
        return [summary(calls[call]) for call in ids]

    async def _search(self, call: str) -> list[dict[str, Any]]:
        await self._store.flush()
        rows = await show(self._store, call)
        if not rows:
            raise InvalidArgs("There is no call with that id in the record")
        return [row.decoded() for row in rows]

    async def _rows(self, ask: OperatorRequest) -> Reply:
        return json_response(200, await self._search(ask.values["id"]))

    async def _timeline(self, ask: OperatorRequest) -> Reply:
        rows = await self._search(ask.values["id"])
        return json_response(
            200, {**summary(rows), "spans": spans(rows, self._admin.clock.now()), "rows": rows}
        )

    async def _verify(self, _ask: OperatorRequest) -> Reply:
        await self._store.flush()
        report = await verify(self._store, self._admin.record.audit_key, self._admin.record.heads)
        return json_response(200, asdict(report) | {"ok": not report.problems})

    async def _export(self, ask: OperatorRequest) -> Reply:
        await self._store.flush()
        kind = ask.param("format") or "jsonl"
        if kind not in ("jsonl", "csv"):
            raise InvalidArgs("format must be jsonl or csv")
        lines = export(self._store, kind)  # type: ignore[arg-type]
        return StreamResponse(
            200, (line.encode() async for line in lines), content_type=b"text/plain; charset=utf-8"
        )
