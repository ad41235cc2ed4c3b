"""An MCP server on the official library that plays the gateway for the bridge: `counterpart.py PORT FOLDER`.

It serves both eras. `slow` notes each idempotency key it is given in FOLDER/keys and answers once FOLDER/release exists,
and runs once per key, as the gateway does.
"""

import sys
import warnings
from pathlib import Path

import anyio
import mcp_types as types
import uvicorn
from mcp.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.message import ServerMessageMetadata

warnings.filterwarnings("ignore", category=MCPDeprecationWarning)
FOLDER = Path(sys.argv[2])
KEY = "agent-gate/idempotency-key"
NAMES = ["echo", "progress", "log", "sample", "elicit", "slow", "change", "mirror"]
ODD_SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": ["string", "null"]},
        "list": {"type": "array"},
        "any": {"anyOf": [{"type": "string", "pattern": "^a"}, {"type": "integer", "minimum": 1e3}]},
        "nothing": {},
        "deep": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"x": {"enum": [1, 2.5, None]}},
        },
    },
}
MIRROR_SCHEMA = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
bus = InMemorySubscriptionBus()


def said(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)])


async def list_tools(ctx, params):
    schemas = {"echo": ODD_SCHEMA, "mirror": MIRROR_SCHEMA}
    names = [*NAMES, "added"] if (FOLDER / "changed").exists() else NAMES
    return types.ListToolsResult(
        tools=[types.Tool(name=name, input_schema=schemas.get(name, {"type": "object"})) for name in names]
    )


async def ask(ctx, request, kind):
    metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
    return await ctx.session.send_request(request, kind, metadata=metadata)


async def slow(ctx):
    key = str((ctx.meta or {}).get(KEY))
    with (FOLDER / "keys").open("a") as file:
        file.write(f"{key}\n")
    while not (FOLDER / "release").exists():
        await anyio.sleep(0.02)
    return said("slow done")


async def call_tool(ctx, params):
    arguments = params.arguments or {}
    if params.name == "progress":
        for step in (1, 2, 3):
            await ctx.session.report_progress(step, 3, f"step {step}")
        return said("progressed")
    if params.name == "log":
        await ctx.session.send_log_message("info", "a line", related_request_id=ctx.request_id)
        return said("logged")
    if params.name == "sample":
        message = types.SamplingMessage(role="user", content=types.TextContent(text="why?"))
        wanted = types.CreateMessageRequestParams(messages=[message], max_tokens=10)
        answer = await ask(ctx, types.CreateMessageRequest(params=wanted), types.CreateMessageResult)
        return said(f"model: {answer.content.text}")
    if params.name == "elicit":
        return await elicit(ctx, params)
    if params.name == "slow":
        return await slow(ctx)
    if params.name == "change":
        (FOLDER / "changed").touch()
        await bus.publish(ToolsListChanged())
        if ctx.session.can_send_request:
            await ctx.session.send_tool_list_changed()
        return said("changed")
    return said(f"{params.name}: {arguments}")


async def elicit(ctx, params):
    form = types.ElicitRequestFormParams(
        message="who?", requested_schema={"type": "object", "properties": {"name": {"type": "string"}}}
    )
    request = types.ElicitRequest(params=form)
    given = (params.input_responses or {}).get("who")
    if given is None and ctx.protocol_version >= "2026-07-28":
        return types.InputRequiredResult(input_requests={"who": request}, request_state="one")
    answer = given or await ask(ctx, request, types.ElicitResult)
    return said(f"hello {answer.content['name']}")


async def list_resources(ctx, params):
    return types.ListResourcesResult(resources=[types.Resource(uri="note://one", name="one")])


async def read_resource(ctx, params):
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text="é note")])


async def list_prompts(ctx, params):
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet")])


async def get_prompt(ctx, params):
    content = types.TextContent(text=f"Greet {(params.arguments or {}).get('who')}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


async def set_level(ctx, params):
    return types.EmptyResult()


class Both(Server):
    """Handshake clients are told that the list of tools may change, too."""

    def create_initialization_options(self, *args, **kwargs):
        options = super().create_initialization_options(*args, **kwargs)
        if options.capabilities.tools is not None:
            options.capabilities.tools.list_changed = True
        return options


server = Both(
    "counterpart",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_set_logging_level=set_level,
    on_subscriptions_listen=ListenHandler(bus),
)


class Recorder:
    """Notes every request's method and headers for the test to look at."""

    def __init__(self, app) -> None:
        self.app = app

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] == "http":
            with (FOLDER / "requests").open("a") as file:
                file.write(f"{scope['method']} {dict(scope['headers'])!r}\n")
        await self.app(scope, receive, send)


if __name__ == "__main__":
    uvicorn.run(
        Recorder(server.streamable_http_app()), host="127.0.0.1", port=int(sys.argv[1]), log_level="error"
    )
