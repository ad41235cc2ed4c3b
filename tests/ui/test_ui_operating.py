import hashlib
import re

import pytest
from playwright.sync_api import expect
from tests.ui.chromium import DESKTOP, PHONE
from tests.ui.ui_house import Calling, calling, house, opened

ROW = ".approvals .row"
MARKUP = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
BIDI = "invoice\u202egnp.exe\u200b\u0007\u2066"


def test_hostile_arguments_are_shown_as_what_they_are(tab, home):
    long = f"{'safe ' * 10_000}rm -rf ~"
    gateway, _api = home
    page = opened(tab, gateway)
    arguments = {"room": "hall", "note": f"{MARKUP}{BIDI}", "extra": {"text": long}}
    gateway.call("light_set", arguments, wait=0)
    page.click(f"{ROW} >> text=light_set(hall)")
    page.wait_for_selector("[data-answer=once]:not([disabled])")
    detail = page.locator(".detail")
    text = detail.inner_text()
    assert MARKUP in text
    assert "invoice\\u202Egnp.exe\\u200B\\u0007\\u2066" in text
    assert not set("\u202e\u200b\u0007\u2066") & set(page.content())
    assert detail.locator("img, script").count() == 0
    assert "not in the line above" in text
    assert "not declared by the tool" in text
    assert "rm -rf" not in text
    assert "characters, SHA-256" in text

    detail.get_by_role("button", name="Show all").first.click()
    assert "rm -rf ~" in detail.inner_text()
    page.goto(f"{gateway.announced['admin']}/#/calls")
    page.click(".calls .row:has-text('light_set'):has-text('hall')")
    page.wait_for_selector("text=On the record")
    assert page.locator(".detail img, .detail script").count() == 0


DISGUISED = {
    "anna@p\u0430ypal.com": "anna@p\\u0430ypal.com",
    "\u0440\u0430\u0443\u0440\u0430l.com": "\\u0440\\u0430\\u0443\\u0440\\u0430l.com",
    "r\U0001d696 -rf": "r\\u{1D696} -rf",
}
HONEST = "\u041c\u043e\u0441\u043a\u0432\u0430 IT-\u043e\u0442\u0434\u0435\u043b \u03b1-helix \u0394t caf\u00e9 \u6771\u4eacABC \u0441\u043e\u0441\u043d\u0430"


def test_a_letter_in_the_shape_of_another_is_written_out(tab, home):
    gateway, _api = home
    page = opened(tab, gateway)
    gateway.call("light_set", {"room": "hall", "note": " ".join([*DISGUISED, HONEST])}, wait=0)
    page.click(f"{ROW} >> text=light_set(hall)")
    page.wait_for_selector("[data-answer=once]:not([disabled])")
    text = page.inner_text(".detail")
    assert all(shown in text for shown in DISGUISED.values())
    assert HONEST in text


def test_a_text_that_could_be_read_as_something_else_is_in_quotes(tab, home):
    gateway, _api = home
    page = opened(tab, gateway)
    arguments = {
        "room": "hall",
        "note": "",
        "level": "5",
        "count": 5,
        "on": "true",
        "pad": " x",
        "why": "say",
    }
    gateway.call("light_set", arguments, wait=0)
    page.click(f"{ROW} >> text=light_set(hall)")
    page.wait_for_selector("[data-answer=once]:not([disabled])")
    shown = page.locator(".argument .value").all_inner_texts()
    assert shown == ["hall", '""', '"5"', "5", '"true"', '" x"', "say"]


@pytest.mark.parametrize("width", [320, 1600])
def test_long_words_are_broken_rather_than_cut_off(tab, home, width):
    word = "Donaudampfschifffahrtsgesellschaft" * 12
    gateway, _api = home
    page = opened(tab, gateway)
    page.set_viewport_size({"width": width, "height": 700})
    gateway.call("light_set", {"room": word, word: word}, wait=0)
    gateway.call(f"nosuch{word}", {})
    for name, found in (("approvals", "light_set"), ("calls", "nosuch")):
        page.goto(f"{gateway.announced['admin']}/#/{name}")
        page.click(f".{name} .row >> text={found}")
        page.wait_for_selector(".detail .signature")
        assert (
            page.evaluate(
                "(({ scrollWidth: all, clientWidth: seen }) => all - seen)(document.querySelector('.detail'))"
            )
            <= 0
        )


def test_words_from_right_to_left_leave_those_beside_them_alone(tab, home):
    gateway, _api = home
    page = opened(tab, gateway)
    gateway.call("light_set", {"room": "\u05e9\u05dc\u05d5\u05dd"}, wait=0)
    row = page.wait_for_selector(f"{ROW}:has(bdi)")
    agent, values = row.evaluate(
        """(node) => {
          const values = node.querySelector(".values");
          const agent = document.createRange();
          agent.selectNode(values.previousSibling);
          return [agent.getBoundingClientRect().right, values.getBoundingClientRect().left];
        }"""
    )
    assert agent <= values + 1


def test_the_digest_beside_a_folded_value_is_that_of_the_whole_value(tab, home):
    note = "x" * 50_000
    gateway, _api = home
    page = opened(tab, gateway)
    gateway.call("light_set", {"room": "hall", "note": note}, wait=0)
    page.click(f"{ROW} >> text=light_set(hall)")
    page.wait_for_selector(f"text={hashlib.sha256(note.encode()).hexdigest()}")
    assert "50,000 characters" in page.inner_text(".detail")


PRESS_AT_ONCE = """new Promise((done) => {
  const press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  new MutationObserver((_, watch) => {
    if (!document.querySelector(".detail h2").textContent.includes("second")) return;
    watch.disconnect();
    press("a");
    done();
  }).observe(document.querySelector(".detail"), { childList: true, subtree: true });
  ["j", "a", "d"].forEach(press);
})"""
"""In the page, where no driver's time passes between the question and the key."""


def test_a_key_pressed_while_another_question_comes_up_answers_neither(tab, home):
    gateway, api = home
    page = opened(tab, gateway)
    for room in ("first", "second"):
        gateway.call("light_set", {"room": room}, wait=0)
    page.wait_for_selector(f"{ROW} >> text=light_set(second)")
    page.wait_for_selector("h2:has-text('Set the light in first?')")
    page.wait_for_selector("[data-answer=once]:not([disabled])")
    page.evaluate(PRESS_AT_ONCE)
    page.wait_for_selector("[data-answer=once]:not([disabled])")
    assert len(gateway.admin.get("/api/approvals")) == 2
    assert api.requests == []


def test_a_question_that_went_away_meanwhile_is_not_opened_after_an_answer(tab, home):
    gateway, _api = home
    page = opened(tab, gateway)
    for room in ("first", "second"):
        gateway.call("light_set", {"room": room}, wait=0)
    page.click(f"{ROW} >> text=light_set(first)")
    page.wait_for_selector("[data-answer=once]:not([disabled])")
    held = []
    page.route(
        "**/api/approvals/*",
        lambda route: held.append(route) if route.request.method == "POST" else route.continue_(),
    )
    with page.expect_request("**/api/approvals/*"):
        page.click("[data-answer=once]")
    [second] = [a for a in gateway.admin.get("/api/approvals") if a["signature"] == "light_set(second)"]
    gateway.admin.request("POST", f"/api/approvals/{second['id']}", {"verdict": "deny"})
    page.wait_for_selector("#nav .badge:text-is('1')")
    held[0].continue_()
    page.wait_for_selector("text=No question waits for you")
    assert page.locator("[role=alert]").count() == 0


def test_several_questions_are_answered_by_keys_after_one_look(tab, home):
    gateway, api = home
    page = opened(tab, gateway)
    calls = [calling(gateway, "light_set", {"room": f"r{n}"}, wait=30) for n in range(3)]
    page.wait_for_selector("#nav .badge:text-is('3')")
    for _ in range(2):
        page.keyboard.press("j")
        page.keyboard.press("x")
    page.wait_for_selector("text=2 chosen")
    page.keyboard.press("a")
    page.wait_for_selector("dialog >> text=Approve once: 2 questions")
    page.keyboard.press("Enter")
    page.wait_for_selector("#nav .badge:text-is('1')")
    page.keyboard.press("j")
    page.wait_for_selector("[data-answer=deny]:not([disabled])")
    page.fill("[aria-label='Reason for a denial']", "not at night")
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    replies = [call.reply() for call in calls]
    assert sorted(reply.status for reply in replies) == [200, 200, 403]
    [denied] = [reply.json["error"]["message"] for reply in replies if reply.status == 403]
    assert "not at night" in denied
    assert len(api.requests) == 2


def test_arguments_that_a_signature_leaves_out_are_named_before_an_answer_to_several(tab, home):
    gateway, _api = home
    page = opened(tab, gateway)
    gateway.call("light_set", {"room": "hall"}, wait=0)
    gateway.call("light_set", {"room": "porch", "area_id": "everything", "b": 1, "c": 2, "d": 3}, wait=0)
    page.wait_for_selector(f"{ROW}:has-text('light_set(porch)') >> text=4 not shown")
    page.get_by_role("checkbox", name="Choose light_set(hall)").check()
    page.get_by_role("checkbox", name="Choose light_set(porch)").check()
    page.click(".bar button:has-text('Deny')")
    plain, more = page.locator("dialog li").all_inner_texts()
    assert plain.startswith("light_set(hall) (pi)")
    assert "which the signature does not show" not in plain
    assert "with area_id, b, c and 1 more, which the signature does not show" in more
    page.click("dialog button:has-text('Not now')")
    page.click(".bar button:has-text('Approve once')")
    expect(page.locator("dialog li")).to_have_count(1)
    page.click("dialog button:has-text('Not now')")
    assert len(gateway.admin.get("/api/approvals")) == 2


def test_the_passphrase_is_asked_for_with_every_answer(tab, tmp_path):
    with house(tmp_path, "approvers: {passphrase: open-sesame-all}") as (gateway, _api):
        page = opened(tab, gateway)
        call = calling(gateway, "light_set", {"room": "hall"}, wait=30)
        page.click(f"{ROW} >> text=light_set(hall)")
        page.click("[data-answer=once]")
        page.fill("dialog input", "wrong")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=This gateway wants the approver's passphrase")
        page.click("[data-answer=once]")
        page.fill("dialog input", "open-sesame-all")
        page.keyboard.press("Enter")
        assert call.reply().json["status"] == "executed"


def test_a_wrong_passphrase_for_a_rule_is_said_and_logs_nobody_out(tab, tmp_path):
    with house(tmp_path, "approvers: {passphrase: open-sesame-all}") as (gateway, _api):
        page = opened(tab, gateway)
        gateway.call("light_set", {"room": "hall"}, wait=0)
        page.click(f"{ROW} >> text=light_set(hall)")
        page.click("text=Do not ask again")
        page.click("button:has-text('Make a rule')")
        page.click("dialog button:has-text('Write it')")
        page.fill("dialog input[type=password]", "wrong")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=This gateway wants the approver's passphrase")
        rules = gateway.folder / "permissions.yaml"
        before = rules.read_text()
        page.click("dialog button:has-text('Write it')")
        page.fill("dialog input[type=password]", "open-sesame-all")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=counts from now on")
        assert "light_set(hall)" not in before
        assert "light_set(hall)" in rules.read_text()


def test_an_agent_is_made_tried_and_revoked_on_the_page(tab, home):
    gateway, _api = home
    page = opened(tab, gateway, "agents")
    page.click("button:has-text('New agent')")
    page.fill("[placeholder='such as kitchen-pi']", "cellar-pi")
    page.click("button:has-text('Make the agent')")
    token = page.inner_text(".secret code")
    assert gateway.call("light_get", {"room": "hall"}, token=token).status == 200
    page.goto(f"{gateway.announced['admin']}/#/tools/light_get")
    page.select_option("[aria-label=Agent]", "cellar-pi")
    page.fill("[aria-label='Arguments as JSON']", '{"room": "attic"}')
    page.click("button:has-text('Run')")
    page.wait_for_selector(".detail pre:has-text('/light/attic')")
    page.goto(f"{gateway.announced['admin']}/#/agents")
    page.click(".agents .row >> text=cellar-pi")
    page.click("button:has-text('Revoke its token')")
    page.click("dialog button:text-is('Revoke')")
    page.wait_for_selector(".agents .row >> text=cellar-pi", state="hidden")
    assert gateway.call("light_get", {"room": "hall"}, token=token).status == 401


def test_an_answer_is_found_again_with_who_gave_it_and_for_how_long(tab, home):
    gateway, _api = home
    page = opened(tab, gateway)
    asked = calling(gateway, "light_set", {"room": "study"})
    page.click(f"{ROW} >> text=light_set(study)")
    page.click("text=Do not ask again")
    page.click("[data-answer=hour]:not([disabled])")
    assert asked.reply().status == 200
    said = "approved for one hour by operator on page, "
    page.click("[data-tab=history]")
    page.click(f"{ROW} >> text=light_set(study)")
    assert said in page.inner_text(".detail dl.facts")
    page.click(".detail dl.facts a[href^='#/calls/']")
    page.wait_for_selector("text=On the record")
    assert said in page.inner_text(".detail dl.facts")
    refused = gateway.call("light_sat", {"room": "study"}).headers["agent-gate-call"]
    page.goto(f"{gateway.announced['admin']}/#/calls/{refused}")
    page.wait_for_selector("text=The call ended before there was anything to measure.")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_source_is_disconnected_and_connected_again_on_the_page(tab, tmp_path, size):
    with house(tmp_path) as (gateway, _api):
        page = opened(tab, gateway, "sources")
        page.set_viewport_size(size)
        page.click(".sources .row >> text=house")
        page.wait_for_selector("text=Its tools")
        page.click("button:has-text('Disconnect')")
        page.click("dialog button:text-is('Disconnect')")
        page.wait_for_selector(".detail >> text=disconnected by operator")
        reply = gateway.call("light_get", {"room": "hall"})
        assert reply.status == 503
        assert "disconnected by operator" in reply.json["error"]["message"]
        page.click(".detail button:text-is('Connect')")
        page.wait_for_selector(".detail button:has-text('Disconnect')")
        page.wait_for_selector(".detail h2 >> text=ready")
        assert gateway.call("light_get", {"room": "hall"}).status == 200


def test_a_disconnection_that_is_thought_better_of_changes_nothing(tab, home):
    gateway, _api = home
    page = opened(tab, gateway, "sources/house")
    page.click("button:has-text('Disconnect')")
    assert "What it is doing now is cut off." in page.inner_text("dialog[aria-label='Disconnect house?']")
    expect(page.locator("dialog button:text-is('Not now')")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog", state="detached")
    assert gateway.call("light_get", {"room": "hall"}).status == 200


def test_a_rule_that_never_decides_is_marked_and_a_decision_is_explained(tab, home):
    gateway, _api = home
    page = opened(tab, gateway, "policy")
    page.wait_for_selector(".policy .row:has-text('line 4') >> text=never decides")
    page.wait_for_selector(".policy .row:has-text('light_get(kitchen)') >> text=never decides")
    gateway.call("light_get", {"room": "hall"})
    page.fill("[aria-label='Changed rules']", 'rules: [{pattern: "light_get*", action: deny}]')
    page.click("button:has-text('Try on recorded calls')")
    page.wait_for_selector("tr:has-text('light_get(hall)') >> text=denied")
    page.fill("[aria-label=Tool]", "light_set")
    page.press("[aria-label=Tool]", "Tab")
    expect(page.locator("[aria-label='Arguments as JSON']")).to_have_value(re.compile("room"))
    page.fill("[aria-label='Arguments as JSON']", '{"room": "hall"}')
    page.click("button:has-text('Explain')")
    page.wait_for_selector("text=a person is asked")
    page.wait_for_selector("td strong >> text=decides")
    page.goto(f"{gateway.announced['admin']}/#/health")
    page.click("button:has-text('Verify the record')")
    page.wait_for_selector("text=Nothing was changed, removed or cut off.")
    with page.expect_download() as download:
        page.click("button:has-text('Export jsonl')")
    assert "light_get(hall)" in download.value.path().read_text()


def test_a_rule_made_from_a_question_is_shown_before_it_is_written_and_then_counts(tab, tmp_path):
    with house(tmp_path) as (gateway, _api):
        page = opened(tab, gateway)
        gateway.call("light_set", {"room": "hall"}, wait=0)
        page.click(f"{ROW} >> text=light_set(hall)")
        page.click("text=Do not ask again")
        page.click("button:has-text('Make a rule from this')")
        page.wait_for_selector("dialog .plus >> text=light_set(hall)")
        assert "light_set" not in (tmp_path / "permissions.yaml").read_text()
        page.click("dialog button:has-text('Write it')")
        page.wait_for_selector("text=counts from now on")
        assert "light_set(hall)" in (tmp_path / "permissions.yaml").read_text()
        assert gateway.call("light_set", {"room": "hall"}, wait=5).status == 200


def test_a_link_to_a_rule_opens_it_and_it_is_removed_after_its_difference_was_shown(tab, tmp_path):
    with house(tmp_path) as (gateway, _api):
        file = tmp_path / "permissions.yaml"
        page = opened(tab, gateway, "policy/permissions.yaml:3")
        page.wait_for_selector(".rule >> text=allow light_get*")
        page.click(".rule button:has-text('Remove')")
        page.wait_for_selector("dialog .minus >> text=light_get*")
        assert "light_get*" in file.read_text()
        page.click("dialog button:has-text('Write it')")
        page.wait_for_selector("text=counts from now on")
        page.wait_for_selector(".policy .row >> text=light_get*", state="detached")
        assert "light_get*" not in file.read_text()
        assert "light_get(kitchen)" in file.read_text()


def test_an_agent_that_speaks_mcp_is_answered_on_the_page(tab, home):
    gateway, api = home
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    begun = gateway.request("POST", "/mcp", rpc("initialize", hello), headers=accept)
    session = accept | {
        "Mcp-Session-Id": begun.headers["mcp-session-id"],
        "MCP-Protocol-Version": "2025-11-25",
    }
    page = opened(tab, gateway)
    asked = rpc("tools/call", {"name": "light_set", "arguments": {"room": "porch"}})
    call = Calling(lambda: gateway.request("POST", "/mcp", asked, headers=session))
    page.click(f"{ROW} >> text=light_set(porch)")
    page.wait_for_selector(".detail >> text=over mcp")
    page.click("[data-answer=once]")
    assert b"porch" in call.reply().body
    assert len(api.requests) == 1


def rpc(method, params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
