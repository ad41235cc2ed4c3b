"""Work on the rules: try changed ones on the record, let the record suggest some, make one from a question, remove one."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from agent_gate.audit import Filters, RecordPage, search
from agent_gate.config.files.edit import Edit
from agent_gate.config.files.yamledit import append_rule, drop_rule
from agent_gate.core.tool import Json
from agent_gate.errors import ConfigError, InvalidArgs, Unauthorized
from agent_gate.net.http import HttpAnswer, json_response
from agent_gate.policy.simulate import Recorded, Simulation, recorded
from agent_gate.policy.suggest import TOLD_OF_QUESTIONS, past_questions, rule_from, suggest
from agent_gate.policy.written import policy_of
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.routing import FLAG, NUMBER, TEXT, OperatorRequest, Route, RouteAnswer

log = logging.getLogger("agent_gate.admin")
PAGE = 1000
MOST_PAGES = 200
WEEK = 7 * 86_400.0
PLACE = re.compile(r"(.+):(\d+):(\d+)")
ACTIONS, SCOPES = ("allow", "ask", "deny"), ("exact", "tool")


def digest(edit: Edit) -> str:
    """Names an edit, so that what is written is what was shown."""
    return sha256(edit.text.encode()).hexdigest()[:32]


def decided(page: RecordPage) -> Iterator[Recorded]:
    """The calls whose decision stands on this page."""
    return (call for row in page.rows if (call := recorded(row.decoded())) is not None)


class PolicyTools:
    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def routes(self) -> list[Route]:
        return [
            Route(
                "POST",
                "/api/policy/simulate",
                self._simulate,
                "What would differ if recorded calls met these rules",
                body={"text": TEXT, "name": TEXT, "since": NUMBER},
                required=("text",),
                role="viewer",
            ),
            Route(
                "GET",
                "/api/policy/suggest",
                self._suggest,
                "Rules that past answers suggest",
                query={"since": NUMBER},
            ),
            Route(
                "POST",
                "/api/policy/rules",
                self._make,
                "Make a rule from a question or a suggestion, or remove one by where it stands: the difference first, then with `apply` and its digest the change",
                body={
                    "remove": TEXT,
                    "approval": TEXT,
                    "rule": {"type": "object"},
                    "action": {"enum": list(ACTIONS)},
                    "scope": {"enum": list(SCOPES)},
                    "apply": FLAG,
                    "digest": TEXT,
                    "passphrase": TEXT,
                },
            ),
        ]

    async def _read_pages(self, since: float) -> AsyncIterator[RecordPage]:
        """The record since then, newest first, as far back as is looked at."""
        await self._admin.record.store.flush()
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await search(self._admin.record.store, Filters(since=since), limit=PAGE, cursor=cursor)
            yield page
            cursor = page.cursor
            if cursor is None:
                return

    async def _simulate(self, ask: OperatorRequest) -> HttpAnswer:
        body = ask.body()
        text, name = body.get("text"), str(body.get("name") or "new rules")[:200]
        since = body.get("since", self._admin.clock.now() - WEEK)
        if not isinstance(text, str) or not isinstance(since, int | float):
            raise InvalidArgs('Send {"text": the rules as YAML, "since": a time in seconds}')
        try:
            policy = policy_of(self._admin.setup.configuration.parse_permissions(text, name))
        except ConfigError as error:
            raise InvalidArgs(error.message) from None
        simulation, more = Simulation(policy, self._admin.shelf.catalog.find), False
        async for page in self._read_pages(since):
            # A month of calls takes seconds to decide, in which the others must go on.
            await asyncio.to_thread(simulation.add, decided(page))
            more = page.cursor is not None
        return await asyncio.to_thread(
            lambda: json_response(200, asdict(simulation.report()) | {"more": more})
        )

    async def _suggest(self, ask: OperatorRequest) -> RouteAnswer:
        since = ask.number("since", self._admin.clock.now() - 4 * WEEK, 1e12)
        rows = [
            row.decoded()
            async for page in self._read_pages(since)
            for row in page.rows
            if row.state in TOLD_OF_QUESTIONS
        ]
        questions = past_questions(rows)
        find = self._admin.shelf.catalog.find
        found = await asyncio.to_thread(suggest, self._admin.setup.policy(), questions, find)
        return {"questions": len(questions), "suggestions": [asdict(one) for one in found]}

    async def _make(self, ask: OperatorRequest) -> RouteAnswer:
        body, path = ask.body(), self._path()
        said: dict[str, Json]
        if "remove" in body:
            where = str(body["remove"])
            said, edit = {"removed": where}, self._edit(path, lambda: self._drop(path, where))
        else:
            rule = await self._rule(body)
            said, edit = {"rule": rule}, self._edit(path, lambda: append_rule(path, rule))
        if body.get("apply"):
            self._check(ask, body, edit)
            await self._admin.setup.write(path, edit, "The rules are as they were")
            log.info("The rules were changed", extra={"person": ask.person, "approval": body.get("approval")})
        shown = {"file": str(path), **said, "diff": edit.diff, "digest": digest(edit)}
        return shown | {"applied": bool(body.get("apply"))}

    async def _rule(self, body: Mapping[str, Json]) -> Mapping[str, Json]:
        """The rule that a suggestion says, or that answers a question."""
        action, scope = body.get("action", "allow"), body.get("scope", "exact")
        if action not in ACTIONS or scope not in SCOPES:
            raise InvalidArgs("action is allow, ask or deny; scope is exact or tool")
        given = body.get("rule")
        if isinstance(given, dict):
            return {key: value for key, value in given.items() if value is not None}
        approval = await self._admin.calls.inbox.find(str(body.get("approval", "")))
        tool = self._admin.shelf.catalog.find(approval.tool_id)
        return rule_from(approval, tool, action, scope)

    def _drop(self, path: Path, where: str) -> Edit:
        """Without the rule in force that stands there; in a file that changed since, another may stand on its line."""
        found = PLACE.fullmatch(where)
        known = any(rule.where == where for rule in self._admin.setup.policy().rules)
        if found is None or not known or not str(path).endswith(found[1]):
            raise InvalidArgs(f"No rule of {path} stands at {where[:200]}. Look at the rules again")
        return drop_rule(path, int(found[2]), int(found[3]))

    def _path(self) -> Path:
        path = self._admin.setup.configuration.permissions()
        if path is None:
            raise InvalidArgs(
                "There is no permissions file to write to. Start the gateway with --permissions FILE"
            )
        return path

    def _edit(self, path: Path, make: Callable[[], Edit]) -> Edit:
        """The changed file, which must still be a file of rules."""
        try:
            edit = make()
            policy_of(self._admin.setup.configuration.parse_permissions(edit.text, str(path)))
        except ConfigError as error:
            raise InvalidArgs(error.message) from None
        return edit

    def _check(self, ask: OperatorRequest, body: Mapping[str, Json], edit: Edit) -> None:
        if not self._admin.who.passphrases.check(ask.person, body.get("passphrase")):
            raise Unauthorized("This gateway wants the approver's passphrase before it changes rules")
        if body.get("digest") != digest(edit):
            raise InvalidArgs("The file or the rule is not what was shown. Look at the difference again")
