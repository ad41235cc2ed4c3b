"""`Awaited`: one message to the gateway and what is known of it until its reply is there."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from agent_gate.client.wire import Incoming, Reply
from agent_gate.errors import CallTimeout, GatewayError, Internal, OutcomeUnknown

Told = Callable[[Mapping[str, Any]], None]
UNREADABLE = "answered something that cannot be read"
GARBLED = f"The gateway {UNREADABLE}; the call may have run"
TOO_LARGE = "is more than one message may have"
KEPT = "The call goes on; its result is kept: agent-gate pending"
UNSENT = "The call was not sent"
UNHEARD = "Whether the gateway has the call is not known; if it has, its result is kept: agent-gate pending"


class Awaited:
    """One message that waits for its reply, kept as it was sent so that it can be sent again.

    `call_id` is the gateway's name for the call, once it has said that it has it; `asked` that a person is asked.
    """

    __slots__ = (
        "asked",
        "call_id",
        "future",
        "heard",
        "ident",
        "is_call",
        "on_progress",
        "on_waiting",
        "resent",
        "sent",
        "text",
    )

    def __init__(
        self,
        ident: int,
        text: bytes,
        *,
        is_call: bool,
        on_progress: Told | None = None,
        on_waiting: Told | None = None,
    ) -> None:
        self.ident, self.text, self.is_call = ident, text, is_call
        self.on_progress, self.on_waiting = on_progress, on_waiting
        self.resent = self.sent = self.asked = False
        self.call_id, self.heard = "", asyncio.Event()
        self.future: asyncio.Future[Reply | bytes] = asyncio.get_running_loop().create_future()

    def told(self, message: Incoming) -> None:
        """The gateway said something of this call, hence has it."""
        call_id = message.params.get("request_id")
        if isinstance(call_id, str):
            self.call_id = call_id
        self.asked |= message.method == "waiting"
        self.heard.set()

    def garbled(self) -> GatewayError:
        """The error where a reply came that is none."""
        if self.is_call and self.sent:
            return OutcomeUnknown(GARBLED, details={"local": True})
        return Internal(f"The gateway {UNREADABLE}", details={"local": True})

    def unanswered(self, seconds: float) -> CallTimeout:
        """The error where no reply came in time; it says no more than is known of the call."""
        known = "" if not self.is_call else KEPT if self.call_id else UNSENT if not self.sent else UNHEARD
        text = "\n".join(filter(None, [f"No answer within {seconds:g} s", known]))
        return CallTimeout(text, details={"local": True})

    def end(self, outcome: Reply | bytes | GatewayError) -> None:
        if self.future.done():
            return
        if isinstance(outcome, GatewayError):
            self.future.set_exception(outcome)
            self.future.exception()  # somebody who left does not want to be told that nobody looked
        else:
            self.future.set_result(outcome)
