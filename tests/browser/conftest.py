from itertools import count

import pytest
from tests.browser.browser_house import Agent, browser_house, stop_browsers

SESSIONS = count(1)


@pytest.fixture(scope="package")
def house(tmp_path_factory):
    """One browser for the whole folder; every test is a session of its own."""
    with browser_house(tmp_path_factory.mktemp("browser"), max_contexts=32, timeout=15) as made:
        yield made


@pytest.fixture
def agent(house):
    gateway, site = house
    site.reset()
    for approval in gateway.admin.get("/api/approvals"):
        gateway.admin.request("POST", f"/api/approvals/{approval['id']}", {"verdict": "deny"})
    made = Agent(gateway, site, f"s{next(SESSIONS)}")
    yield made
    stop_browsers(gateway)
