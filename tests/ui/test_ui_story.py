from tests.gateway import Gateway
from tests.ui.ui_house import calling, house, printed_link

ROW = ".approvals .row"


def test_a_person_lets_an_agent_act_for_an_hour_takes_it_back_and_a_restart_loses_nothing(tab, tmp_path):
    with house(tmp_path) as (gateway, api):
        page = tab.log_in(printed_link(gateway)).page
        page.goto(f"{gateway.announced['admin']}/#/approvals")
        page.wait_for_selector("text=No question waits for you")

        first = calling(gateway, "light_set", {"room": "hall"}, wait=30)
        page.wait_for_selector(f"{ROW} >> text=light_set(hall)")

        page.keyboard.press("j")
        page.wait_for_selector("text=Set the light in hall?")
        page.click("text=Do not ask again")
        assert "pi may repeat exactly this call unasked for one hour." in page.inner_text(".choices")
        page.click("[data-answer=hour]")
        assert first.reply().json["status"] == "executed"
        page.wait_for_selector("text=No question waits for you")

        second = gateway.call("light_set", {"room": "hall"}, wait=5)
        assert second.json["status"] == "executed"
        assert len(api.requests) == 2

        page.click("button:has-text('Grants')")
        page.click(f"{ROW} >> text=light_set(hall)")
        page.click("button:has-text('Revoke')")
        page.wait_for_selector("text=Nothing is remembered")

        third = gateway.call("light_set", {"room": "hall"}, wait=0)
        assert third.status == 202
        page.click("button:has-text('Inbox')")
        page.click(f"{ROW} >> text=light_set(hall)")
        page.wait_for_selector("[data-answer=once]:not([disabled])")

        gateway.kill()
        page.wait_for_selector("text=Reconnecting to the gateway")
        port = gateway.announced["admin"].rpartition(":")[2]
        config = tmp_path / "config.yaml"
        config.write_text(config.read_text().replace("admin: {port: 0", f"admin: {{port: {port}"))
        again = Gateway(tmp_path, "--insecure").start()
        try:
            page.wait_for_selector("text=Reconnecting to the gateway", state="hidden")
            page.click("[data-answer=once]")
            page.wait_for_selector("text=No question waits for you")
            ended = again.request("GET", f"/api/calls/{third.json['call']}?wait=10")
            assert ended.json["status"] == "executed"
            assert len(api.requests) == 3
            answers = [a for a in again.admin.get("/api/approvals?state=all") if a["answered_on"] == "page"]
            assert {a["answered_by"] for a in answers} == {"operator"}
        finally:
            again.stop()


DRAWN = """async () => {
  let drawn = 0, most = 0;
  new MutationObserver((changes) => { for (const one of changes) drawn += one.addedNodes.length || 1; })
    .observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
  for (let at = 0; at < 40; at += 1) {
    drawn = 0;
    for (const key of ["j", "x", "x"]) document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    most = Math.max(most, drawn);
  }
  return most;
}"""
"""The most that three keys change of the page."""


def test_a_thousand_open_questions_do_not_slow_the_page(tab, tmp_path):
    with house(tmp_path) as (gateway, _api):
        for number in range(1000):
            assert gateway.call("light_set", {"room": f"room{number}"}, wait=0).status == 202
        page = tab.log_in(printed_link(gateway)).page
        page.goto(f"{gateway.announced['admin']}/#/approvals")
        page.wait_for_selector(f"{ROW} >> text=light_set(room0)")
        assert page.inner_text("#nav .badge") == "1000"
        assert page.locator(ROW).count() < 60

        drawn = page.evaluate(DRAWN)
        assert 0 < drawn < 500
        page.keyboard.press("End")
        late = calling(gateway, "light_set", {"room": "cellar"}, wait=30)
        page.wait_for_selector("#nav .badge:text-is('1001')")
        page.fill("input[type=search]", "cellar")
        page.click(f"{ROW} >> text=light_set(cellar)")
        page.click("[data-answer=once]")
        assert late.reply().json["status"] == "executed"
