"""A paired host on the page, in a real browser: its state and certificate, trusted with a click and revoked with one."""

import pytest
from tests.remote.paired import gating, hosting, pair
from tests.remote.test_paired_host import ready
from tests.ui.ui_house import opened
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def paired(tmp_path_factory):
    folder = tmp_path_factory.mktemp("peers")
    with gating(folder / "gate") as gateway, hosting(gateway, folder / "host") as host:
        assert pair(gateway, host).returncode == 0
        wait_until(lambda: ready(gateway))
        yield gateway, host


def test_a_peer_is_seen_trusted_and_revoked_on_the_page(tab, paired):
    gateway, host = paired
    page = opened(tab, gateway, "peers")
    page.click(".peers .row >> text=memory-east")
    page.wait_for_selector(f".detail >> text={host.announced['fingerprint']}")
    for words in ("paired", "tool host", "certificate ends", "last seen"):
        assert words in page.inner_text(".detail")
    page.get_by_role("button", name="Trust what it says").click()
    page.wait_for_selector(".detail >> text=is believed")
    page.get_by_role("button", name="Revoke").click()
    page.click("dialog button:text-is('Revoke')")
    page.wait_for_selector(".detail >> text=revoked by operator")
    assert gateway.call("memory_east__memory_query", {}).json["error"]["code"] == "TOOL_NOT_FOUND"
