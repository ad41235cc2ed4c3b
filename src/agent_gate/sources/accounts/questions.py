"""The calls about accounts that the gateway makes itself: questions to people, and what a sign-in brought back.

Each is a read of the source `connections` that no agent can name. A question reaches people over every channel on
which they answer agents; an answer of yes performs it.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from agent_gate.core.approval import Approval
from agent_gate.core.call import Call, Caller, Outcome, State
from agent_gate.core.tool import Definition
from agent_gate.vault.flows import Finished, Started

KEY = "connections"
UNKNOWN = "an account whose name is not known"
GATEWAY_CALLER = Caller(name="gateway", kind="operator", max_pending=100)


def question(name: str, description: str, ask: str, *arguments: str, secret: str = "") -> Definition:
    return Definition(
        name=name,
        method=name,
        effect=name,
        template="{source}",
        description=description,
        input_schema={
            "type": "object",
            "properties": {argument: {"type": "string"} for argument in arguments},
            "required": list(arguments),
        },
        ask=ask,
        secret=frozenset({secret} if secret else ()),
    )


CONFIRM = question(
    "confirm",
    "Use the account that came back from a sign-in which an agent began.",
    "Somebody signed in to {source} as {account} at {at}, by a link that an agent had asked for. "
    "Is it yours, and shall it be used?",
    "source",
    "owner",
    "account",
    "at",
)
INVITE = question(
    "invite",
    "Whether a person wants the sign-in that was begun for them; a no ends it.",
    "{requester} wants you to sign in to {source}. Open the link{code}, until {until}. "
    "Deny this if you did not expect it",
    "source",
    "requester",
    "code",
    "link",
    "until",
    "flow",
)
AGAIN = question(
    "again",
    "Begin a new sign-in in the place of one that has ended.",
    "The sign-in of {source} has ended: {why}. Begin a new one?",
    "source",
    "owner",
    "why",
)
FINISH = question(
    "finish",
    "What a browser or a device brought back from a sign-in.",
    "",
    "source",
    "answer",
    secret="answer",  # noqa: S106 - a name
)
QUESTIONS = (CONFIRM, INVITE, AGAIN, FINISH)


class CallsMade(Protocol):
    """The calls of the gateway, as far as it makes some of its own."""

    async def ask_about(self, call: Call, reason: str, approvers: tuple[str, ...] = ()) -> Approval: ...
    async def perform_for(self, call: Call, reason: str) -> Outcome: ...
    async def withdraw(self, call_id: str, caller: Caller) -> bool: ...


class AccountCalls:
    """Puts the questions, and takes back those that nobody has to answer any more.

    `denied` is told which flow a person does not want.
    """

    def __init__(self, calls: CallsMade, denied: Callable[[str], Awaitable[None]]) -> None:
        self._calls, self._denied = calls, denied
        self._invited: dict[str, str] = {}

    async def confirm(self, finished: Finished) -> None:
        """Ask the person who let the flow begin, or whoever may answer where no person did."""
        arguments = {
            "source": finished.source,
            "owner": finished.owner,
            "account": finished.connected.account or UNKNOWN,
            "at": moment(datetime.now(UTC).timestamp()),
        }
        await self._put(CONFIRM, arguments, "an account that came back by a link", finished.approver)

    async def invite(self, source: str, flow: str, started: Started, requester: str, person: str) -> None:
        """Bring the link, and the code where there is one, to the person who let the sign-in begin."""
        arguments = {
            "source": source,
            "requester": requester,
            "code": f" and enter the code {started.user_code}" if started.user_code else "",
            "link": started.url,
            "until": moment(started.expires_at),
            "flow": flow,
        }
        asked = await self._put(INVITE, arguments, "a sign-in that was begun", person)
        self._invited[flow] = asked.call_id

    async def ended(self, source: str, owner: str, why: str) -> None:
        """One notice for a sign-in that the other side took back."""
        arguments = {"source": source, "owner": owner, "why": why}
        await self._put(AGAIN, arguments, "a sign-in that has ended")

    async def finish(self, source: str, person: str, answer: str, surface: str) -> Outcome:
        """Put the end of a sign-in on record, as a call of the person whose it is."""
        call = Call(
            tool=f"{KEY}__{FINISH.name}",
            arguments={"source": source, "answer": answer},
            caller=Caller(name=person, kind="operator"),
            surface=surface,
            reads=True,
        )
        return await self._calls.perform_for(call, "a sign-in that was begun here")

    async def over(self, flow: str) -> None:
        """Take the invitation back: the sign-in was finished, or nobody can finish it any more."""
        if (call_id := self._invited.pop(flow, None)) is not None:
            await self._calls.withdraw(call_id, GATEWAY_CALLER)

    async def heard(self, approval: Approval) -> None:
        """A person who says no to an invitation ends its sign-in."""
        if approval.state is State.DENIED and approval.asked.wire == f"{KEY}__{INVITE.name}":
            flow = str(approval.arguments.get("flow", ""))
            self._invited.pop(flow, None)
            await self._denied(flow)

    async def _put(
        self, what: Definition, arguments: Mapping[str, Any], reason: str, person: str = ""
    ) -> Approval:
        call = Call(
            tool=f"{KEY}__{what.name}",
            arguments=arguments,
            caller=GATEWAY_CALLER,
            surface=KEY,
            reads=True,
        )
        return await self._calls.ask_about(call, reason, (person,) if person else ())


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(sep=" ", timespec="seconds")
