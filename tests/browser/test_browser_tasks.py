"""A scripted agent does what people do in a shop, over MCP, with nothing but what the tools return."""

import json
import re
import subprocess
import sys

import pytest
from tests.browser.browser_house import browser_house
from tests.gateway import TOKEN
from tests.waiting import wait_until

RULES = """\
defaults: [{pattern: "*", action: allow}]
rules:
  - {pattern: "browser_*", action: allow, extra: [facts.submits, facts.downloads]}
"""
SERVE = """
import asyncio
from agent_gate.cli.demo.shop import Shop
from agent_gate.net.server import Server
async def main():
    server = Server(Shop().handle)
    await server.start("127.0.0.1", 0)
    print(server.port, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def shop():
    process = subprocess.Popen([sys.executable, "-c", SERVE], stdout=subprocess.PIPE, text=True)
    yield f"127.0.0.1:{process.stdout.readline().strip()}"
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.fixture(scope="module")
def gateway(shop, tmp_path_factory):
    with browser_house(tmp_path_factory.mktemp("tasks"), RULES, allow_private=[shop], max_contexts=8) as (
        made,
        _,
    ):
        yield made


class McpAgent:
    """One MCP session."""

    def __init__(self, gateway):
        self.gateway, self.session, self.last, self.number = gateway, None, "", 0
        client = {"name": "scripted", "version": "1"}
        self.send("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})

    def send(self, method, params):
        self.number += 1
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if self.session:
            headers |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-06-18"}
        body = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        reply = self.gateway.request("POST", "/mcp", body, token=TOKEN, headers=headers, timeout=60)
        self.session = self.session or reply.headers.get("mcp-session-id")
        text = reply.body.decode()
        if text.startswith(("event:", "data:", ":", "id:")):
            text = [line[5:] for line in text.splitlines() if line.startswith("data:")][-1]
        return json.loads(text)["result"]

    def do(self, tool, **arguments):
        result = self.send("tools/call", {"name": f"browser_{tool}", "arguments": arguments})
        assert not result.get("isError"), result
        self.content = result["content"]
        self.last = self.content[0]["text"]
        return self.last

    def ref(self, name):
        """Where a name leads, as it was seen last; looks again where only changes were told."""
        for _ in range(2):
            if found := re.search(rf'"{re.escape(name)}" \[(\w+)\]', self.last):
                return found[1]
            self.do("snapshot")
        raise AssertionError(self.last)

    def click(self, name):
        return self.do("click", ref=self.ref(name))


@pytest.fixture
def agent(gateway, shop):
    made = McpAgent(gateway)
    made.do("navigate", url=f"http://{shop}/")
    yield made
    made.do("close")


def test_the_cheapest_lantern_is_found_by_search_and_filter(agent):
    agent.do("type", ref=agent.ref("Search"), text="lantern")
    agent.do("select_option", ref=agent.ref("Kind"), values=["lantern"])
    said = agent.click("Find")
    assert "2 products" in said
    prices = {name: int(price) for name, price in re.findall(r'"([\w ]+)" \[\w+\] (\d+) euro', said)}
    assert min(prices, key=prices.get) == "Camp lantern"


def test_two_products_are_compared(agent):
    hours = {}
    for name in ("Desk lamp", "Reading lamp"):
        said = agent.click(name)
        hours[name] = int(re.search(r"(\d+) hours", said)[1])
        agent.do("back")
    assert max(hours, key=hours.get) == "Reading lamp"


def test_a_wizard_is_filled_and_the_order_placed(agent):
    agent.click("Harbour lamp")
    agent.click("Add to basket")
    agent.click("Check out")
    values = {"Name": "Ada", "Street": "Quay 1", "City": "Lisbon"}
    refs = {name: agent.ref(name) for name in values}
    agent.do("fill_form", fields=[{"ref": refs[name], "value": value} for name, value in values.items()])
    agent.click("Continue")
    agent.click("Invoice")
    agent.click("Wrap it as a gift")
    said = agent.click("Continue")
    assert "Lisbon" in said
    assert "49 euro" in said
    assert "order number is B-" in agent.click("Place order")


def test_a_table_of_several_pages_is_read_to_its_end(agent):
    agent.click("Orders")
    total, pages = 0, 0
    while True:
        whole = agent.do("snapshot", full=True)
        total += sum(int(number) for number in re.findall(r'cell "(\d+) euro"', whole))
        pages += 1
        if '"Next page"' not in whole:
            break
        agent.do("click", ref=re.search(r'link "Next page" .*?\[ref=(\w+)\]', whole)[1])
    assert pages == 3
    assert total == sum(number * 7 % 90 + 10 for number in range(1, 31))


def test_a_report_is_downloaded(agent):
    agent.click("Orders")
    agent.do("download", ref=agent.ref("Report as CSV"))
    text = agent.content[1]["resource"]["text"]
    assert text.startswith("order,customer,total\nA-101,Customer 1,17\n")
    assert len(text.splitlines()) == 31


def test_each_mcp_session_has_a_browser_of_its_own(agent, gateway):
    other = McpAgent(gateway)
    result = other.send("tools/call", {"name": "browser_snapshot", "arguments": {}})
    assert result["isError"]
    assert "No page is open" in json.dumps(result)


def test_the_starter_lets_an_agent_shop_and_asks_for_the_order(shop, tmp_path_factory):
    from agent_gate.cli.demo.starter import BROWSER_RULES, PERMISSIONS

    rules = (PERMISSIONS + BROWSER_RULES).replace("127.0.0.1:8126", shop)
    with browser_house(tmp_path_factory.mktemp("starter"), rules, allow_private=[shop]) as (gateway, _):
        agent = McpAgent(gateway)
        agent.do("navigate", url=f"http://{shop}/product/2")
        agent.click("Add to basket")
        agent.do("navigate", url=f"http://{shop}/checkout/review")
        ref, headers = agent.ref("Place order"), {"Agent-Session": agent.session}
        assert gateway.call("browser_click", {"ref": ref}, wait=0, headers=headers).status == 202
        [question] = wait_until(lambda: gateway.admin.get("/api/approvals"))
        assert question["signature"] == f"browser_click(http://{shop}, Place order)"
        assert question["picture"] == "image/jpeg"
