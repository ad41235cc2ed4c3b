from statistics import median

from bench.suites import to_reach
from tests.discovery.tools import HOME, catalog, takes

from agent_gate.core.tool import Definition
from agent_gate.discovery.browse import Browser
from agent_gate.discovery.economy import cost, definition_of, measure
from agent_gate.discovery.meta import meta_tools, stripped

ARGUMENTS = takes(
    owner="The account that owns it. The name is not case sensitive.",
    name="Its name without the extension. The name is not case sensitive.",
    page="Which page of the results to fetch, counted from one.",
    order="The property to sort the results by, such as created or updated.",
)
SERVERS = {
    f"server{number}": [
        Definition(
            name=f"{action}_{thing}",
            description=f"{action.title()} a {thing} of server {number}. Needs the right scope. Answers the {thing}.",
            input_schema=ARGUMENTS,
        )
        for action in ("create", "update", "delete", "list", "find")
        for thing in (
            "invoice",
            "customer",
            "shipment",
            "warehouse",
            "contract",
            "payment",
            "product",
            "coupon",
        )
    ]
    for number in range(10)
}


def test_the_counts_are_those_of_the_listed_json():
    home = catalog(HOME)
    browser = Browser(home.tools, home.titles())
    economy = measure(home.tools, browser.deck)
    assert economy.upfront["full"] == sum(cost(definition_of(tool)) for tool in home.tools)
    listed = sum(cost(entry) for entry in stripped(home.tools, browser.deck))
    assert economy.upfront["proxy"] == listed + sum(map(cost, meta_tools("proxy")))
    assert sum(server.full for server in economy.servers) == economy.upfront["full"]


def test_four_hundred_tools_cost_little_up_front_and_soon_can_be_called():
    big = catalog(SERVERS)
    assert len(big.tools) == 400
    browser = Browser(big.tools, big.titles())
    economy = measure(big.tools, browser.deck)
    assert economy.upfront["gateway"] <= 0.03 * economy.upfront["full"]
    assert economy.recommended == "gateway"
    spent = [
        to_reach(browser, f"{tool.name.replace('_', ' a ')} on server {tool.namespace[6:]}", tool)
        for tool in big.tools
    ]
    assert median(tokens if tokens is not None else 10_000 for tokens in spent) <= 1500


def test_a_small_catalog_is_best_listed_whole():
    economy = measure(catalog(HOME).tools)
    assert economy.recommended == "full"
    assert str(economy.upfront["full"]) in economy.reason


def test_an_empty_catalog_costs_only_the_meta_tools():
    economy = measure([])
    assert economy.upfront["full"] == 0
    assert economy.recommended == "full"
