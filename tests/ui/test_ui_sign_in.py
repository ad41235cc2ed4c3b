"""A person signs in on the page, in a real browser: the link, consent at the real server, and back."""

import pytest
from tests.gateway import running
from tests.oauth.authority import authorization_server
from tests.oauth.protected import protected_server
from tests.oauth.test_signing_in import files, needs_auth, state, traces
from tests.ui.ui_house import opened
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def behind(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signing")
    with authorization_server() as authority, protected_server(authority.issuer) as server:
        with running(folder, files(server.url), "--insecure") as gateway:
            wait_until(lambda: needs_auth(gateway))
            yield gateway, server
        assert traces(folder, *server.tokens) == []


def test_what_needs_a_sign_in_is_signed_in_to_with_two_clicks_and_ended_with_one(tab, browser, behind):
    gateway, server = behind
    page = opened(tab, gateway)
    page.goto(f"{gateway.announced['admin']}/#/now")
    page.locator(".need:has-text('notes needs a sign-in')").get_by_role("link", name="Sign in").click()
    page.wait_for_url("**/#/accounts/notes")
    page.get_by_role("button", name="Sign in").click()
    with page.context.expect_page() as came:
        page.get_by_role("link", name="Open the sign-in page").click()
    consent = came.value
    consent.fill("input[name=login]", "alice")
    consent.fill("input[name=password]", "anything")
    consent.click("button[type=submit]")
    consent.wait_for_selector("text=Continue")
    consent.click("button[type=submit]")
    consent.wait_for_selector("text=notes has its account")
    assert "code=" not in consent.content()
    wait_until(lambda: state(gateway)["status"] == "ready")
    page.wait_for_selector(".detail >> text=alice@example.test")
    page.get_by_role("button", name="End").click()
    page.click("dialog button:text-is('End')")
    wait_until(lambda: needs_auth(gateway))
    assert server.tokens
