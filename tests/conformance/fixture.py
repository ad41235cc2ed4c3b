"""The MCP server that the conformance suite expects, put behind the gateway: `fixture.py http PORT` or `fixture.py stdio`.

Every name, text and schema that the suite looks for is here, in both protocol eras. A tool that announces a
changed list really changes it, because the gateway passes on only changes that somebody can see.
"""

import asyncio
import json
import re
import sys
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.message import ServerMessageMetadata

warnings.filterwarnings("ignore", category=MCPDeprecationWarning)

Work = Callable[[Any, Any], Awaitable[Any]]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
NAME_FIELD = {"name": {"type": "string"}}
bus = InMemorySubscriptionBus()
works: dict[str, tuple[types.Tool, Work]] = {}
extra = {"tool": False, "prompt": False}


def tool(name: str, description: str, schema: dict[str, Any] | None = None) -> Callable[[Work], Work]:
    """Register what a tool of this name does."""

    def register(work: Work) -> Work:
        shape = schema if schema is not None else {"type": "object", "properties": {}}
        works[name] = (types.Tool(name=name, description=description, input_schema=shape), work)
        return work

    return register


def takes(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def text(words: str) -> types.TextContent:
    return types.TextContent(text=words)


def image() -> types.ImageContent:
    return types.ImageContent(data=PIXEL, mime_type="image/png")


def document(uri: str, body: str, mime: str = "text/plain") -> types.EmbeddedResource:
    contents = types.TextResourceContents(uri=uri, mime_type=mime, text=body)
    return types.EmbeddedResource(resource=contents)


def says(*content: Any, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=list(content), is_error=is_error)


# What a tool can simply return.

PLAIN = {
    "test_simple_text": says(text("This is a simple text response for testing.")),
    "test_image_content": says(image()),
    "test_audio_content": says(types.AudioContent(data=SILENCE, mime_type="audio/wav")),
    "test_embedded_resource": says(
        document("test://embedded-resource", "This is an embedded resource content.")
    ),
    "test_multiple_content_types": says(
        text("Multiple content types test:"),
        image(),
        document("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ),
    "test_error_handling": says(text("This tool intentionally returns an error for testing"), is_error=True),
}


def plain(result: types.CallToolResult) -> Work:
    async def work(ctx: Any, params: Any) -> types.CallToolResult:
        return result

    return work


for plain_name, plain_result in PLAIN.items():
    tool(plain_name, "Answers always the same")(plain(plain_result))


# What is sent while a tool runs.


async def log_line(ctx: Any, line: str) -> None:
    await ctx.session.send_log_message("info", line, related_request_id=ctx.request_id)


@tool("test_tool_with_logging", "Logs three lines")
async def logs_three(ctx: Any, params: Any) -> Any:
    for line in "Tool execution started", "Tool processing data", "Tool execution completed":
        await log_line(ctx, line)
        await asyncio.sleep(0.05)
    return says(text("Logged three lines"))


@tool("test_logging_tool", "Logs one line")
async def logs_one(ctx: Any, params: Any) -> Any:
    await log_line(ctx, "One line")
    return says(text("Logged one line"))


@tool("test_tool_with_progress", "Reports progress in three steps")
async def progresses(ctx: Any, params: Any) -> Any:
    for step in 0, 50, 100:
        await ctx.session.report_progress(step, 100, f"Completed step {step} of 100")
        await asyncio.sleep(0.05)
    return says(text("Progressed"))


@tool("test_reconnection", "Closes its event stream in the middle")
async def reconnects(ctx: Any, params: Any) -> Any:
    await log_line(ctx, "About to hang up")
    if ctx.close_sse_stream:
        await ctx.close_sse_stream()
    await asyncio.sleep(0.2)
    return says(text("Reconnection test completed"))


# Questions to the client, as the handshake revisions ask them.


def form(message: str, properties: dict[str, Any], required: tuple[str, ...] = ()) -> types.ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(question: str, tokens: int = 100) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=text(question))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=tokens)
    )


async def ask(ctx: Any, request: Any, kind: Any) -> Any:
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    return await ctx.session.send_request(request, kind, metadata=related)


async def ask_form(ctx: Any, label: str, request: types.ElicitRequest) -> Any:
    reply = await ask(ctx, request, types.ElicitResult)
    return says(text(f"{label}: action={reply.action}, content={json.dumps(reply.content or {})}"))


@tool("test_sampling", "Asks the client's model", takes(prompt={"type": "string"}))
async def samples(ctx: Any, params: Any) -> Any:
    reply = await ask(ctx, sample(params.arguments["prompt"]), types.CreateMessageResult)
    return says(text(f"LLM response: {getattr(reply.content, 'text', '')}"))


@tool("test_elicitation", "Asks the client's user", takes(message={"type": "string"}))
async def elicits(ctx: Any, params: Any) -> Any:
    properties = {
        "username": {"type": "string", "description": "Who you are"},
        "email": {"type": "string", "description": "Where to write to"},
    }
    return await ask_form(
        ctx, "User response", form(params.arguments["message"], properties, ("username", "email"))
    )


@tool("test_elicitation_sep1034_defaults", "Asks with a default for every kind of field")
async def elicits_defaults(ctx: Any, params: Any) -> Any:
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return await ask_form(ctx, "Elicitation completed", form("Please look these over", properties))


def choices(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in pairs]


@tool("test_elicitation_sep1330_enums", "Asks with every kind of choice")
async def elicits_enums(ctx: Any, params: Any) -> Any:
    two = choices(("value1", "First"), ("value2", "Second"))
    properties = {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": two},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": two}},
    }
    return await ask_form(ctx, "Elicitation completed", form("Please choose", properties))


# Questions to the client, as 2026-07-28 asks them: by returning them.


def needs(state: str | None = None, **requests: Any) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=requests or None, request_state=state)


def reply_to(params: Any, name: str, kind: Any = types.ElicitResult) -> Any:
    reply = (params.input_responses or {}).get(name)
    return reply if isinstance(reply, kind) else None


def field(reply: Any, name: str) -> Any:
    return (reply.content or {}).get(name)


CONFIRM = form("Please confirm", {"ok": {"type": "boolean"}}, ("ok",))
WHO = form("What is your name?", NAME_FIELD, ("name",))


@tool("test_input_required_result_elicitation", "Needs a name")
async def needs_name(ctx: Any, params: Any) -> Any:
    reply = reply_to(params, "user_name")
    return says(text(f"Hello, {field(reply, 'name')}!")) if reply else needs(user_name=WHO)


@tool("test_input_required_result_sampling", "Needs the client's model")
async def needs_model(ctx: Any, params: Any) -> Any:
    reply = reply_to(params, "capital_question", types.CreateMessageResult)
    if reply is None:
        return needs(capital_question=sample("What is the capital of France?"))
    return says(text(f"The model said: {getattr(reply.content, 'text', '')}"))


@tool("test_input_required_result_list_roots", "Needs the client's roots")
async def needs_roots(ctx: Any, params: Any) -> Any:
    reply = reply_to(params, "client_roots", types.ListRootsResult)
    return says(text(f"{len(reply.roots)} roots")) if reply else needs(client_roots=types.ListRootsRequest())


@tool("test_input_required_result_request_state", "Needs its state back")
async def needs_state(ctx: Any, params: Any) -> Any:
    if reply_to(params, "confirm") and params.request_state == "first":
        return says(text("state-ok"))
    return needs("first", confirm=CONFIRM)


@tool("test_input_required_result_multiple_inputs", "Needs three things at once")
async def needs_three(ctx: Any, params: Any) -> Any:
    requests = {
        "user_name": WHO,
        "greeting": sample("Generate a greeting", 50),
        "client_roots": types.ListRootsRequest(),
    }
    if requests.keys() <= (params.input_responses or {}).keys():
        return says(text("All three arrived"))
    return needs("three", **requests)


@tool("test_input_required_result_multi_round", "Needs two things, one after the other")
async def needs_two_rounds(ctx: Any, params: Any) -> Any:
    state = json.loads(params.request_state or "{}")
    name, colour = reply_to(params, "step1"), reply_to(params, "step2")
    if state.get("round") == 1 and name:
        question = form("Step 2: What is your favorite color?", {"color": {"type": "string"}}, ("color",))
        return needs(json.dumps({"round": 2, "name": field(name, "name")}), step2=question)
    if state.get("round") == 2 and colour:
        return says(text(f"{state['name']} likes {field(colour, 'color')}"))
    return needs(json.dumps({"round": 1}), step1=form("Step 1: What is your name?", NAME_FIELD, ("name",)))


@tool("test_input_required_result_tampered_state", "Refuses a state that is not its own")
async def needs_own_state(ctx: Any, params: Any) -> Any:
    return says(text("state-ok")) if params.request_state else needs("mine", confirm=CONFIRM)


@tool("test_input_required_result_capabilities", "Asks only what the client can answer")
async def needs_what_it_can(ctx: Any, params: Any) -> Any:
    able, requests = ctx.session.client_capabilities, {}
    if able and able.sampling is not None:
        requests["sample"] = sample("Say hello", 50)
    if able and able.elicitation is not None:
        requests["ask"] = WHO
    return needs("able", **requests)


@tool("test_streaming_elicitation", "Reports progress, then needs a name")
async def progresses_and_needs(ctx: Any, params: Any) -> Any:
    await ctx.session.report_progress(1, 2, "Half of it")
    return says(text("Done")) if params.input_responses else needs(who=form("What is your name?", NAME_FIELD))


@tool("test_missing_capability", "Works only with a client that can sample")
async def needs_sampling(ctx: Any, params: Any) -> Any:
    able = ctx.session.client_capabilities
    if able is None or able.sampling is None:
        data = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "The client cannot sample", data)
    return says(text("The client can sample"))


# Schemas, mirrored headers, changing lists.

KEYWORDS_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
tool("json_schema_2020_12_tool", "Has a schema of many keywords", KEYWORDS_SCHEMA)(
    plain(says(text("Accepted")))
)


@tool(
    "test_x_mcp_header",
    "Repeats an argument in a header",
    takes(region={"type": "string", "x-mcp-header": "Region"}),
)
async def mirrors(ctx: Any, params: Any) -> Any:
    return says(text((params.arguments or {}).get("region", "")))


@tool("test_trigger_tool_change", "Changes the list of tools")
async def changes_tools(ctx: Any, params: Any) -> Any:
    extra["tool"] = not extra["tool"]
    await bus.publish(ToolsListChanged())
    await ctx.session.send_tool_list_changed()
    return says(text("The tools changed"))


@tool("test_trigger_prompt_change", "Changes the list of prompts")
async def changes_prompts(ctx: Any, params: Any) -> Any:
    extra["prompt"] = not extra["prompt"]
    await bus.publish(PromptsListChanged())
    await ctx.session.send_prompt_list_changed()
    return says(text("The prompts changed"))


COMES_AND_GOES = "test_that_comes_and_goes"
tool(COMES_AND_GOES, "Is there now")(plain(says(text("Here"))))


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    shown = [entry for entry, _ in works.values() if extra["tool"] or entry.name != COMES_AND_GOES]
    return types.ListToolsResult(tools=shown)


async def call_tool(ctx: Any, params: Any) -> Any:
    if params.name not in works:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await works[params.name][1](ctx, params)


# Resources.

TEXTS = {
    "test://static-text": "This is the content of the static text resource.",
    "test://watched-resource": "Watched resource content",
}
TEMPLATE = re.compile(r"test://template/([^/]+)/data")


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    kinds = dict.fromkeys(TEXTS, "text/plain") | {"test://static-binary": "image/png"}
    entries = [types.Resource(uri=uri, name=uri.rpartition("/")[2], mime_type=m) for uri, m in kinds.items()]
    return types.ListResourcesResult(resources=entries)


async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(
        uri_template="test://template/{id}/data", name="template", mime_type="application/json"
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(ctx: Any, params: Any) -> types.ReadResourceResult:
    uri = params.uri
    contents: Any
    if uri in TEXTS:
        contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=TEXTS[uri])
    elif uri == "test://static-binary":
        contents = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)
    elif found := TEMPLATE.fullmatch(uri):
        body = json.dumps({"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"})
        contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=body)
    else:
        code = types.INVALID_PARAMS if ctx.protocol_version == "2026-07-28" else -32002
        raise MCPError(code, f"Resource not found: {uri}", {"uri": uri})
    return types.ReadResourceResult(contents=[contents])


async def nothing(ctx: Any, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


# Prompts.

PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}
CONTEXT = form("What context should the prompt use?", {"context": {"type": "string"}}, ("context",))


def prompt_entry(name: str, arguments: tuple[str, ...]) -> types.Prompt:
    listed = [types.PromptArgument(name=one, description=one, required=True) for one in arguments]
    return types.Prompt(name=name, description=f"The prompt {name}", arguments=listed or None)


async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    names = {**PROMPTS, "test_that_comes_and_goes": ()} if extra["prompt"] else PROMPTS
    return types.ListPromptsResult(prompts=[prompt_entry(*entry) for entry in names.items()])


def prompt_content(name: str, given: dict[str, str]) -> list[Any]:
    match name:
        case "test_simple_prompt":
            return [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            return [text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")]
        case "test_prompt_with_embedded_resource":
            return [
                document(given.get("resourceUri", ""), "Embedded resource content for testing."),
                text("Please process the embedded resource above."),
            ]
        case "test_prompt_with_image":
            return [image(), text("Please analyze the image above.")]
    raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {name}")


async def get_prompt(ctx: Any, params: Any) -> Any:
    if params.name == "test_input_required_result_prompt":
        reply = reply_to(params, "user_context")
        if reply is None:
            return needs(user_context=CONTEXT)
        content = [text(f"Use this context: {field(reply, 'context')}")]
    else:
        content = prompt_content(params.name, params.arguments or {})
    return types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=part) for part in content]
    )


async def complete(ctx: Any, params: Any) -> types.CompleteResult:
    return types.CompleteResult(
        completion=types.Completion(values=["paris", "park"], total=2, has_more=False)
    )


class Events(EventStore):
    """Keeps every event, so that a client can come back for those it missed."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self.rows.append((stream_id, message))
        return str(len(self.rows))

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        last = int(last_event_id)
        if not 0 < last <= len(self.rows):
            return None
        stream = self.rows[last - 1][0]
        for number, (owner, message) in enumerate(self.rows[last:], last + 1):
            if owner == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def make_server() -> Server[Any]:
    server: Server[Any] = Server(
        "conformance-fixture",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=nothing,
        on_unsubscribe_resource=nothing,
        on_subscriptions_listen=ListenHandler(bus),
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=nothing,
        get_tool_input_schema=lambda name: works[name][0].input_schema if name in works else None,
    )
    security = RequestStateSecurity(keys=[b"a key that only this fixture has"])
    server.middleware.append(RequestStateBoundary(security, default_audience=server.name))
    return server


async def serve_stdio() -> None:
    from mcp.server.stdio import stdio_server

    server = make_server()
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


def serve_http(port: int) -> None:
    import uvicorn

    app = make_server().streamable_http_app(event_store=Events(), retry_interval=100)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        asyncio.run(serve_stdio())
    else:
        serve_http(int(sys.argv[2]))
