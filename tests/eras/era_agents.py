"""What the tests of the eras share: an agent on the official client, and waiting for what others do."""

import asyncio
import secrets
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.gateway import TOKEN

MODES = {"handshake": "legacy", "modern": "2026-07-28"}
ASKED = "two_rounds"
ANSWERS = {"Who are you?": {"name": "Ada"}, "Which colour?": {"colour": "green"}}


def wait_until(condition, what, seconds=30):
    """Wait for something another process does."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.02)
    return found


async def until(condition, what, seconds=30):
    return await asyncio.to_thread(wait_until, condition, what, seconds)


def run(scenario):
    async def bounded():
        async with asyncio.timeout(60):
            await scenario()

    asyncio.run(bounded())


def new_key():
    return f"k{secrets.token_hex(6)}"


def text(result):
    return "\n".join(part.text for part in result.content if part.type == "text")


@dataclass
class Agent:
    """A client with a person and a model behind it; it keeps what it was asked and told."""

    client: Client = None
    modern: bool = False
    asked: list = field(default_factory=list)
    progress: list = field(default_factory=list)
    notices: list = field(default_factory=list)

    async def elicited(self, ctx, params):
        self.asked.append(params.message)
        content = ANSWERS.get(params.message) or {"name": "Ada", "check": True}
        return types.ElicitResult(action="accept", content=content)

    async def sampled(self, ctx, params):
        self.asked.append(params.messages[0].content.text)
        return types.CreateMessageResult(role="assistant", content=types.TextContent(text="Paris"), model="m")

    async def progressed(self, progress, total, message):
        self.progress.append((progress, total, message))

    async def heard(self, message):
        self.notices.append(getattr(message, "method", ""))

    async def call(self, tool, **arguments):
        return await self.client.call_tool(tool, arguments, progress_callback=self.progressed)

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
async def agent(gateway, era):
    made = Agent(modern=era == "modern")
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30) as http,
        Client(
            streamable_http_client(f"{gateway.url}/mcp", http_client=http),
            mode=MODES[era],
            cache=None,
            elicitation_callback=made.elicited,
            sampling_callback=made.sampled,
            message_handler=made.heard,
        ) as client,
    ):
        made.client = client
        yield made
