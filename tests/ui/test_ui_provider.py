"""Logging in at the provider with a real browser doing the person's part, and out again."""

import re

from tests.oidc.provider_house import ProviderProcess, vouching_gate


def test_a_person_logs_in_at_the_provider_and_out_of_both(browser, tmp_path):
    with ProviderProcess() as provider, vouching_gate(tmp_path, provider) as gateway:
        provider.tell_of("vera", groups="staff")
        page = browser.new_context().new_page()
        # The provider's pages want a font from elsewhere.
        page.route(re.compile(r"^https?://(?!127\.0\.0\.1)"), lambda route: route.abort())
        page.goto(gateway.announced["admin"])
        page.click("text=Log in with 127.0.0.1")
        page.fill("[name=login]", "vera")
        page.fill("[name=password]", "anything")
        page.click("button[type=submit]")
        page.click("button:has-text('Continue')")
        page.wait_for_selector("#nav a")
        assert page.evaluate("location.hash + location.pathname").startswith(("#/", "/"))
        page.wait_for_selector("text=vera@example.test")
        page.click("button:has-text('Log out')")
        page.wait_for_url(f"{provider.issuer}/session/end*")
        page.click("button:has-text('Yes')")
        page.wait_for_url(f"{gateway.announced['admin']}/login*")
        page.goto(gateway.announced["admin"])
        page.wait_for_selector("text=Log in with 127.0.0.1")
