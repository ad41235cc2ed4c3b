"""Run as a program: a server made with the official SDK, in every era it knows.

python sdk_server.py stdio
python sdk_server.py http PORT
"""

import sys
import warnings

import anyio
import mcp_types as types
import uvicorn
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.message import ServerMessageMetadata

warnings.filterwarnings("ignore", category=MCPDeprecationWarning)
bus = InMemorySubscriptionBus()
extra: list[str] = []
cancelled: list[str] = []
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
REGION = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}


def text(words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=words)])


def form(message: str) -> types.ElicitRequest:
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=NAME))


async def echo(ctx, params):
    return text(params.arguments["text"])


async def era(ctx, params):
    return text(ctx.protocol_version)


async def capabilities(ctx, params):
    found = ctx.session.client_capabilities
    return text(",".join(sorted(found.model_dump(exclude_none=True))) if found else "")


async def meta(ctx, params):
    return text(str(sorted(dict(ctx.meta or {}))))


async def fail(ctx, params):
    return types.CallToolResult(content=[types.TextContent(text="no")], is_error=True)


async def refuse(ctx, params):
    raise MCPError(types.INVALID_PARAMS, "that is not possible", {"why": "because"})


async def push(ctx, params):
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    answer = await ctx.session.send_request(form("who?"), types.ElicitResult, metadata=related)
    return text(f"hello {(answer.content or {}).get('name')}")


async def rounds(ctx, params):
    answer = (params.input_responses or {}).get("who")
    if isinstance(answer, types.ElicitResult) and params.request_state == "s1":
        return text(f"hello {(answer.content or {}).get('name')}")
    return types.InputRequiredResult(input_requests={"who": form("who?")}, request_state="s1")


async def steps(ctx, params):
    for step in range(3):
        await ctx.session.report_progress(step, 3, f"step {step}")
    return text("done")


async def log(ctx, params):
    await ctx.session.send_log_message("warning", "careful", related_request_id=ctx.request_id)
    return text("logged")


async def wait(ctx, params):
    try:
        await anyio.sleep(600)
    finally:
        cancelled.append("wait")


async def was_cancelled(ctx, params):
    return text(str(len(cancelled)))


async def grow(ctx, params):
    extra.append(f"extra-{len(extra)}")
    await bus.publish(ToolsListChanged())
    await ctx.session.send_tool_list_changed()
    return text("grown")


async def touch(ctx, params):
    await bus.publish(ResourceUpdated(uri="test://note"))
    return text("touched")


async def region(ctx, params):
    headers = ctx.request.headers if ctx.request is not None else {}
    return text(headers.get("mcp-param-region", ""))


HANDLERS = {
    f.__name__: f
    for f in (
        echo,
        era,
        capabilities,
        meta,
        fail,
        refuse,
        push,
        rounds,
        steps,
        log,
        wait,
        was_cancelled,
        grow,
        touch,
        region,
    )
}


def schema(name: str) -> dict:
    return REGION if name == "region" else {"type": "object"}


async def list_tools(ctx, params):
    names = [*HANDLERS, *extra]
    return types.ListToolsResult(tools=[types.Tool(name=n, input_schema=schema(n)) for n in names])


async def call_tool(ctx, params):
    return await HANDLERS.get(params.name, era)(ctx, params)


async def list_resources(ctx, params):
    return types.ListResourcesResult(resources=[types.Resource(uri="test://note", name="note")])


async def read_resource(ctx, params):
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text="a note")])


async def list_prompts(ctx, params):
    return types.ListPromptsResult(prompts=[types.Prompt(name="hello")])


async def get_prompt(ctx, params):
    message = types.PromptMessage(role="user", content=types.TextContent(text="say hello"))
    return types.GetPromptResult(messages=[message])


async def empty(ctx, params):
    return types.EmptyResult()


server = Server(
    "test-server",
    version="1",
    instructions="Does what\n tests\u202e need.",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_subscribe_resource=empty,
    on_unsubscribe_resource=empty,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_set_logging_level=empty,
    on_subscriptions_listen=ListenHandler(bus),
    get_tool_input_schema=schema,
)


async def over_stdio() -> None:
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


if sys.argv[1] == "stdio":
    anyio.run(over_stdio)
else:
    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=int(sys.argv[2]), log_level="error")
