"""Pairing, which starts on the admin socket and nowhere else: a table of its own that no network listener has.

`POST /v1/pairings` pairs by a fingerprint that is known before. Its WebSocket form tells each phase, and asks the
person at the terminal about a fingerprint that is not.
"""

import asyncio
import logging
from typing import Any

import msgspec

from agent_gate.access.roles import EVERYTHING
from agent_gate.core.tasks import KeptTasks
from agent_gate.errors import GatewayError, InvalidArgs
from agent_gate.net.http import HttpAnswer, Request, Response, error_response, refusal
from agent_gate.net.websocket import WebSocket, WebSocketHandler
from agent_gate.peers.authority import CertificateSubject
from agent_gate.peers.authorization import PUBLISH, check_action
from agent_gate.peers.pairing import Wish
from agent_gate.peers.roles import COMPONENT_TYPES, PeerNotes
from agent_gate.surfaces.admin.admin import Peered
from agent_gate.surfaces.admin.routes.peers import shown_peer
from agent_gate.surfaces.admin.routing import TERMINAL, OperatorRequest, Route, RouteAnswer, Routes

log = logging.getLogger("agent_gate.admin")
PREFIX = "/v1/"
WEBSOCKET = "/v1/pairings/ws"
TYPES = {"tool": "tool_host", "tool-host": "tool_host", "cli": "operator"}


class PairWish(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What is asked for; `test` pairs without leaving a peer behind."""

    component_type: str
    component_id: str
    endpoint: str = ""
    remote_fingerprint: str | None = None
    listen: bool = False
    pool: str = ""
    publish: list[str] = []
    test: bool = False
    action: str = "pair.start"

    def wish(self) -> Wish:
        kind = TYPES.get(self.component_type, self.component_type)
        if kind not in COMPONENT_TYPES:
            raise InvalidArgs(f"component_type is one of {', '.join(COMPONENT_TYPES)}")
        if not self.component_id or len(self.component_id) > 64:
            raise InvalidArgs("component_id is the name to pair it under, of at most 64 characters")
        if self.listen == bool(self.endpoint):
            raise InvalidArgs("endpoint is where the component listens; one that dials in has none")
        if kind != "tool_host" and (self.listen or self.pool or self.publish):
            raise InvalidArgs("listen, pool and publish are for tool hosts")
        for event_type in self.publish:
            check_action(f"{PUBLISH}{event_type}")
        notes = PeerNotes(pool=self.pool, publishes=tuple(self.publish), dials_in=self.listen)
        subject = CertificateSubject(kind, self.component_id, dials_gateway=notes.dials_gateway)
        return Wish(subject, self.endpoint, self.remote_fingerprint, notes)


def read_wish(data: bytes | str) -> PairWish:
    try:
        return msgspec.json.decode(data, type=PairWish)
    except msgspec.DecodeError as error:
        raise InvalidArgs(f"This is no request to pair: {error}") from None


class Pairings:
    """Served on the admin socket, below `/v1/`."""

    def __init__(self, peering: Peered) -> None:
        self._peering = peering
        self._tasks = KeptTasks(log, "A pairing ended in a way nobody expected")
        self._routes = Routes(
            [
                Route("POST", "/v1/pairings", self._pair, "Pair a component"),
                Route("GET", "/v1/identity", self._show_identity, "Who this gateway is to its peers"),
                Route("POST", "/v1/peers/{name}/rotate", self._rotate, "Renew a peer's certificate"),
            ]
        )

    async def handle(self, request: Request, person: str) -> HttpAnswer:
        try:
            return await self._routes.dispatch(request, person, TERMINAL, EVERYTHING)
        except GatewayError as error:
            return error_response(error)

    async def _show_identity(self, _ask: OperatorRequest) -> RouteAnswer:
        identity = self._peering.identity
        return {
            "gateway_id": identity.gateway_id,
            "public_key_ed25519": identity.key.public_text,
            "fingerprint": identity.key.fingerprint,
        }

    async def _pair(self, ask: OperatorRequest) -> RouteAnswer:
        asked = read_wish(ask.request.body)
        wish = asked.wish()
        pairing_id = await self._peering.pair(wish, ask.person, trial=asked.test)
        return self._result(asked, pairing_id)

    def _result(self, asked: PairWish, pairing_id: str) -> dict[str, Any]:
        peer = None if asked.test else shown_peer(self._peering.peers.get(asked.component_id))
        return {"pairing_id": pairing_id, "endpoint": asked.endpoint, "peer": peer}

    async def _rotate(self, ask: OperatorRequest) -> RouteAnswer:
        return shown_peer(await self._peering.rotate(ask.values["name"], ask.person))

    def upgrade(self, request: Request, person: str) -> WebSocketHandler | Response:
        if request.path != WEBSOCKET:
            return refusal(404, "INVALID_ARGS", "There is nothing here")
        return PairingTalk(self, person)

    def begin(self, talk: "PairingTalk", data: str | bytes) -> "asyncio.Task[Any]":
        return self._tasks.start(self._talk(talk, data))

    async def _talk(self, talk: "PairingTalk", data: str | bytes) -> None:
        try:
            asked = read_wish(data)
            pairing_id = await self._peering.pair(
                asked.wish(), talk.person, confirm=talk.confirm, told=talk.tell, trial=asked.test
            )
            talk.say({"action": "pair.result", "ok": True, "result": self._result(asked, pairing_id)})
        except GatewayError as error:
            talk.say({"action": "pair.result", "ok": False, "error": error.as_dict()})
        talk.close()


def is_yes(data: str | bytes) -> bool:
    """Whether a person said yes; anything else is a no."""
    try:
        said = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return False
    return bool(said == {"action": "pair.confirm", "yes": True})


class PairingTalk(WebSocketHandler):
    """One pairing with a person at the other end, who sees each phase and is asked once."""

    def __init__(self, pairings: Pairings, person: str) -> None:
        self._pairings, self.person = pairings, person
        self._ws: WebSocket | None = None
        self._work: asyncio.Task[Any] | None = None
        self._asked: asyncio.Future[bool] | None = None

    def opened(self, ws: WebSocket) -> None:
        self._ws = ws

    def message(self, _ws: WebSocket, data: str | bytes) -> None:
        if self._work is None:
            self._work = self._pairings.begin(self, data)
        elif self._asked is not None and not self._asked.done():
            self._asked.set_result(is_yes(data))

    def closed(self, _ws: WebSocket, _code: int, _reason: str) -> None:
        if self._work is not None:
            self._work.cancel()

    def say(self, message: dict[str, Any]) -> None:
        if self._ws is not None:
            self._ws.send(msgspec.json.encode(message).decode())

    def tell(self, phase: int, text: str) -> None:
        self.say({"action": "pair.phase", "phase": phase, "text": text})

    async def confirm(self, fingerprint: str) -> bool:
        self._asked = asyncio.get_running_loop().create_future()
        self.say({"action": "pair.confirm", "fingerprint": fingerprint})
        return await self._asked

    def close(self) -> None:
        if self._ws is not None:
            self._ws.close()
