"""Accounts as an operator connects them. Each act is a call of the source `connections`, and so on record."""

from dataclasses import asdict
from functools import partial

from agent_gate.core.call import Call, Caller
from agent_gate.core.strict import parse
from agent_gate.errors import Internal, InvalidArgs
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.routing import TEXT, OperatorRequest, Route, RouteAnswer


class ConnectionRoutes:
    def __init__(self, admin: Admin) -> None:
        self._calls, self._sign_ins = admin.calls, admin.secrets.sign_ins

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET", "/api/connections", self._list, "Every account: connected, or waiting for a sign-in"
            ),
            Route(
                "POST",
                "/api/connections/code",
                self._take_code_alone,
                "Finish the sign-in that a pasted code or address belongs to",
                body={"code": TEXT},
                required=("code",),
            ),
            Route(
                "POST",
                "/servers/{key}/auth/start",
                partial(self._act, tool="start"),
                "Begin a sign-in",
                body={"agent": TEXT},
            ),
            Route(
                "GET",
                "/servers/{key}/auth/status",
                self._show_status,
                "How a source stands with its account",
                query={"agent": TEXT},
            ),
            Route(
                "POST",
                "/servers/{key}/auth/code",
                partial(self._act, tool="code", given="code"),
                "Finish a sign-in with a pasted code or address",
                body={"code": TEXT, "agent": TEXT},
                required=("code",),
            ),
            Route(
                "POST",
                "/servers/{key}/auth/key",
                partial(self._act, tool="key", given="key"),
                "Store a key and check it",
                body={"key": TEXT, "agent": TEXT},
                required=("key",),
            ),
            Route(
                "POST",
                "/servers/{key}/auth/end",
                partial(self._act, tool="end"),
                "Forget an account and revoke its tokens",
                body={"agent": TEXT},
            ),
        ]

    async def _list(self, _ask: OperatorRequest) -> RouteAnswer:
        return [asdict(state) for state in self._sign_ins.all()]

    async def _show_status(self, ask: OperatorRequest) -> RouteAnswer:
        return asdict(
            self._sign_ins.status(ask.values["key"], self._sign_ins.holder(ask.param("agent") or ""))
        )

    async def _take_code_alone(self, ask: OperatorRequest) -> RouteAnswer:
        ask.values["key"] = await self._sign_ins.find_begun(str(ask.body().get("code", "")), ask.person)
        return await self._act(ask, "code", "code")

    async def _act(self, ask: OperatorRequest, tool: str, given: str = "") -> RouteAnswer:
        """Call a tool of the source `connections` for the person who asks."""
        source = ask.values["key"]
        self._sign_ins.status(source)
        arguments, body = {"source": source}, ask.body()
        if given and not body.get(given):
            raise InvalidArgs(f"Send {{{given!r}: TEXT}}")
        for name in (given, "agent"):
            if name and body.get(name):
                arguments[name] = str(body[name])
        call = Call(
            tool=f"connections:{tool}",
            arguments=arguments,
            caller=Caller(name=ask.person, kind="operator"),
            surface=ask.channel,
        )
        outcome = await self._calls.perform_for(call, f"done by {ask.person}")
        if outcome.error is not None:
            raise outcome.error
        if outcome.result is None:
            raise Internal("The call ended without a result")
        return parse(outcome.result.body)
