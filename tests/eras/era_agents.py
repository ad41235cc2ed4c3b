"""What the tests of the eras share: an agent on the official client."""

import asyncio
import secrets
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.gateway import TOKEN
from tests.waiting import PATIENCE, until

MODES = {"handshake": "legacy", "modern": "2026-07-28"}


async def cancel(gateway, call, key):
    """Cancel a call that has begun at its server, which hears of it."""
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call
    await until(lambda: noted(gateway, "cancelled", key), "the cancellation at the server")


def new_key():
    return f"k{secrets.token_hex(6)}"


def text(result):
    return "\n".join(part.text for part in result.content if part.type == "text")


def noted(gateway, name, key):
    """How often a server noted `key` under this name."""
    path = gateway.folder / name
    return path.read_text().splitlines().count(key) if path.exists() else 0


def story(gateway, key):
    """The states of each call that carries `key`, oldest first; the calls in no order."""
    rows = gateway.admin.get(f"/api/calls?text={key}")["rows"]
    return [gateway.story(call) for call in {row["call"] for row in rows}]


def states(gateway, key):
    """The states of the one call that carries `key`."""
    [found] = story(gateway, key)
    return found


@dataclass
class Agent:
    """A client with a person and a model behind it; it keeps what it was asked and told."""

    url: str
    http: httpx2.AsyncClient
    modern: bool
    name: str = "Ada"
    action: str = "accept"
    thinks: asyncio.Event | None = None
    client: Client = None
    asked: list = field(default_factory=list)
    progress: list = field(default_factory=list)
    notices: list = field(default_factory=list)

    async def elicited(self, ctx, params):
        self.asked.append(params.message)
        if self.thinks is not None:
            await self.thinks.wait()
        fields = params.requested_schema["properties"]
        content = {"name": self.name, "colour": "green", "run": True}
        content = {name: value for name, value in content.items() if name in fields}
        return types.ElicitResult(action=self.action, content=content if self.action == "accept" else None)

    async def sampled(self, ctx, params):
        self.asked.append(params.messages[0].content.text)
        return types.CreateMessageResult(role="assistant", content=types.TextContent(text="Paris"), model="m")

    async def progressed(self, progress, total, message):
        self.progress.append((progress, total, message))

    async def heard(self, message):
        self.notices.append(getattr(message, "method", ""))

    async def call(self, tool, **arguments):
        return await self.client.call_tool(tool, arguments, progress_callback=self.progressed)

    async def execute(self, tool_id, *, meta=None, **arguments):
        wanted = {"tool_id": tool_id, "args": arguments}
        return await self.client.call_tool(
            "tool_execute", wanted, progress_callback=self.progressed, meta=meta
        )

    async def leg(self, tool, inputs=None, **arguments):
        """One modern request without what the client does by itself: the result, or the error."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODES["modern"],
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        }
        params = {"name": tool, "arguments": arguments, "_meta": meta, **(inputs or {})}
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODES["modern"],
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        reply = (await self.http.post(self.url, json=body, headers=headers)).json()
        return reply.get("result") or reply["error"]

    async def tools(self):
        return [tool.name for tool in (await self.client.list_tools()).tools]

    @asynccontextmanager
    async def list_change(self):
        """Inside, the agent hears of changes as its era does; leaving waits for one."""
        if not self.modern:
            yield
            await until(lambda: "notifications/tools/list_changed" in self.notices, "a change notice")
            return
        async with self.client.listen(tools_list_changed=True) as events:
            yield
            await anext(aiter(events))


@asynccontextmanager
async def agent(gateway, era, mode="", *, token=TOKEN, can_answer=True, **answers):
    """A client of `era`; `answers` are the name and the action with which its person answers, when it no longer `thinks`."""
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE) as http:
        made = Agent(f"{gateway.url}/mcp{mode}", http, era == "modern", **answers)
        callbacks = {"elicitation_callback": made.elicited, "sampling_callback": made.sampled}
        async with Client(
            streamable_http_client(made.url, http_client=http),
            mode=MODES[era],
            cache=None,
            message_handler=made.heard,
            **(callbacks if can_answer else {}),
        ) as made.client:
            yield made
