"""`Agent`: one connection, from its upgrade to its close. An idle one is this object and nothing else."""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, Protocol

from agent_gate.core.approval import Answer, Approval
from agent_gate.core.call import Caller, new_id
from agent_gate.core.tool import Json
from agent_gate.errors import GatewayError, InvalidArgs
from agent_gate.net.websocket import WebSocket
from agent_gate.surfaces.websocket.messages import error_text, notification_text

POLICY_VIOLATION = 1008
LARGE = 256 * 1024
LOOK_AGAIN = 0.02


class Owner(Protocol):
    """The surface, as a connection sees it. `room_seconds` is how long a large reply waits for its turn."""

    room_seconds: float

    def opened(self, agent: "Agent") -> None: ...
    def received(self, agent: "Agent", data: str | bytes) -> None: ...
    def closed(self, agent: "Agent", code: int, reason: str) -> None: ...


class Agent:
    """`caller` is None until it has authenticated, by the token whose digest is `proof`; `live` maps the ids of its
    open requests to their calls ("" for what is no call); `working` counts the calls among them, `asking` the rest.

    `alone` is the session that it has where it named none, which ends with the connection.

    One that does not acknowledge results has `acknowledges` false: `before` gives the session whose rows it
    knows by their JSON-RPC ids, and `sent` the calls whose results its next request will show to have arrived.
    """

    __slots__ = (
        "_session",
        "acknowledges",
        "alone",
        "asking",
        "before",
        "caller",
        "count",
        "live",
        "owner",
        "peer",
        "proof",
        "second",
        "sent",
        "working",
        "ws",
    )

    ws: WebSocket

    def __init__(
        self, owner: Owner, peer: str, caller: Caller | None, session: str | None, proof: bytes = b""
    ) -> None:
        self.owner, self.peer, self.caller, self._session = owner, peer, caller, session
        self.proof = proof
        self.alone: str | None = None
        self.live: dict[Json, str] | None = None
        self.acknowledges = True
        self.before: Awaitable[str] | None = None
        self.sent: list[str] | None = None
        self.second = self.count = self.working = self.asking = 0

    def opened(self, ws: WebSocket) -> None:
        self.ws = ws
        self.owner.opened(self)

    def message(self, _ws: WebSocket, data: str | bytes) -> None:
        self.owner.received(self, data)

    def closed(self, _ws: WebSocket, code: int, reason: str) -> None:
        self.owner.closed(self, code, reason)

    @property
    def session(self) -> str:
        """The session the agent named, else one that lasts as long as this connection."""
        if self._session is not None:
            return self._session
        if self.alone is None:
            self.alone = f"connection-{new_id()}"
        return self.alone

    @session.setter
    def session(self, name: str) -> None:
        self._session = name

    def too_fast(self, now: float, most: int) -> bool:
        """Count one message; true when this second has had more than `most`, which also slows the reading."""
        second = int(now)
        if second != self.second:
            self.second, self.count = second, 0
        self.count += 1
        if self.count == most + 1:
            self.ws.pause()
            asyncio.get_running_loop().call_later(1.0, self.ws.resume)
        return self.count > most

    @property
    def is_named(self) -> bool:
        """Whether the agent named its session, which may then have had other connections."""
        return self._session is not None

    def begin(self, ident: Json, call_id: str) -> None:
        self.open(ident, call_id)
        self.working += 1

    def end(self, ident: Json) -> None:
        self.working -= 1
        self.close(ident)

    def open(self, ident: Json, call_id: str = "") -> None:
        if self.live is None:
            self.live = {}
        if ident is not None:
            self.live[ident] = call_id

    def close(self, ident: Json) -> None:
        if self.live is not None:
            self.live.pop(ident, None)

    def note_sent(self, call_ids: Iterable[str]) -> None:
        """These results are on their way to an agent that will not say so when they arrive."""
        self.sent = [*(self.sent or ()), *call_ids]

    def take_sent(self) -> list[str]:
        sent, self.sent = self.sent or [], None
        return sent

    def send(self, text: str) -> None:
        self.ws.send(text)

    def fail(self, ident: Json, error: GatewayError, code: int | None = None, **extra: Any) -> None:
        self.ws.send(error_text(ident, error, code, **extra))

    def expel(self, ident: Json, error: GatewayError, code: int | None = None) -> None:
        """Say why, then close."""
        self.fail(ident, error, code)
        self.ws.close(POLICY_VIOLATION, error.message)

    async def deliver(self, text: str) -> bool:
        """Send a reply; large ones wait for those before them. False when the connection is gone or too slow."""
        if len(text) > LARGE:
            await self._wait_for_room()
        self.ws.send(text)
        return self.ws.open

    async def _wait_for_room(self) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.owner.room_seconds
        while self.ws.open and self._backlog() and loop.time() < deadline:
            await asyncio.sleep(LOOK_AGAIN)

    def _backlog(self) -> int:
        return self.ws.transport.get_write_buffer_size() if self.ws.transport is not None else 0


class ProgressTalk:
    """The way back to an agent while its call runs: progress only; an agent on a WebSocket is never asked."""

    __slots__ = ("_agent", "_ident")

    protocol = ""
    capabilities: Mapping[str, Json] = {}
    can_be_asked = comes_back = False

    def __init__(self, agent: Agent, ident: Json) -> None:
        self._agent, self._ident = agent, ident

    async def notify(self, method: str, params: Mapping[str, Json]) -> None:
        if method == "notifications/progress":
            told = {name: value for name, value in params.items() if name != "progressToken"}
            self._agent.send(notification_text("progress", {"id": self._ident, **told}))

    async def ask(self, approval: Approval) -> Answer | None:  # noqa: ARG002
        return None

    async def request(self, method: str, params: Mapping[str, Json]) -> Json:
        raise InvalidArgs(
            f"An agent on a WebSocket cannot be asked ({method[:40]}, {len(params)} parameters)"
        )
