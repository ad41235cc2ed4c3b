"""Run as a program: a server made with the official SDK that speaks one era only.

python era_server.py handshake|modern FOLDER stdio
python era_server.py handshake|modern FOLDER http PORT

It asks its client as its era does, and notes in FOLDER when a call of `wait` begins and when it is cancelled.
"""

import json
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.message import ServerMessageMetadata

warnings.filterwarnings("ignore", category=MCPDeprecationWarning)

MODERN = "2026-07-28"
ERA, FOLDER = sys.argv[1], Path(sys.argv[2])
REFUSED = {"handshake": "server/discover", "modern": "initialize"}[ERA]
bus = InMemorySubscriptionBus()
grown: list[str] = []


def said(words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=words)])


def note(name: str, key: str) -> None:
    with (FOLDER / name).open("a") as file:
        file.write(f"{key}\n")


def form(message: str, field: str) -> types.ElicitRequest:
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(question: str) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(text=question))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=10)
    )


async def ask(ctx: Any, params: Any, name: str, request: Any, kind: Any) -> Any:
    """The client's answer, or None where a modern client has to be sent back with the question."""
    if ctx.protocol_version < MODERN:
        related = ServerMessageMetadata(related_request_id=ctx.request_id)
        return await ctx.session.send_request(request, kind, metadata=related)
    answer = (params.input_responses or {}).get(name)
    return answer if isinstance(answer, kind) else None


def back(state: str, **requests: Any) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=requests, request_state=state)


async def sample(ctx: Any, params: Any) -> Any:
    question = sampling("What is the capital of France?")
    answer = await ask(ctx, params, "model", question, types.CreateMessageResult)
    return back("s", model=question) if answer is None else said(f"the model says {answer.content.text}")


async def elicit(ctx: Any, params: Any) -> Any:
    question = form("Who are you?", "name")
    answer = await ask(ctx, params, "who", question, types.ElicitResult)
    if answer is None:
        return back("s", who=question)
    return said(f"hello {answer.content['name']}" if answer.content else f"declined by {answer.action}")


async def guarded(ctx: Any, params: Any) -> Any:
    return await elicit(ctx, params)


async def two_rounds(ctx: Any, params: Any) -> Any:
    """Two questions, the second asked only after the first is answered."""
    note("rounds", params.arguments["key"])
    who, colour = form("Who are you?", "name"), form("Which colour?", "colour")
    state = json.loads(params.request_state or "{}")
    if "name" not in state:
        first = await ask(ctx, params, "who", who, types.ElicitResult)
        if first is None:
            return back("{}", who=who)
        state = {"name": first.content["name"]}
    second = await ask(ctx, params, "colour", colour, types.ElicitResult)
    if second is None:
        return back(json.dumps(state), colour=colour)
    return said(f"{state['name']} likes {second.content['colour']}")


async def steps(ctx: Any, params: Any) -> Any:
    for step in 1, 2, 3, 4:
        await ctx.session.report_progress(step, 4, f"step {step}")
    return said("all steps done")


async def wait(ctx: Any, params: Any) -> Any:
    key = params.arguments["key"]
    note("began", key)
    try:
        await anyio.sleep(600)
    except anyio.get_cancelled_exc_class():
        note("cancelled", key)
        raise
    return said("nobody cancelled")


async def ask_and_wait(ctx: Any, params: Any) -> Any:
    question = form("Who are you?", "name")
    answer = await ask(ctx, params, "who", question, types.ElicitResult)
    return back("s", who=question) if answer is None else await wait(ctx, params)


async def grow(ctx: Any, params: Any) -> Any:
    note("grown", params.arguments["key"])
    grown.append(params.arguments["key"])
    if ctx.protocol_version < MODERN:
        await ctx.session.send_tool_list_changed()
    else:
        await bus.publish(ToolsListChanged())
    return said("grown")


async def greet(ctx: Any, params: Any) -> Any:
    return said("a tool that was added")


Work = Callable[[Any, Any], Awaitable[Any]]
WORKS: dict[str, Work] = {
    work.__name__: work for work in (sample, elicit, guarded, two_rounds, steps, wait, ask_and_wait, grow)
}
KEYED = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    keyed = ("two_rounds", "wait", "ask_and_wait", "grow")
    tools = [
        types.Tool(name=name, input_schema=KEYED if name in keyed else {"type": "object"})
        for name in [*WORKS, *grown]
    ]
    return types.ListToolsResult(tools=tools)


async def call_tool(ctx: Any, params: Any) -> Any:
    return await WORKS.get(params.name, greet)(ctx, params)


class OneEra(Server):
    """Handshake clients are told that the list of tools may change, too."""

    def create_initialization_options(self, *args: Any, **kwargs: Any) -> Any:
        options = super().create_initialization_options(*args, **kwargs)
        if options.capabilities.tools is not None:
            options.capabilities.tools.list_changed = True
        return options


server: Any = OneEra(
    f"{ERA}-only",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_subscriptions_listen=ListenHandler(bus),
)


def refusal(ident: Any) -> bytes:
    error = {"code": -32601, "message": f"this server speaks the {ERA} era only"}
    return json.dumps({"jsonrpc": "2.0", "id": ident, "error": error}).encode()


class Lines:
    """The lines of standard input without those of the other era, which are refused at once."""

    def __init__(self) -> None:
        self.file = anyio.wrap_file(sys.stdin)

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self.file:
            message = json.loads(line)
            if message.get("method") == REFUSED:
                sys.stdout.write(refusal(message["id"]).decode() + "\n")
                sys.stdout.flush()
            else:
                yield line


async def over_stdio() -> None:
    lines: Any = Lines()
    async with stdio_server(lines, anyio.wrap_file(sys.stdout)) as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


class OnlyThisEra:
    """Refuses every request whose header names the other era, as a server does that has never heard of it."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        spoken = dict(scope.get("headers", ())).get(b"mcp-protocol-version", b"").decode()
        if scope["type"] == "http" and (spoken == MODERN) != (ERA == "modern"):
            kind = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 400, "headers": kind})
            await send({"type": "http.response.body", "body": refusal(None)})
        else:
            await self.app(scope, receive, send)


if __name__ == "__main__":
    if sys.argv[3] == "stdio":
        anyio.run(over_stdio)
    else:
        app = OnlyThisEra(server.streamable_http_app())
        uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[4]), log_level="error")
