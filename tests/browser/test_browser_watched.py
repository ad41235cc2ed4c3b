"""What a person watches: each open browser with its last picture, and a button that stops it."""

from tests.browser.browser_house import page, stop_browsers
from tests.ui import chromium
from tests.waiting import wait_until


def test_an_open_browser_is_listed_with_its_picture(agent):
    agent.site.replies["/here"] = page("<title>Here</title><h1>Here</h1>")
    agent.open("/here")
    [screen] = agent.gateway.admin.get("/api/browsers")
    assert screen["place"] == f"{agent.site.url}/here"
    assert screen["caller"] == "pi"
    assert screen["title"] == "Here"
    connection = agent.gateway.admin.connection()
    connection.request("GET", f"/api/browsers/{screen['id']}/picture")
    assert connection.getresponse().read()[:3] == b"\xff\xd8\xff"
    connection.close()


def test_a_stopped_browser_is_gone_and_its_agent_told(agent):
    agent.site.replies["/here"] = page("<h1>Here</h1>")
    agent.open("/here")
    stop_browsers(agent.gateway)
    assert agent.gateway.admin.get("/api/browsers") == []
    assert "No page is open" in agent.refused("snapshot")
    assert "A person stopped this browser" in agent.open("/here")


def test_the_page_shows_open_browsers_and_stops_one(agent):
    """The operator's page, looked at with a browser of its own."""
    agent.site.replies["/watched"] = page("<title>Watched page</title><h1>Here</h1>")
    agent.open("/watched")
    gateway = agent.gateway
    with chromium.started() as browser:
        tab = browser.new_page()
        tab.goto(gateway.admin.request("POST", "/api/logins", {})["url"])
        tab.wait_for_selector("#nav a")
        tab.goto(f"{gateway.announced['admin']}/#/now")
        card = tab.locator("div.need", has_text="Watched page")
        card.locator("img").wait_for()
        assert wait_until(lambda: card.locator("img").evaluate("image => image.naturalWidth > 100"))
        card.get_by_role("button", name="Stop").click()
        assert wait_until(lambda: "/watched" not in str(gateway.admin.get("/api/browsers")))


def test_the_page_shows_the_picture_beside_the_question(agent):
    agent.site.replies["/pay"] = page("<form action=/order method=post><button>Place order</button></form>")
    agent.open("/pay")
    ask, _ = agent.asks("click", ref=agent.ref("Place order"))
    gateway = agent.gateway
    with chromium.started() as browser:
        tab = browser.new_page()
        tab.goto(gateway.admin.request("POST", "/api/logins", {})["url"])
        tab.wait_for_selector("#nav a")
        tab.goto(f"{gateway.announced['admin']}/#/approvals/{ask['id']}")
        image = tab.get_by_alt_text("What the call would act on")
        assert wait_until(lambda: image.evaluate("image => image.naturalWidth > 100"))
