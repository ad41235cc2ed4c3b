"""The first tools over real pages: open, see, click, type; decided by what is on the page."""

import json

import pytest
from tests.browser.browser_house import page

SHOP = """<!doctype html><title>Shop</title><h1>Basket</h1><p>Two lamps, 40 euro</p>
<form action=/order method=post><label>Name <input name=name></label>
<label>Card <input type=password name=card value=4111></label><button>Place order</button>
<button type=button onclick="document.getElementById('said').textContent='Kept'">Save for later</button></form>
<p id=said></p><a href=/help>Help</a>"""


@pytest.fixture
def shop(agent):
    agent.site.replies.update(
        {
            "/": page("<h1>Front</h1><a href=/shop>Shop</a>"),
            "/shop": page(SHOP),
            "/order": page("<h1>Thanks</h1>"),
        }
    )
    agent.site.replies["/help"] = page("<h1>Help</h1>")
    agent.open("/shop")
    return agent


def test_a_page_is_seen_as_text_with_references(shop):
    assert "# Basket" in shop.last
    assert "Two lamps, 40 euro" in shop.last
    assert shop.ref("Save for later")
    assert "Page: Shop" in shop.last


def test_the_value_of_a_password_field_is_not_seen(shop):
    assert 'textbox "Card"' in shop.last
    assert "4111" not in shop.last
    assert "4111" not in shop.call("snapshot", full=True)


def test_a_click_says_what_it_changed(shop):
    said = shop.call("click", ref=shop.ref("Save for later"))
    assert "Clicked button “Save for later”" in said
    assert "+ Kept" in said
    assert "Two lamps" not in said


def test_a_click_on_a_link_shows_the_next_page(shop):
    assert "# Help" in shop.call("click", ref=shop.ref("Help"))


def test_text_is_typed_into_a_field(shop):
    shop.call("type", ref=shop.ref("Name"), text="Ada")
    assert '"Name" ' in shop.call("snapshot")
    assert '= "Ada"' in shop.last


def test_each_session_has_storage_of_its_own(shop, house):
    from tests.browser.browser_house import Agent

    other = Agent(*house, "another")
    shop.site.replies["/cookie"] = page("<script>document.cookie='a=1'</script><p>set</p>")
    shop.site.replies["/shown"] = page("<p id=p></p><script>p.textContent='has '+document.cookie</script>")
    shop.open("/cookie")
    assert "has a=1" in shop.open("/shown")
    assert "a=1" not in other.open("/shown")


def test_a_click_that_submits_asks_although_every_click_is_allowed(shop):
    approval, _ = shop.asks("click", ref=shop.ref("Place order"))
    assert approval["signature"] == f"browser_click({shop.site.url}, Place order)"
    assert approval["facts"]["submits"] == f"POST {shop.site.url}"
    assert approval["sentence"] == f"Click “Place order” on {shop.site.url}?"
    assert [one for one in shop.site.requests if one["path"] == "/order"] == []


def test_an_approved_submission_is_made_once(shop):
    approval, pending = shop.asks("click", ref=shop.ref("Place order"))
    shop.answer(approval)
    reply = shop.gateway.request("GET", f"/api/calls/{pending['call']}?wait=20")
    assert "Thanks" in json.dumps(reply.json)
    assert len([one for one in shop.site.requests if one["path"] == "/order"]) == 1


def test_what_the_agent_says_of_an_element_changes_nothing(shop):
    approval, _ = shop.asks("click", ref=shop.ref("Place order"), element="Help")
    assert approval["signature"].endswith("Place order)")
