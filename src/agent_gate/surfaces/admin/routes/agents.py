"""Who may come in: agents and their tokens, operators and theirs, login links, and how clients connect."""

import logging
from typing import Any, get_args
from urllib.parse import urlsplit

import msgspec

from agent_gate.access.keys import checked_name
from agent_gate.access.login import LoginLink
from agent_gate.access.people import OPERATOR
from agent_gate.access.sign_in.consents import INVITE_SECONDS
from agent_gate.access.sign_in.families import SignedInAgent
from agent_gate.config.clients.model import GatewayEntry
from agent_gate.config.clients.registry import CLIENTS
from agent_gate.core.call import Caller, Mode
from agent_gate.errors import Forbidden, InvalidArgs
from agent_gate.net.addresses import is_here
from agent_gate.net.http import HttpAnswer, json_response
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.routing import NUMBER, TEXT, TEXTS, OperatorRequest, Route, RouteAnswer
from agent_gate.surfaces.admin.standing import show_standings

ONLY_HERE = (
    "This address works on this machine only. For other devices set admin.public_url in the configuration to an "
    "address that reaches the page from there, such as Tailscale's or a reverse proxy's"
)
NEEDS_ENTRY = "a token needs an entry under `people:`, with their login"
log = logging.getLogger("agent_gate.admin")
MODES = get_args(Mode)
AGENT = {
    "name": TEXT,
    "mode": {"enum": list(MODES)},
    "namespaces": TEXTS,
    "calls_per_minute": NUMBER,
    "max_pending": NUMBER,
}


def limits(body: dict[str, Any]) -> dict[str, int]:
    """The numbers in the body; 0 means no limit."""
    found = {name: body[name] for name in ("calls_per_minute", "max_pending") if body.get(name) is not None}
    if not all(type(number) is int and 0 <= number < 10**9 for number in found.values()):
        raise InvalidArgs("calls_per_minute and max_pending are whole numbers; 0 means no limit")
    return found


def wanted(body: dict[str, Any]) -> dict[str, Any]:
    """What a new agent may be: checked here, kept with its token."""
    mode, namespaces = body.get("mode", "full"), body.get("namespaces")
    if mode not in MODES:
        raise InvalidArgs(f"mode is one of {', '.join(MODES)}")
    if namespaces is not None and not (
        isinstance(namespaces, list) and all(isinstance(name, str) for name in namespaces)
    ):
        raise InvalidArgs("namespaces is a list of names; leave it out to show all")
    return {"mode": mode, "namespaces": namespaces, **limits(body)}


def code_rows(url: str) -> list[str]:
    """The link as a code that a phone's camera reads: its rows, with 1 for a dark place."""
    import segno  # it takes longer to import than to draw, for the few who see it

    return ["".join("1" if dark else "0" for dark in row) for row in segno.make(url, error="l").matrix]


class Agents:
    def __init__(self, admin: Admin) -> None:
        self._admin, self._keys = admin, admin.who.keys
        self._signed_in = admin.who.sign_in.signed_in

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/api/agents", self._list, "Who may call, and what they see"),
            Route(
                "POST", "/api/agents", self._make, "Make an agent; its token is in this answer only",
                body=AGENT, required=("name",),
            ),
            Route("GET", "/api/agents/{name}", self._show_one, "One agent and every tool it sees"),
            Route("DELETE", "/api/agents/{name}", self._revoke, "Revoke an agent made here, or one that signed in"),
            Route("POST", "/api/invites", self._invite, "A link by which one sign-in gets past the limits"),
            Route("GET", "/api/operators", self._list_operators, "Tokens of programs that operate this gateway"),
            Route(
                "POST", "/api/operators", self._make_operator, "Make an operator token; it is in this answer only",
                body={"name": TEXT, "login": TEXT}, required=("name",),
            ),
            Route("DELETE", "/api/operators/{name}", self._revoke_operator, "Revoke an operator token"),
            Route(
                "POST", "/api/logins", self._make_link, "A fresh one-time link to the page",
                body={"login": TEXT}, role="viewer",
            ),
            Route("GET", "/api/clients", self._list_clients, "How each client is connected to this gateway"),
        ]  # fmt: skip

    def _shown(self, caller: Caller) -> dict[str, Any]:
        made = self._keys.named("agent", caller.name)
        signed_in = self._signed_in.named(caller.name) if made is None else None
        return {
            "name": caller.name,
            "mode": caller.mode,
            "namespaces": sorted(caller.namespaces) if caller.namespaces is not None else None,
            "calls_per_minute": caller.calls_per_minute,
            "max_pending": caller.max_pending,
            "tools": len(self._admin.view.tools(caller)),
            "made_here": made is not None,
            "created_at": made.created_at if made else None,
            "last_called": self._admin.calls.last_called(caller.name),
            "signed_in": None if signed_in is None else self._sign_in(signed_in),
        }

    def _sign_in(self, agent: SignedInAgent) -> dict[str, Any]:
        """Whose agent it is and where its answers went; it was seen when its token was renewed, or when it called."""
        called = self._admin.calls.last_called(agent.name)
        return {
            "client": agent.destination,
            "person": agent.person,
            "since": agent.created_at,
            "last_seen": max(agent.seen_at, called or 0.0),
            "expires_at": agent.expires_at,
        }

    async def _list(self, _ask: OperatorRequest) -> RouteAnswer:
        return [self._shown(caller) for caller in self._admin.who.callers()]

    async def _show_one(self, ask: OperatorRequest) -> RouteAnswer:
        caller = self._admin.caller(ask.values["name"])
        tools = await show_standings(self._admin.setup.policy(), self._admin.view.tools(caller), caller)
        return self._shown(caller) | {"sees": tools}

    async def _make(self, ask: OperatorRequest) -> HttpAnswer:
        body = ask.body()
        name = checked_name(body.get("name"))
        if any(caller.name == name for caller in self._admin.who.callers()):
            raise InvalidArgs(
                f"There is an agent named {name} already. Choose another name, or revoke it first"
            )
        grants = self._admin.grants
        token = await self._keys.make(
            "agent", name, wanted(body) | {"made_by": ask.person}, grants.ending(name)
        )
        grants.forget(name)
        self._admin.who.refresh_agents()
        log.info("An agent's token was made", extra={"agent": name, "by": ask.person})
        return json_response(201, self._shown(self._admin.caller(name)) | {"token": token})

    async def _revoke(self, ask: OperatorRequest) -> RouteAnswer:
        name, grants = ask.values["name"], self._admin.grants
        ending = grants.ending(name)
        gone = await self._keys.revoke("agent", name, ending) or await self._signed_in.revoke_agent(
            name, ending
        )
        if not gone:
            raise InvalidArgs(
                f"{name[:64]} was not made here and did not sign in. Agents in the configuration are removed there"
            )
        grants.forget(name)
        self._admin.who.refresh_agents()
        log.info("An agent's token was revoked", extra={"agent": name, "by": ask.person})
        return {"revoked": name}

    async def _invite(self, ask: OperatorRequest) -> HttpAnswer:
        issuer = self._admin.who.issuer()
        if issuer is None:
            raise InvalidArgs("Nobody can sign in here: set auth.sign_in to true in config.yaml")
        secret = await self._admin.who.sign_in.begun.invite(ask.person)
        log.info("An invitation was made", extra={"by": ask.person})
        return json_response(201, {"url": f"{issuer}/invite/{secret}", "seconds": INVITE_SECONDS})

    async def _list_operators(self, _ask: OperatorRequest) -> RouteAnswer:
        keys = self._keys.list("operator")
        return [{"name": k.name, "person": k.person, "created_at": k.created_at} for k in keys]

    async def _make_operator(self, ask: OperatorRequest) -> HttpAnswer:
        body = ask.body()
        name, person = checked_name(body.get("name")), self._standing_in(ask, body.get("login"))
        if person not in self._admin.who.people.names():
            raise Forbidden(f"{person} is here by the provider's word alone, which ends; {NEEDS_ENTRY}")
        token = await self._keys.make("operator", name, {"person": person, "made_by": ask.person})
        log.info("An operator token was made", extra={"operator": name, "by": ask.person})
        return json_response(201, {"name": name, "person": person, "token": token})

    async def _revoke_operator(self, ask: OperatorRequest) -> RouteAnswer:
        name = ask.values["name"]
        if not await self._keys.revoke("operator", name):
            raise InvalidArgs(f"There is no operator token named {name[:64]}")
        log.info("An operator token was revoked", extra={"operator": name, "by": ask.person})
        return {"revoked": name}

    def _standing_in(self, ask: OperatorRequest, login: object) -> str:
        """Whose name the new login carries: the operator may choose, everybody else has only their own."""
        person = self._admin.person_of(login) if login else ask.person
        if ask.person not in (OPERATOR, person):
            raise Forbidden(f"{ask.person} can log in only as {ask.person}")
        return person

    async def _make_link(self, ask: OperatorRequest) -> HttpAnswer:
        person = self._standing_in(ask, ask.body().get("login"))
        base = self._admin.setup.listeners.people_url()
        link = self._new_link(ask, person)
        reply = {"person": person, "seconds": link.lasts}
        if is_here(urlsplit(base).hostname or ""):
            reply["advice"] = ONLY_HERE
        url = f"{base}/login#{await self._admin.who.logins.offer(link)}"
        code = {} if "advice" in reply else {"code": code_rows(url)}
        return json_response(201, reply | code | {"url": url})

    def _new_link(self, ask: OperatorRequest, person: str) -> LoginLink:
        """A link by which somebody whom a provider let in gets no further than by its word."""
        session = self._admin.who.logins.session(ask.request)
        if session is not None and session.person == person and session.body.get("issuer"):
            return self._admin.who.vouching.sessions.link_like(session)
        if person not in self._admin.who.people.names():
            raise Forbidden(f"{person} logs in at the provider")
        return LoginLink(person)

    async def _list_clients(self, _ask: OperatorRequest) -> RouteAnswer:
        listeners = self._admin.setup.listeners
        gateway = GatewayEntry(url=listeners.url(), fingerprint=listeners.fingerprint)
        config = self._admin.setup.configuration.options.config
        here = ["--config", str(config.absolute())] if config is not None else ["--url", gateway.url]
        trusted = ["--fingerprint", gateway.fingerprint] if gateway.fingerprint else []
        elsewhere = ["--url", gateway.url, *trusted]
        cards = [
            {
                "name": client.name,
                "title": client.title,
                "command": client.command(gateway) if client.command else None,
                "entry": client.write(gateway) if client.expands else None,
                "here": ["agent-gate", "connect", client.name, *here],
                "elsewhere": ["agent-gate", "connect", client.name, *elsewhere],
                "note": client.note,
            }
            for client in CLIENTS.values()
        ]
        shown_gateway = {"url": gateway.url, "endpoint": gateway.endpoint, "fingerprint": gateway.fingerprint}
        return msgspec.to_builtins({"gateway": shown_gateway, "clients": cards})
