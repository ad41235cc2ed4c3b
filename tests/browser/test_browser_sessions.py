"""A browser ends with the session it was opened for, whichever way the agent came in."""

import pytest
from tests.browser.browser_house import Agent, browser_house, page
from tests.gateway import TOKEN
from tests.waiting import wait_until

from agent_gate.client import Client

ASKS = 'rules: [{pattern: "browser_click*", action: ask}]\ndefaults: [{pattern: "*", action: allow}]\n'
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def screens(gateway):
    return gateway.admin.get("/api/browsers")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with browser_house(tmp_path_factory.mktemp("sessions"), ASKS, max_contexts=8, timeout=15) as (
        gateway,
        site,
    ):
        site.replies["/here"] = page("<h1>Here</h1><button onclick='document.title=1'>Go</button>")
        yield gateway, site


@pytest.fixture
def house(shared):
    gateway, _ = shared
    assert screens(gateway) == []
    yield shared
    wait_until(lambda: screens(gateway) == [])


class McpAgent:
    """A client of a revision with sessions."""

    def __init__(self, gateway):
        self.gateway, self.session, self.number = gateway, "", 0
        self.session = self.post("initialize", HELLO).headers["mcp-session-id"]

    def send(self, method, body=None):
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if self.session:
            headers |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": HELLO["protocolVersion"]}
        return self.gateway.request(method, "/mcp", body, headers=headers)

    def post(self, method, params):
        self.number += 1
        reply = self.send("POST", {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        assert reply.status == 200, reply.body
        return reply

    def call(self, tool, **arguments):
        return self.post("tools/call", {"name": tool, "arguments": arguments}).body.decode()

    def end(self):
        assert self.send("DELETE").status == 204


def test_a_session_that_its_client_ends_takes_its_browser_along_and_no_other(house):
    gateway, site = house
    first, second = McpAgent(gateway), McpAgent(gateway)
    for agent in (first, second):
        assert "Here" in agent.call("browser_navigate", url=f"{site.url}/here")
    assert len(screens(gateway)) == 2
    first.end()
    wait_until(lambda: len(screens(gateway)) == 1)
    assert "Here" in second.call("browser_snapshot")
    second.end()


def test_a_question_of_an_ended_session_still_finds_its_page(house):
    gateway, site = house
    rest, mcp = Agent(gateway, site, "watching"), McpAgent(gateway)
    rest.session = mcp.session
    rest.open("/here")
    asked, _ = rest.asks("click", ref=rest.ref("Go"))
    mcp.end()
    assert len(screens(gateway)) == 1
    assert rest.answer(asked)["became"]["state"] == "completed"
    wait_until(lambda: screens(gateway) == [])


async def visit(gateway, site, **options):
    """What the agent saw, and what was open while it was there."""
    async with Client(gateway.announced["url"], TOKEN, **options) as client:
        reply = await client.call("browser_navigate", {"url": f"{site.url}/here"})
        return str(reply), len(screens(gateway))


async def test_a_client_that_names_no_session_leaves_no_browser_behind(house):
    gateway, site = house
    said, opened = await visit(gateway, site)
    assert "Here" in said
    assert opened == 1
    wait_until(lambda: screens(gateway) == [])


async def test_a_session_with_a_name_is_found_again_by_the_next_connection(house):
    gateway, site = house
    await visit(gateway, site, session="evening")
    rest = Agent(gateway, site, "evening")
    assert "Here" in rest.call("snapshot")
    rest.call("close")


def test_the_browser_of_an_agent_that_is_revoked_is_closed(house):
    gateway, site = house
    token = gateway.admin.request("POST", "/api/agents", {"name": "guest"})["token"]
    headers = {"Agent-Session": "a"}
    call = gateway.call("browser_navigate", {"url": f"{site.url}/here"}, token=token, headers=headers)
    assert call.status == 200, call.body
    assert len(screens(gateway)) == 1
    gateway.admin.request("DELETE", "/api/agents/guest")
    wait_until(lambda: screens(gateway) == [])
