"""The built-in source `agents`: one read, `sign_in`, that no agent can name. A yes to it lets a client in, and so does
the login of a person whose groups are enough."""

from collections.abc import Awaitable, Callable

import msgspec

from agent_gate.access.sign_in.desk import KEY, TOOL, SignInDesk
from agent_gate.core.approval import Approval
from agent_gate.core.call import Result
from agent_gate.core.ports import Job, Plan
from agent_gate.core.tool import Definition
from agent_gate.errors import ToolNotFound
from agent_gate.sources.base import SourceBase

TEXT = {"type": "string"}
SIGN_IN = Definition(
    name=TOOL,
    method=TOOL,
    effect=TOOL,
    template="{destination}",
    description="A client wants to come in as an agent.",
    input_schema={
        "type": "object",
        "properties": {
            "destination": TEXT,
            "claims": TEXT,
            "client": TEXT,
            "client_id": TEXT,
            "redirect_uri": TEXT,
            "namespaces": {"type": "array", "items": TEXT},
            "mode": TEXT,
            "days": {"type": "number"},
            "address": TEXT,
            "sign_in": TEXT,
            "person": TEXT,
        },
        "required": ["destination", "client", "client_id", "redirect_uri", "mode", "days", "sign_in"],
        "additionalProperties": False,
    },
    ask=(
        "{destination} wants to come in as agent {client}/NAME[ for {person}, who logged in at the provider]; name, "
        "sources, mode and days as below, or less. It calls itself “{claims}”, which nobody checked."
    ),
)
ApprovalOf = Callable[[str], Awaitable[Approval | None]]


class AgentsSource(SourceBase):
    """Acts on the approval itself, which has who said yes and on which terms; or where nobody was asked, on what the
    store says of the login."""

    kind = "builtin"
    key = namespace = KEY
    title = "Agents"

    def __init__(self, desk: SignInDesk, approval: ApprovalOf) -> None:
        self._desk, self._approval = desk, approval

    async def connect(self) -> tuple[Definition, ...]:
        return ()

    async def answer(self, job: Job) -> Result:
        if job.case.tool.upstream != TOOL:
            raise ToolNotFound("There is nothing else to do here")
        approval = await self._approval(job.case.call.id)
        if approval is None:
            terms = await self._desk.grant_own(job.case.call.id)
        elif approval.answered.by:
            terms = await self._desk.grant(approval)
        else:
            raise ToolNotFound("Nobody is let in without a person's yes")
        agreed = {"agent": terms.agent, "namespaces": terms.namespaces, "days": terms.days}
        return Result(msgspec.json.encode(agreed))


def plan(source: AgentsSource) -> Plan:
    return Plan(source=source, settings=KEY, known=(), reads=(SIGN_IN,), counts_for_ready=False)
