"""Questions and remembered answers: the inbox, its history, answering one or many, grants."""

import asyncio
from collections.abc import Callable
from typing import Any

from agent_gate.access.answering import verdicts_of
from agent_gate.access.roles import check_answer
from agent_gate.approval.pictures import read_picture
from agent_gate.core.approval import Answer, Approval
from agent_gate.core.tool import Tool
from agent_gate.errors import GatewayError, InvalidArgs, Unauthorized, ViewFailed
from agent_gate.net.http import HttpAnswer, Response
from agent_gate.surfaces.admin import shown
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.risks import Risks
from agent_gate.surfaces.admin.routing import (
    FLAG,
    NUMBER,
    OBJECT,
    TEXT,
    TEXTS,
    OperatorRequest,
    Route,
    RouteAnswer,
)

MOST_AT_ONCE = 1000
Render = Callable[[Approval, Tool | None], dict[str, Any]]
ANSWER = {
    "verdict": {"enum": ["approve", "deny"]},
    "lifetime": {"enum": list(shown.LIFETIMES)},
    "reason": TEXT,
    "passphrase": TEXT,
    "number": TEXT,
    "terms": OBJECT,
}
LIST = {
    "state": {"enum": ["pending", "answered", "all"]},
    "limit": NUMBER,
    "before": NUMBER,
    "brief": FLAG,
}


class Approvals:
    def __init__(self, admin: Admin) -> None:
        self._admin, self._inbox = admin, admin.calls.inbox
        self._risks = Risks(admin.record.store, admin.clock)

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/api/approvals",
                self._list,
                "Open questions, or past ones with ?state=all",
                query=LIST,
            ),
            Route(
                "POST",
                "/api/approvals",
                self._answer_many,
                "Answer several questions alike",
                body={"ids": TEXTS, **ANSWER},
                required=("ids", "verdict"),
                role="approver",
            ),
            Route("GET", "/api/approvals/{id}", self._show_one, "One question, every argument in full"),
            Route(
                "GET",
                "/api/approvals/{id}/picture",
                self._show_picture,
                "What its source shows of a question",
            ),
            Route(
                "POST",
                "/api/approvals/{id}",
                self._answer,
                "Answer a question",
                body=ANSWER,
                required=("verdict",),
                role="approver",
            ),
            Route("GET", "/api/grants", self._list_grants, "Remembered answers that still count"),
            Route("DELETE", "/api/grants/{id}", self._revoke, "Take a grant back", role="approver"),
        ]

    async def _list(self, ask: OperatorRequest) -> RouteAnswer:
        state = ask.param("state") or "pending"
        render = shown.approval_row if ask.param("brief") else shown.approval
        found = self._inbox.open() if state == "pending" else await self._list_past(ask, state)
        return [await self._show(ask, approval, render) for approval in found]

    async def _show(self, ask: OperatorRequest, approval: Approval, render: Render) -> dict[str, Any]:
        tool = self._tool(approval)
        open_to = {"you_may": verdicts_of(approval, ask.person, ask.rights)}
        return render(approval, tool) | open_to | {"risks": await self._risks.find(approval, tool)}

    def _tool(self, approval: Approval) -> Tool | None:
        return self._admin.shelf.catalog.find(approval.tool_id)

    async def _list_past(self, ask: OperatorRequest, state: str) -> list[Approval]:
        limit, before = int(ask.number("limit", 100, 1000)), ask.number("before", 0, 1e12) or None
        return await self._inbox.list_past(limit, before, ended=state == "answered")

    async def _show_one(self, ask: OperatorRequest) -> RouteAnswer:
        approval = await self._inbox.find(ask.values["id"])
        tool = self._tool(approval)
        whole = await self._show(ask, approval, shown.approval)
        people = self._admin.who.people
        named = approval.decision.approvers or people.names()
        answers = [name for name in named if people.rights(name).answer_for(approval.namespace)]
        details = shown.details(approval, tool)
        return whole | {"details": details, "may_answer": answers}

    async def _show_picture(self, ask: OperatorRequest) -> HttpAnswer:
        approval = await self._inbox.find(ask.values["id"])
        picture = await read_picture(self._admin.record.store, approval)
        if picture is None:
            raise ViewFailed("This question has no picture, or it is not kept any more")
        return Response(200, picture.body, content_type=picture.media_type.encode("ascii"))

    def _said(self, ask: OperatorRequest, body: dict[str, Any]) -> Answer:
        """The answer in the body, from a person who may give one."""
        verdict, lifetime = body.get("verdict"), body.get("lifetime", "once")
        if verdict not in ("approve", "deny") or lifetime not in shown.LIFETIMES:
            raise InvalidArgs(
                'Answer with {"verdict": "approve" or "deny", "lifetime": "once", "session", "hour" or "always"}'
            )
        if not self._admin.who.passphrases.check(ask.person, body.get("passphrase")):
            raise Unauthorized("This gateway wants the approver's passphrase with every answer")
        terms = body.get("terms") or {}
        if not isinstance(terms, dict):
            raise InvalidArgs('terms is an object, such as {"namespaces": ["notes"], "days": 7}')
        return Answer(
            verdict=verdict,
            person=ask.person,
            channel=ask.channel,
            lifetime=lifetime,
            reason=str(body.get("reason") or "")[:500],
            number=str(body.get("number") or "").strip(),
            terms=terms,
        )

    async def _answer(self, ask: OperatorRequest) -> RouteAnswer:
        answer = self._said(ask, ask.body())
        approval = await self._inbox.find(ask.values["id"])
        check_answer(ask.rights, approval.namespace, ask.person)
        answered = await self._admin.calls.answer(approval.id, answer)
        became = shown.became(answered, await self._admin.calls.learn_outcome(answered))
        return shown.approval(answered, self._tool(answered)) | {"became": became}

    async def _answer_many(self, ask: OperatorRequest) -> RouteAnswer:
        """Each question is answered on its own; one that is gone already does not stop the others."""
        body = ask.body()
        ids = body.get("ids")
        if not isinstance(ids, list) or not 0 < len(ids) <= MOST_AT_ONCE:
            raise InvalidArgs(f"ids must list 1 to {MOST_AT_ONCE} approvals")
        answer = self._said(ask, body)
        answered = [(str(id_), await self._try_answer(ask, str(id_), answer)) for id_ in ids]
        return {"results": await asyncio.gather(*(self._tell(*each) for each in answered))}

    async def _try_answer(
        self, ask: OperatorRequest, approval_id: str, answer: Answer
    ) -> Approval | GatewayError:
        try:
            approval = await self._inbox.get(approval_id)
            if approval is not None:
                check_answer(ask.rights, approval.namespace, ask.person)
            return await self._admin.calls.answer(approval_id, answer)
        except GatewayError as error:
            return error

    async def _tell(self, approval_id: str, answered: Approval | GatewayError) -> dict[str, Any]:
        """What one of many answers led to; all of them are waited for together."""
        if isinstance(answered, GatewayError):
            return {"id": approval_id, "error": answered.as_dict()}
        became = shown.became(answered, await self._admin.calls.learn_outcome(answered))
        return {"id": approval_id, "state": str(answered.state), "became": became}

    async def _list_grants(self, ask: OperatorRequest) -> RouteAnswer:
        await self._admin.record.store.flush()
        return [
            shown.grant(g) | {"you_may": ["revoke"] if ask.rights.answer_for(g.namespace) else []}
            for g in await self._admin.grants.list()
        ]

    async def _revoke(self, ask: OperatorRequest) -> RouteAnswer:
        asked, live = ask.values["id"], await self._admin.grants.list()
        matches = [grant for grant in live if grant.id.startswith(asked) or grant.id.endswith(asked)]
        if len(matches) == 1:
            check_answer(ask.rights, matches[0].namespace, ask.person)
        if len(matches) != 1 or not await self._admin.grants.revoke(matches[0].id):
            raise InvalidArgs("There is no one live grant with that id. See `agent-gate grants list`")
        return {"revoked": matches[0].id}
