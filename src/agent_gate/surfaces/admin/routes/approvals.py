"""Questions and remembered answers: the inbox, its history, answering one or many, grants."""

import asyncio
from typing import Any

from agent_gate.approval.pictures import read_picture
from agent_gate.core.approval import Answer, Approval
from agent_gate.core.tool import Tool
from agent_gate.errors import GatewayError, InvalidArgs, Unauthorized, ViewFailed
from agent_gate.net.http import Response, json_response
from agent_gate.surfaces.admin import shown
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.routing import FLAG, NUMBER, TEXT, TEXTS, OperatorRequest, Reply, Route

MOST_AT_ONCE = 1000
ANSWER = {
    "verdict": {"enum": ["approve", "deny"]},
    "lifetime": {"enum": list(shown.LIFETIMES)},
    "reason": TEXT,
    "passphrase": TEXT,
}
LIST = {
    "state": {"enum": ["pending", "answered", "all"]},
    "limit": NUMBER,
    "before": NUMBER,
    "brief": FLAG,
}


class Approvals:
    """The routes of the inbox and of grants."""

    def __init__(self, admin: Admin) -> None:
        self._admin, self._inbox = admin, admin.calls.inbox

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
            ),
            Route("GET", "/api/approvals/{id}", self._one, "One question, every argument in full"),
            Route("GET", "/api/approvals/{id}/picture", self._picture, "What its source shows of a question"),
            Route(
                "POST",
                "/api/approvals/{id}",
                self._answer,
                "Answer a question",
                body=ANSWER,
                required=("verdict",),
            ),
            Route("GET", "/api/grants", self._grants, "Remembered answers that still count"),
            Route("DELETE", "/api/grants/{id}", self._revoke, "Take a grant back"),
        ]

    async def _list(self, ask: OperatorRequest) -> Reply:
        state = ask.param("state") or "pending"
        render = shown.approval_row if ask.param("brief") else shown.approval
        found = self._inbox.open() if state == "pending" else await self._past(ask, state)
        return json_response(200, [render(approval, self._tool(approval)) for approval in found])

    def _tool(self, approval: Approval) -> Tool | None:
        return self._admin.shelf.catalog.find(approval.tool_id)

    async def _past(self, ask: OperatorRequest, state: str) -> list[Approval]:
        limit, before = int(ask.number("limit", 100, 1000)), ask.number("before", 0, 1e12) or None
        return await self._inbox.history(limit, before, ended=state == "answered")

    async def _one(self, ask: OperatorRequest) -> Reply:
        approval = await self._inbox.find(ask.values["id"])
        tool = self._tool(approval)
        return json_response(200, shown.approval(approval, tool) | {"details": shown.details(approval, tool)})

    async def _picture(self, ask: OperatorRequest) -> Reply:
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
        passphrase = body.get("passphrase")
        if not self._admin.who.passphrases.check(
            ask.person, passphrase if isinstance(passphrase, str) else None
        ):
            raise Unauthorized("This gateway wants the approver's passphrase with every answer")
        reason = str(body.get("reason") or "")[:500]
        return Answer(
            verdict=verdict, person=ask.person, channel=ask.channel, lifetime=lifetime, reason=reason
        )

    async def _answer(self, ask: OperatorRequest) -> Reply:
        answer = self._said(ask, ask.body())
        approval = await self._inbox.find(ask.values["id"])
        answered = await self._admin.calls.answer(approval.id, answer)
        became = shown.became(answered, await self._admin.calls.became(answered))
        return json_response(200, shown.approval(answered, self._tool(answered)) | {"became": became})

    async def _answer_many(self, ask: OperatorRequest) -> Reply:
        """Each question is answered on its own; one that is gone already does not stop the others."""
        body = ask.body()
        ids = body.get("ids")
        if not isinstance(ids, list) or not 0 < len(ids) <= MOST_AT_ONCE:
            raise InvalidArgs(f"ids must list 1 to {MOST_AT_ONCE} approvals")
        answer = self._said(ask, body)
        answered = [(str(id_), await self._try_answer(str(id_), answer)) for id_ in ids]
        return json_response(
            200, {"results": await asyncio.gather(*(self._tell(*each) for each in answered))}
        )

    async def _try_answer(self, approval_id: str, answer: Answer) -> Approval | GatewayError:
        try:
            return await self._admin.calls.answer(approval_id, answer)
        except GatewayError as error:
            return error

    async def _tell(self, approval_id: str, answered: Approval | GatewayError) -> dict[str, Any]:
        """What one of many answers led to; all of them are waited for together."""
        if isinstance(answered, GatewayError):
            return {"id": approval_id, "error": answered.as_dict()}
        became = shown.became(answered, await self._admin.calls.became(answered))
        return {"id": approval_id, "state": str(answered.state), "became": became}

    async def _grants(self, _ask: OperatorRequest) -> Reply:
        await self._admin.record.store.flush()
        return json_response(200, [shown.grant(g) for g in await self._admin.grants.list()])

    async def _revoke(self, ask: OperatorRequest) -> Reply:
        matches = [
            g.id
            for g in await self._admin.grants.list()
            if g.id.startswith(ask.values["id"]) or g.id.endswith(ask.values["id"])
        ]
        if len(matches) != 1 or not await self._admin.grants.revoke(matches[0]):
            raise InvalidArgs("There is no one live grant with that id. See `agent-gate grants list`")
        return json_response(200, {"revoked": matches[0]})
