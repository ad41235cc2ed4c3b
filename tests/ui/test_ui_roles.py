"""What somebody may not do is not on the page: every button of every page is pressed, and none is refused."""

import re

import pytest
from playwright.sync_api import expect
from tests.ui.test_ui_pages import PAGES
from tests.ui.ui_fixtures import NOW, approval
from tests.ui.ui_house import house

from agent_gate.access.roles import Rights
from agent_gate.net.http import json_response, refusal

PEOPLE = """\
people:
  anna: {login: anna, role: approver}
  nils: {login: nils, role: approver, namespaces: [elsewhere]}
  vic: {login: vic, role: viewer}
"""
GRANT = {
    "id": "g1", "caller": "pi", "tool_id": "mail:send", "signature": "mail_send(to=me)", "arguments_hash": "0" * 8,
    "definition_hash": "0" * 8, "created_at": NOW, "expires_at": None, "created_by": "anna", "session": None, "used": 1,
}  # fmt: skip
IDEA = {"text": "allow it", "rule": {"pattern": "x", "action": "allow"}}
MORE = {
    "/api/grants": [GRANT],
    "/api/devices": {"key": "AAAA", "devices": [{"id": "d1", "name": "a tablet"}]},
    "/api/operators": [{"name": "backup", "person": "anna", "created_at": NOW}],
    "/api/policy/suggest": {"questions": 3, "suggestions": [IDEA]},
}
PLACES = [*PAGES, "connect/shell", "you", "accounts/source-1", "sources/source-1"]
LETTERS = "aswhde"
READY = "() => !document.querySelector('main button[disabled]') && !document.querySelector('main .loading')"
ANEW = "() => dispatchEvent(new HashChangeEvent('hashchange'))"


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    with house(tmp_path_factory.mktemp("roles"), PEOPLE) as (gateway, _api):
        yield gateway


@pytest.fixture(scope="module")
def needed(real):
    """What each route needs, as the gateway itself says."""
    paths = real.admin.get("/openapi.json")["paths"].items()
    return [
        (method.upper(), re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), operation["x-role"])
        for path, operations in paths
        for method, operation in operations.items()
    ]


class Guard:
    """Lets through what a role may do, as the gateway does; keeps what it refused."""

    def __init__(self, role, needed, told=True):
        self.rights, self._needed, self._told = Rights(role), needed, told
        self.refused, self.sent = [], set()

    def __call__(self, request):
        if request.path == "/api/me":
            known = {"may": self.rights.may()} if self._told else {}
            return json_response(200, {"person": "vic", "channel": "page", "passphrase": False} | known)
        for method, path, role in self._needed:
            if method == request.method and path.fullmatch(request.path):
                self.sent.add((method, role))
                if not self.rights.include(role):
                    return self._refuse(request)
        if request.method == "GET" and request.params().get("state") == "answered":
            return json_response(200, [approval(1, "approved")])
        return json_response(200, MORE[request.path]) if request.path in MORE else None

    def _refuse(self, request):
        self.refused.append(f"{request.method} {request.path}")
        return refusal(403, "FORBIDDEN", "not yours")


def pressable(page):
    page.wait_for_function(READY)
    return page.locator("main button:visible:not([disabled]):not(:text-is('Log out'))")


def press(page, place):
    """Every button, each on a page drawn anew, and what its dialog would do; then every letter."""
    for number in range(pressable(page).count()):
        pressable(page).nth(number).click()
        sent = page.locator("dialog button.strong, dialog .buttons button").first
        if page.locator("dialog").count() and sent.is_visible():
            sent.click()
        draw(page, place)
    for letter in LETTERS:
        page.keyboard.press(letter)


def draw(page, place):
    page.evaluate("() => document.querySelectorAll('dialog').forEach((dialog) => dialog.close())")
    page.evaluate("(place) => history.replaceState(null, '', place)", f"#/{place}")
    page.evaluate(ANEW)
    page.wait_for_selector("main :is(.row, .card, .need, .tile, .devices h2)")


def walk(tab, fixtures, guard, places=PLACES):
    page = tab.page
    fixtures.guard = guard
    page.goto(f"{fixtures.url}/#/now")
    page.wait_for_selector("#nav a")
    for place in places:
        draw(page, place)
        press(page, place)
    page.goto("about:blank")
    return guard


@pytest.fixture
def guarded(fixtures):
    yield fixtures
    fixtures.guard = lambda _request: None


@pytest.mark.parametrize("role", ["viewer", "approver"])
def test_no_button_of_any_page_is_refused(tab, guarded, needed, role):
    assert walk(tab, guarded, Guard(role, needed)).refused == []


def test_the_walk_itself_presses_what_would_be_refused(tab, guarded, needed):
    guard = walk(
        tab, guarded, Guard("viewer", needed, told=False), ["agents", "approvals", "sources/source-1"]
    )
    methods = {one.partition(" ")[0] for one in guard.refused}
    assert {"POST", "DELETE"} <= methods


def asked(real, tab, login):
    """The question about a light, opened by somebody."""
    call = real.call("light_set", {"room": "hall"}, wait=0).json["call"]
    link = real.admin.request("POST", "/api/logins", {"login": login})["url"]
    page = tab.log_in(link).page
    page.goto(f"{real.announced['admin']}/#/approvals")
    page.click(".approvals .row >> nth=-1")
    page.wait_for_selector(".detail h2:has-text('Set the light in hall?')")
    return page, call


def test_a_question_of_another_namespace_has_no_answers_and_says_who_has(real, tab):
    page, _call = asked(real, tab, "nils")
    expect(page.locator(".answers")).to_have_text("This is not yours to answer. anna, operator may.")
    assert page.locator("[data-answer], .bar button:visible:has-text('Approve')").count() == 0
    assert page.locator(".approvals .row [type=checkbox]:enabled").count() == 0
    page.goto(f"{real.announced['admin']}/#/now")
    page.wait_for_selector(".need.wait:has-text('Set the light in hall?')")
    assert page.locator(".need.wait button").count() == 0


def test_a_viewer_is_told_so_and_an_approver_answers_without_the_means_to_change_rules(real, tab):
    page, _call = asked(real, tab, "vic")
    expect(page.locator("#top .who")).to_have_text("vic (may look)")
    expect(page.locator(".answers")).to_have_text("You may look, and not answer.")
    page, call = asked(real, tab, "anna")
    expect(page.locator("#top .who")).to_have_text("anna (may answer)")
    assert page.locator("button:has-text('Make a rule')").count() == 0
    page.click("[data-answer=deny]:not([disabled])")
    page.wait_for_selector("#toasts >> text=Denied")
    assert real.story(call)[-1] == "denied"
