"""Secrets on the page: kept, replaced and removed by name, and their values shown nowhere."""

from tests.ui.ui_house import house, opened

VALUE, LATER = "first-value-of-anna", "second-value-of-anna"
PHRASE = "open-sesame-all"


def type_value(page, value):
    page.get_by_label("Value").fill(value)
    page.click("dialog button:has-text('Keep it')")


def test_a_secret_is_kept_replaced_and_removed_with_the_passphrase_and_never_shown(tab, tmp_path):
    with house(tmp_path, f"approvers: {{passphrase: {PHRASE}}}") as (gateway, _api):
        page = opened(tab, gateway, "secrets")
        page.click("button:has-text('Add a secret')")
        page.get_by_label("Name").fill("wiki-token")
        type_value(page, VALUE)
        page.fill("dialog[aria-label=Passphrase] input", "not the phrase")
        page.click("dialog button:has-text('Answer')")
        page.wait_for_selector(".toast.fault >> text=passphrase")
        assert gateway.admin.get("/api/secrets") == []

        page.click("dialog button:has-text('Keep it')")
        page.fill("dialog[aria-label=Passphrase] input", PHRASE)
        page.click("dialog button:has-text('Answer')")
        page.wait_for_selector(".detail dl.facts:has-text('vault:wiki-token')")
        [kept] = gateway.admin.get("/api/secrets")
        page.click("button:has-text('Replace…')")
        type_value(page, LATER)
        page.fill("dialog[aria-label=Passphrase] input", PHRASE)
        page.click("dialog button:has-text('Answer')")
        page.wait_for_selector("dialog", state="detached")
        assert gateway.admin.get("/api/secrets")[0]["updated_at"] > kept["updated_at"]
        assert not {VALUE, LATER} & set(page.content().split())

        page.click("button:has-text('Remove…')")
        page.click("dialog button:text-is('Remove')")
        page.fill("dialog[aria-label=Passphrase] input", PHRASE)
        page.click("dialog button:has-text('Answer')")
        page.wait_for_selector("text=There is no secret")
        assert gateway.admin.get("/api/secrets") == []
