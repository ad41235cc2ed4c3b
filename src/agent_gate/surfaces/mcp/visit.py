"""`Visit`: one request of a client while it is answered, and the way back to that client meanwhile."""

from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from agent_gate.approval.channels.client import answer_in, form, shows_forms
from agent_gate.core.approval import Answer, Approval
from agent_gate.core.call import Caller
from agent_gate.core.ports import Sender
from agent_gate.core.tool import Json
from agent_gate.errors import GatewayError, InvalidArgs
from agent_gate.mcp.errors import INVALID_REQUEST, RpcError
from agent_gate.mcp.messages import decode, encode, notification, request
from agent_gate.mcp.names import ELICIT, ELICITED, LOG, META_LOG_LEVEL, PROGRESS
from agent_gate.mcp.revisions import Revision
from agent_gate.surfaces.mcp.sessions.sessions import McpSession

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
RANKS = {level: rank for rank, level in enumerate(LEVELS)}
NO_BACK = "This client cannot be asked anything while its request runs"


Named = TypeVar("Named")


def named(by_id: Mapping[bytes, Named], wanted: Json) -> Named | None:
    """What has the id that a client means, however it wrote it: ids are kept as they came."""
    found = by_id.get(encode(wanted))
    if found is None:
        return next((one for number, one in by_id.items() if means(number, wanted)), None)
    return found


def reused(number: bytes) -> RpcError:
    """The refusal of a request whose id belongs to another that is still open."""
    return RpcError(
        INVALID_REQUEST,
        f"Invalid request: the id {number.decode()[:80]} belongs to a request that is still open",
    )


def means(number: bytes, wanted: Json) -> bool:
    try:
        return bool(decode(number) == wanted)
    except msgspec.DecodeError:  # a number out of range
        return False


class AbstractStruct(msgspec.StructMeta, ABCMeta):
    """Lets a struct have methods that its subclasses must give."""


class Visit(msgspec.Struct, eq=False, metaclass=AbstractStruct):
    """The `Conversation` of a call. Each transport says how a message gets out.

    A client that hangs up takes its call back where its revision cancels by closing; any other is the call's `sender`. `rounds` is
    how often the client was sent back with this request before. One that `comes_back` is asked by a result instead of
    meanwhile. Once it is `cancelled`, nothing more is sent for it.
    """

    caller: Caller
    revision: Revision
    mode: str
    session: McpSession | None
    id: bytes
    meta: Mapping[str, Json]
    capabilities: Mapping[str, Json]
    comes_back: bool
    agent_session: str | None = None
    trace: str | None = None
    call_id: str = ""
    sender: Sender | None = None
    rounds: int = 0
    cancelled: bool = False

    @abstractmethod
    def emit(self, message: bytes) -> bool:
        """Send one message to the client before the answer; False where this client takes none."""

    @property
    def protocol(self) -> str:
        return self.revision.name

    @property
    def can_be_asked(self) -> bool:
        return shows_forms(self.capabilities)

    async def ask(self, approval: Approval) -> Answer | None:
        try:
            said = await self.request(ELICIT, form(approval))
        except GatewayError:
            return None
        return answer_in(said, self.caller.name)

    @property
    def progress_token(self) -> Json:
        return self.meta.get("progressToken")

    async def notify(self, method: str, params: Mapping[str, Json]) -> None:
        if method == PROGRESS:
            token = self.progress_token
            if token is None:
                return
            params = {**params, "progressToken": token}
        elif (method == LOG and not self.hears(params.get("level"))) or method not in (LOG, ELICITED):
            return
        self.emit(notification(method, params))

    def hears(self, level: Json) -> bool:
        """Whether the client wants log messages of this level."""
        if self.revision.levels_in_requests:
            wanted = self.meta.get(META_LOG_LEVEL)
        else:
            wanted = self.session.level if self.session is not None else "debug"
        return isinstance(wanted, str) and RANKS.get(str(level), 0) >= RANKS.get(wanted, len(LEVELS))

    async def request(self, method: str, params: Mapping[str, Json]) -> Json:
        """Put a question to the client; only sessions of the handshake revisions can carry one."""
        if self.session is None or self.comes_back:
            raise InvalidArgs(NO_BACK)
        number, answer = self.session.ask()
        try:
            if not self.emit(request(number, method, params)):
                raise InvalidArgs(NO_BACK)
            return await answer
        finally:
            self.session.asked.pop(number, None)
