"""A source proves itself anew with each request; a renewed token restarts nothing, and is no result's to tell."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from tests.toolboxes import toolbox

from agent_gate.config.servers.settings import ServerAuth, ServerSettings
from agent_gate.config.services.settings import AuthConfig, RequestDefinition, ServiceConfig, ToolDefinition
from agent_gate.core.call import Call, Caller, Case, Decision
from agent_gate.core.catalog import Listing, build
from agent_gate.core.credentials import Identity, Proof, SignInNeeded, secrets_among
from agent_gate.core.ports import Job
from agent_gate.net.auth import prove
from agent_gate.net.pool import Pool
from agent_gate.observe.redact import MASK, Redactor
from agent_gate.sources.access import Access
from agent_gate.sources.http import HttpSource
from agent_gate.sources.mcp import McpSource

FIRST, SECOND = "first-token-0123456789", "second-token-0123456789"


class Renewed:
    """Credentials that were renewed behind the source's back."""

    def __init__(self, who: Identity, *, fetched: bool = False) -> None:
        self.who, self.fetched = who, fetched
        self.asked: list[str] = []
        self.challenges: list[str] = []
        self.proof = self.with_token(FIRST)

    def with_token(self, token: str) -> Proof:
        return prove(Identity(source=self.who.source, type="bearer", token=token))

    def at_hand(self, caller: str) -> Proof | None:
        return None if self.fetched else self.proof

    async def fetch(self, caller: str) -> Proof:
        self.asked.append(caller)
        return self.proof

    async def refused(self, caller: str, proof: Proof, challenge: str) -> Proof | None:
        self.challenges.append(challenge)
        if proof is not self.proof or FIRST not in proof.secrets:
            return None
        self.proof = self.with_token(SECOND)
        return self.proof


class Service:
    """An HTTP service, or an MCP server, that takes one token and says back what it was shown."""

    def __init__(self, taken: str) -> None:
        self.taken = taken
        self.shown: list[str] = []
        self.serving: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.serving.add(asyncio.current_task())
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = int(head.partition("content-length:")[2].split("\r\n")[0] or 0)
                body = await reader.readexactly(length)
                sent = head.partition("authorization: bearer ")[2].split("\r\n")[0]
                self.shown.append(sent)
                self.reply(writer, sent, body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def reply(self, writer: asyncio.StreamWriter, sent: str, body: bytes) -> None:
        if sent != self.taken:
            writer.write(
                b'HTTP/1.1 401 x\r\nwww-authenticate: Bearer error="expired"\r\ncontent-length: 0\r\n\r\n'
            )
            return
        said = json.dumps(answer(body, sent)).encode()
        writer.write(
            b"HTTP/1.1 200 x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
            % (len(said), said)
        )


def answer(body: bytes, sent: str) -> object:
    asked = json.loads(body) if body else {}
    if "method" not in asked:
        return {"you": f"Bearer {sent}"}
    results = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": f"Bearer {sent}"}]},
    }
    if asked["method"] not in results:
        return {"jsonrpc": "2.0", "id": asked.get("id"), "error": {"code": -32601, "message": "no"}}
    return {"jsonrpc": "2.0", "id": asked.get("id"), "result": results[asked["method"]]}


def http_source(url: str, box) -> HttpSource:
    tool = ToolDefinition(name="look", request=RequestDefinition(method="GET", path="/"))
    auth = AuthConfig(type="bearer", token=FIRST)
    return HttpSource(ServiceConfig(name="s", url=url, auth=auth, tools=(tool,)), box)


def mcp_source(url: str, box) -> McpSource:
    auth = ServerAuth(type="bearer", token=FIRST)
    return McpSource(ServerSettings(key="s", url=f"{url}/mcp", transport="http", auth=auth), box)


async def call(source) -> str:
    definitions = await source.connect()
    [tool] = build([Listing(key=source.key, namespace=source.namespace, definitions=definitions)]).tools
    case = Case(
        call=Call(tool="look", arguments={}, caller=Caller(name="anna")),
        tool=tool,
        signature="",
        decision=Decision(effect="allow"),
        arguments_hash="",
        definition_hash="",
    )
    deadline = asyncio.get_running_loop().time() + 20
    return (await source.answer(Job(case=case, deadline=deadline))).body.decode()


@asynccontextmanager
async def asking(service: Service, make, **given):
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    pool = Pool()
    try:
        async with make(f"http://127.0.0.1:{port}", toolbox(pool, **given)) as source:
            yield source
    finally:
        await pool.aclose()
        server.close()
        await asyncio.wait(service.serving) if service.serving else None


BOTH = pytest.mark.parametrize("make", [http_source, mcp_source])


@BOTH
@pytest.mark.parametrize("fetched", [False, True])
async def test_a_renewed_token_is_used_by_the_next_request_without_a_restart(make, fetched):
    service, given = Service(FIRST), []

    def credentials(who: Identity) -> Renewed:
        given.append(Renewed(who, fetched=fetched))
        return given[0]

    async with asking(service, make, credentials=credentials) as source:
        await call(source)
        service.taken = SECOND
        given[0].proof = given[0].with_token(SECOND)
        assert MASK in await call(source)
        assert service.shown[-1] == SECOND
        assert given[0].challenges == []
    assert not fetched or given[0].asked


@BOTH
async def test_after_a_401_another_token_is_tried_once(make):
    service, given = Service(FIRST), []

    def credentials(who: Identity) -> Renewed:
        given.append(Renewed(who))
        return given[0]

    async with asking(service, make, credentials=credentials) as source:
        await call(source)
        service.taken = SECOND
        before = len(service.shown)
        assert MASK in await call(source)
        assert service.shown[before : before + 2] == [FIRST, SECOND]
        assert given[0].challenges == ['Bearer error="expired"']


async def test_a_token_that_is_refused_again_needs_a_person():
    service = Service("neither of them")
    async with asking(service, http_source, credentials=Renewed) as source:
        with pytest.raises(SignInNeeded, match=r"401.*reconnect"):
            await call(source)
        assert service.shown == [FIRST, SECOND]


@BOTH
async def test_what_a_source_is_given_is_known_to_the_redactor_at_once(make):
    redactor = Redactor()
    async with asking(Service(FIRST), make, learn=redactor.add):
        assert redactor.known(f"a {FIRST}") == f"a {MASK}"
        redactor.learn(["another-secret"])
        assert redactor.known(f"{FIRST} another-secret") == f"{MASK} {MASK}"


@BOTH
async def test_a_credential_that_an_upstream_echoes_does_not_reach_the_agent(make):
    async with asking(Service(FIRST), make) as source:
        body = await call(source)
        assert FIRST not in body
        assert MASK in body


async def test_a_source_may_be_told_to_leave_results_alone():
    def make(url: str, box) -> HttpSource:
        tool = ToolDefinition(name="look", request=RequestDefinition(method="GET", path="/"))
        auth = AuthConfig(type="bearer", token=FIRST)
        return HttpSource(ServiceConfig(name="s", url=url, auth=auth, tools=(tool,), mask_results=False), box)

    async with asking(Service(FIRST), make) as source:
        assert FIRST in await call(source)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("GITHUB_TOKEN", "ghp_x", "ghp_x"),
        ("OPENAI_API_KEY", "sk-x", "sk-x"),
        ("PGPASSWORD", "pw", "pw"),
        ("Authorization", "Bearer abc", "abc"),
        ("X-Api-Key", "abc", "abc"),
        ("accessToken", "abc", "abc"),
        ("DATABASE_URL", "postgres://me:pass-word@db/x", "pass-word"),
        ("HOME_FOLDER", "/home/me", None),
        ("AUTHOR", "Jane", None),
        ("TOKEN_FILE", "/run/token", None),
        ("KEYBOARD", "de", None),
        ("MONKEY", "chimp", None),
        ("PASSENGER", "me", None),
    ],
)
def test_the_name_of_a_value_says_whether_it_authenticates(name, value, secret):
    assert list(secrets_among({name: value})) == ([] if secret is None else [secret])


class EachTheirOwn(Renewed):
    """Every agent has an account of its own."""

    def __init__(self, who: Identity) -> None:
        super().__init__(who)
        self.proofs = {name: self.with_token(f"token-of-{name}-0123456789") for name in ("", "ada", "ben")}

    def at_hand(self, caller: str) -> Proof | None:
        return self.proofs[caller]


def test_agents_that_take_turns_with_their_own_accounts_have_each_secret_learned_once() -> None:
    learned: list[frozenset[str]] = []
    access = Access(EachTheirOwn(Identity(source="lab")), learned.append)
    for caller in ("ada", "ben") * 3:
        assert access.at_hand(caller) is not None
    assert len(learned) == 3
    assert access.masked(b'"token-of-ada-0123456789"') == f'"{MASK}"'.encode()
