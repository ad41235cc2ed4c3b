"""The Telegram channel against a local Bot API over real HTTP, with the gateway in its own process."""

import json
import threading
import time
import urllib.request

import pytest
from tests.approval.bot_api import CHAT, CHAT_NAME, TOKEN, BotApi
from tests.approval.conftest import ANN, BOB, STRANGER, close_all, files, light, outcome, reached, telegram
from tests.gateway import running
from tests.waiting import wait_until

from agent_gate.cli.commands.status import summary
from agent_gate.errors import GatewayError

UPDATED = 'agent_gate_deliveries_total{channel="telegram",result="updated"}'
SENT = 'agent_gate_deliveries_total{channel="telegram",result="sent"}'


@pytest.fixture(scope="module")
def shared(tmp_path_factory, api):
    """One gateway and one chat for all tests that need no start of their own."""
    bot = BotApi()
    with running(tmp_path_factory.mktemp("gate"), files(api, telegram(bot)), "--insecure") as gate:
        yield gate, bot
    bot.stop()


@pytest.fixture
def talk(shared, api):
    gate, bot = shared
    api.reset()
    yield gate, bot
    close_all(gate)
    assert bot.faults == []
    bot.reset()


def counted(gate, series):
    found = [line for line in gate.admin.get("/metrics").splitlines() if line.startswith(series)]
    return sum(float(line.rpartition(" ")[2]) for line in found)


def delivered(gate, count):
    """Wait until that many messages are not only sent but written down as sent."""
    wait_until(lambda: counted(gate, SENT) >= count)


def test_a_press_runs_the_call_once_and_the_message_says_who_answered(talk, api):
    gate, bot = talk
    call = light(gate).json["call"]
    number = bot.question("light.turn_on")
    assert "Approved once by ann" in bot.press(number, "Once", ANN)
    assert outcome(gate, call).json["status"] == "executed"
    closed = bot.wait(lambda: bot.messages[number] if not bot.messages[number]["keyboard"] else None)
    assert "Approved once by ann on telegram at " in closed["text"]
    assert len(reached(api)) == 1
    rows = gate.admin.get(f"/api/calls/{call}")
    assert [(r["body"]["by"], r["body"]["channel"]) for r in rows if r["state"] == "approved"] == [
        ("ann", "telegram")
    ]


def test_the_whole_story_over_telegram(start, bot, api):
    """Asked, approved for one hour, not asked again, revoked, asked again, killed, and the same button works."""
    gate = start(telegram(bot))
    first = light(gate).json["call"]
    bot.press(bot.question(), "One hour", ANN)
    assert outcome(gate, first).json["status"] == "executed"
    assert light(gate, wait=5).status == 200
    [grant] = gate.admin.get("/api/grants")
    assert grant["created_by"] == "ann"
    gate.admin.request("DELETE", f"/api/grants/{grant['id']}")
    third = light(gate)
    assert third.status == 202
    number = bot.question()
    delivered(gate, 2)
    gate.kill()
    gate.start()
    assert "Approved" in bot.press(number, "Once", BOB)
    assert outcome(gate, third.json["call"]).json["status"] == "executed"
    assert len(reached(api)) == 3
    assert len(bot.messages) == 2
    bot.wait(lambda: "by bob" in bot.messages[number]["text"])


def test_strangers_forgers_and_repeaters_change_nothing(talk, api):
    gate, bot = talk
    call = light(gate).json["call"]
    number = bot.question()
    data = {b["text"]: b["callback_data"] for row in bot.messages[number]["keyboard"] for b in row}
    assert "Only the people" in bot.press(number, "Once", STRANGER)
    forged = data["Deny"][:24] + data["Once"][24:]
    flipped = ("B" if data["Once"][0] != "B" else "C") + data["Once"][1:]
    for bad in (forged, flipped, "", "x" * 64, data["Once"][:-1], "é" * 22):
        assert bot.press(number, None, ANN, data=bad) == "This button is not valid."
    assert bot.press(number, "Once", ANN, chat=4711) == "This button is not valid."
    assert reached(api) == []
    assert gate.story(call) == ["pending"]
    assert "Denied" in bot.press(number, "Deny", ANN)
    assert "Too late" in bot.press(number, None, ANN, data=data["Once"])
    assert "Too late" in bot.press(number, None, BOB, data=data["Always for this"])
    assert reached(api) == []
    assert gate.admin.get("/api/grants") == []
    assert counted(gate, 'agent_gate_answers_refused_total{channel="telegram",why="stranger"}') >= 1
    assert counted(gate, 'agent_gate_answers_refused_total{channel="telegram",why="forged"}') >= 7


def test_a_button_of_one_question_does_not_answer_another(talk, api):
    gate, bot = talk
    light(gate, "light.one")
    first = bot.question("light.one")
    light(gate, "light.two")
    second = bot.question("light.two")
    one = bot.messages[first]["keyboard"][0][0]["callback_data"]
    bot.press(second, None, ANN, data=one)
    wait_until(lambda: reached(api))
    assert [body["entity_id"] for _, _, body in reached(api)] == ["light.one"]
    assert [a["arguments"]["entity_id"] for a in gate.admin.get("/api/approvals")] == ["light.two"]


def test_two_people_racing_resolve_once(talk, api):
    gate, bot = talk
    call = light(gate).json["call"]
    number = bot.question()
    data = {b["text"]: b["callback_data"] for row in bot.messages[number]["keyboard"] for b in row}
    said = []
    threads = [
        threading.Thread(target=lambda u=user, d=data[button]: said.append(bot.press(number, None, u, d)))
        for user, button in [(ANN, "Once"), (BOB, "Deny"), (ANN, "Deny"), (BOB, "Once")]
    ]
    [approval] = gate.admin.get("/api/approvals")
    threads.append(threading.Thread(target=lambda: said.append(try_answer(gate, approval["id"]))))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum("Too late" in text for text in said) == 4
    outcome(gate, call)
    assert len(gate.story(call)) in (2, 4)
    assert len(reached(api)) == (1 if "approved" in gate.story(call) else 0)


def try_answer(gate, ident):
    try:
        return gate.admin.request("POST", f"/api/approvals/{ident}", {"verdict": "approve"})["state"]
    except GatewayError as error:
        return str(error)


def test_an_expired_question_says_so_and_its_button_is_too_late(start, bot, api):
    gate = start(telegram(bot) + "\n", permissions='rules: [{pattern: "ha_*", action: ask, lifetime: 1}]\n')
    call = light(gate).json["call"]
    number = bot.question()
    data = bot.messages[number]["keyboard"][0][0]["callback_data"]
    bot.wait(lambda: "Expired: nobody answered in time" in bot.messages[number]["text"])
    assert bot.messages[number]["keyboard"] == []
    assert "Too late" in bot.press(number, None, ANN, data=data)
    assert gate.story(call) == ["pending", "expired"]
    assert reached(api) == []


def test_an_answer_elsewhere_is_shown(talk):
    gate, bot = talk
    light(gate)
    number = bot.question()
    gate.answer("deny", reason="not at night")
    bot.wait(lambda: "Denied by operator on terminal" in bot.messages[number]["text"])
    assert bot.messages[number]["text"].rstrip().splitlines()[-2].endswith(": not at night")


def test_a_reply_becomes_the_reason_of_the_press(talk):
    gate, bot = talk
    before = counted(gate, SENT)
    call = light(gate).json["call"]
    number = bot.question()
    delivered(gate, before + 1)
    said = bot.say("the baby sleeps", ANN, reply_to=number)
    bot.wait(
        lambda: [m for m in bot.messages.values() if m["reply_to"] == said and m["text"].startswith("Noted")]
    )
    bot.say("let me in", STRANGER, reply_to=number)
    bot.press(number, "Deny", ANN)
    answer = outcome(gate, call)
    assert answer.status == 403
    assert answer.json["error"]["message"] == "Denied by user\nReason: the baby sleeps"


def test_pending_lists_what_is_open(talk):
    gate, bot = talk
    light(gate)
    number = bot.question()
    asked = bot.say("/pending@gate_bot", BOB)
    shown = bot.wait(lambda: next((m["text"] for m in bot.messages.values() if m["reply_to"] == asked), None))
    assert "pi: ha_call_service(light.turn_on, light.bedroom)" in shown
    quiet = bot.say("/pending", STRANGER)
    bot.press(number, "Deny", ANN)
    assert not [m for m in bot.messages.values() if m["reply_to"] == quiet]
    asked = bot.say("/pending", ANN)
    shown = bot.wait(lambda: next((m["text"] for m in bot.messages.values() if m["reply_to"] == asked), None))
    assert shown == "Nothing waits for you."


def test_a_chat_whose_number_comes_from_a_variable_is_the_only_one_that_counts(start, bot, api):
    gate = start(telegram(bot).replace(f"chat_id: {CHAT}", 'chat_id: "${CHAT}"'), env={"CHAT": str(CHAT)})
    light(gate)
    number = bot.question()
    assert bot.press(number, "Once", ANN, chat=CHAT - 1) == "This button is not valid."
    assert reached(api) == []
    assert "Approved once by ann" in bot.press(number, "Once", ANN)


def test_a_chat_that_is_given_by_name_is_the_only_one_that_counts(start, bot, api):
    gate = start(telegram(bot).replace(f"chat_id: {CHAT}", f'chat_id: "{CHAT_NAME}"'))
    light(gate)
    number = bot.question()
    for elsewhere in (None, "approvals_her", "elsewhere"):
        assert bot.press(number, "Once", ANN, chat=CHAT, chat_name=elsewhere) == "This button is not valid."
    assert reached(api) == []
    assert "Approved once by ann" in bot.press(number, "Once", ANN, chat_name="Approvals_Here")


@pytest.mark.parametrize(("allowed", "name"), [("[33]", "operator"), ("[33, 44]", "telegram:33")])
def test_somebody_without_a_name_is_the_operator_only_where_nobody_else_may_press(start, bot, allowed, name):
    gate = start(telegram(bot).replace("allowed_users: [11, 22]", f"allowed_users: {allowed}"))
    light(gate)
    assert f"Approved once by {name}" in bot.press(bot.question(), "Once", 33)


def test_only_the_rules_approvers_may_press(start, bot, api):
    gate = start(telegram(bot), permissions='rules: [{pattern: "ha_*", action: ask, approvers: [bob]}]\n')
    light(gate)
    number = bot.question("Only bob may answer")
    assert bot.press(number, "Once", ANN).startswith("Only bob may answer this")
    assert reached(api) == []
    assert "Approved once by bob" in bot.press(number, "Once", BOB)


def test_a_press_of_somebody_who_may_only_look_answers_nothing(start, bot, api):
    gate = start(telegram(bot))
    config = gate.folder / "config.yaml"
    config.write_text(config.read_text().replace("ann: {telegram: 11}", "ann: {telegram: 11, role: viewer}"))
    gate.admin.request("POST", "/api/reload", {})
    light(gate)
    number = bot.question("light.turn_on")
    for button in ("Once", "Always for this", "Deny"):
        assert "ann may not answer questions" in bot.press(number, button, ANN)
    assert reached(api) == []
    assert len(gate.admin.get("/api/approvals")) == 1
    assert "Approved once by bob" in bot.press(number, "Once", BOB)


def test_of_two_people_who_have_to_say_yes_the_chat_shows_the_first(start, bot, api):
    rules = 'rules: [{pattern: "*", action: ask, approvers: {count: 2}}]'
    gate = start(telegram(bot), permissions=rules)
    call = light(gate).json["call"]
    number = bot.question("light.turn_on")
    assert "so far: ann" in bot.press(number, "Once", ANN)
    shown = bot.wait(lambda: bot.messages[number] if "so far: ann" in bot.messages[number]["text"] else None)
    assert shown["keyboard"]
    assert "Approved once by bob" in bot.press(number, "Once", BOB)
    assert outcome(gate, call).json["status"] == "executed"


def test_a_chat_that_was_down_gets_each_question_once_when_it_heals(start, api):
    bot = BotApi()
    gate = start(telegram(bot))
    bot.stop()
    light(gate, "light.one")
    light(gate, "light.two")
    gone = light(gate, "light.gone").json["call"]
    [approval] = [a for a in gate.admin.get("/api/approvals") if a["call"] == gone]
    gate.admin.request("POST", f"/api/approvals/{approval['id']}", {"verdict": "deny"})
    wait_until(
        lambda: (
            'agent_gate_deliveries_total{channel="telegram",result="failed"}' in gate.admin.get("/metrics")
        )
    )
    [need] = gate.admin.get("/api/now")["needs"]
    assert need["problem"] == "Questions do not get through to telegram"
    status = gate.admin.get("/api/status")
    assert "Questions do not get through to telegram: " in summary(status)
    assert TOKEN not in str(status)
    healed = BotApi(bot.port)
    healed.question("light.one")
    healed.question("light.two")
    healed.press(healed.question("light.one"), "Once", ANN)
    wait_until(lambda: reached(api))
    wait_until(lambda: gate.admin.get("/api/now")["needs"] == [])
    assert len(healed.messages) == 2
    healed.stop()
    assert healed.faults == []


def test_a_restart_sends_what_was_not_sent_and_nothing_twice(start, api):
    bot = BotApi()
    gate = start(telegram(bot))
    light(gate, "light.one")
    first = bot.question("light.one")
    delivered(gate, 1)
    bot.stop()
    light(gate, "light.two")
    gate.kill()
    healed = BotApi(bot.port)
    healed.messages, healed.next_message = dict(bot.messages), bot.next_message
    gate.start()
    healed.question("light.two")
    gate.admin.request(
        "POST",
        "/api/approvals",
        {"ids": [a["id"] for a in gate.admin.get("/api/approvals")], "verdict": "deny"},
    )
    healed.wait(lambda: not any(m["keyboard"] for m in healed.messages.values()))
    assert len(healed.messages) == 2
    assert "Denied by operator" in healed.messages[first]["text"]
    healed.stop()
    assert healed.faults == []


def test_a_limit_is_waited_out(talk, api):
    gate, bot = talk
    bot.limits = [1, 1]
    began = time.monotonic()
    light(gate)
    number = bot.question()
    assert time.monotonic() - began >= 2
    bot.limits = [1]
    call = gate.admin.get("/api/approvals")[0]["call"]
    gate.answer()
    outcome(gate, call)
    bot.wait(lambda: "Approved once by operator" in bot.messages[number]["text"])


def test_a_second_poller_only_delays_answers(talk, api):
    gate, bot = talk
    call = light(gate).json["call"]
    number = bot.question()
    bot.wait(lambda: bot.poller is not None)
    request = urllib.request.Request(
        f"{bot.url}/bot{TOKEN}/getUpdates", b'{"timeout": 0}', {"Content-Type": "application/json"}
    )

    def poll_too():
        urllib.request.urlopen(request).close()
        return bot.conflicts

    wait_until(poll_too, "a conflict of the two")
    assert "Approved once" in bot.press(number, "Once", ANN)
    outcome(gate, call)
    assert len(reached(api)) == 1


def test_an_update_given_twice_counts_once(talk, api):
    """Updates that were not confirmed come again; so do those after a crash."""
    gate, bot = talk
    call = light(gate).json["call"]
    number = bot.question()
    data = bot.messages[number]["keyboard"][0][0]["callback_data"]
    query = {"from": bot.user(ANN), "message": bot.message(number), "chat_instance": "1", "data": data}
    with bot.lock:
        bot.next_update += 1
        for ident in ("a", "b"):
            bot.updates.append({"update_id": bot.next_update, "callback_query": query | {"id": ident}})
        bot.lock.notify_all()
    bot.wait(lambda: len(bot.answered) == 2)
    outcome(gate, call)
    assert gate.story(call).count("approved") == 1
    assert len(reached(api)) == 1


def test_an_edit_whose_reply_was_lost_is_done_all_the_same(start, bot, api):
    """The second try is told that nothing was modified, and that is the end of it."""
    gate = start(telegram(bot))
    number = begun(gate, bot)
    updated = counted(gate, UPDATED)
    bot.lose = ["editMessageText"]
    gate.answer("deny")
    wait_until(lambda: counted(gate, UPDATED) == updated + 1)
    edits = [params for method, params in bot.calls if params.get("message_id") == number]
    assert len(edits) == 2
    assert edits[0] == edits[1]
    assert "Denied by operator" in bot.messages[number]["text"]


def test_a_question_whose_reply_was_lost_is_asked_twice_and_answered_once(talk, api):
    gate, bot = talk
    bot.lose = ["sendMessage"]
    call = light(gate).json["call"]
    bot.wait(lambda: len(bot.messages) == 2)
    first, second = sorted(bot.messages)
    data = bot.messages[second]["keyboard"][0][0]["callback_data"]
    assert "Approved once" in bot.press(first, "Once", ANN)
    assert "Too late" in bot.press(second, None, ANN, data=data)
    outcome(gate, call)
    assert len(reached(api)) == 1


def test_numbers_that_start_again_lower_are_heard(talk, api):
    """After a quiet week the platform numbers updates from anywhere."""
    gate, bot = talk
    bot.press(begun(gate, bot), "Deny", ANN)
    empty = len(bot.empty)
    bot.wait(lambda: len(bot.empty) > empty + 1)
    bot.next_update = 1000
    assert "Denied" in bot.press(begun(gate, bot), "Deny", ANN)


def begun(gate, bot):
    light(gate)
    return bot.question()


def test_an_update_of_an_unknown_kind_is_passed_over(talk, api):
    gate, bot = talk
    light(gate)
    number = bot.question()
    bot.update(callback_query={"id": 5, "from": "nobody"})
    bot.update(message={"message_id": "x"})
    bot.update(chat_member={"whatever": 1})
    assert "Approved once" in bot.press(number, "Once", ANN)


@pytest.mark.parametrize("half", ["\ud83d", "\ude00\ud83d"])
def test_an_update_with_half_a_character_holds_up_nobody(talk, api, half):
    gate, bot = talk
    light(gate)
    number = bot.question()
    bot.say(f"a{half}b", STRANGER)
    bot.update(edited_message={"text": half})
    assert "Approved once" in bot.press(number, "Once", ANN)


def test_markup_that_is_refused_is_sent_as_plain_text(talk):
    gate, bot = talk
    bot.refuse_markup = True
    light(gate)
    number = bot.question("light.turn_on")
    assert "<b>" not in bot.messages[number]["text"]
    bot.press(number, "Once", ANN)
    bot.wait(lambda: "Approved once by ann" in bot.messages[number]["text"])


def test_hostile_arguments_are_shown_as_they_are(talk):
    gate, bot = talk
    text = '</pre><b>approved</b> &amp; \u202egnp.exe \x1b[2J \u3164 line\nnext {to} *x* <a href="x">'
    gate.call(
        "mail_send", {"to": "ann@example", "text": text, "code": "secret-code-77", "note": "\u2066x"}, wait=0
    )
    shown = bot.messages[bot.question("mail_send")]["text"]
    for seen in (
        "</pre><b>approved</b> &amp; \\u202egnp.exe \\u001b[2J \\u3164 line\\nnext",
        'code = "•••"',
        'note = "\\u2066x"',
    ):
        assert seen in shown
    assert "secret-code-77" not in shown
    assert not set(shown) & {"\u202e", "\x1b", "\u3164", "\u2066"}


def test_long_arguments_are_folded_and_offered_in_full(talk):
    gate, bot = talk
    text = "payload " * 6000 + "THE END\u202e\n\U000e0101"
    gate.call("mail_send", {"to": "ann@example", "text": text, "code": "secret-code-77"}, wait=0)
    number = bot.question("mail_send")
    shown = bot.messages[number]["text"]
    assert "(48029 characters, sha256 " in shown
    assert f"{text[:199]}…" in shown
    assert bot.press(number, "Show all arguments", ANN) == "Here they are."
    name, content, caption = bot.wait(lambda: bot.documents)[0]
    assert json.loads(content) == {"to": "ann@example", "text": text, "code": "•••"}
    assert not set(content.decode()) & {"\u202e", "\U000e0101"}
    assert name.startswith("arguments-")
    [approval] = gate.admin.get("/api/approvals")
    assert approval["arguments_hash"] in caption
    assert gate.story(approval["call"]) == ["pending"]


def test_many_arguments_never_exceed_the_message(talk):
    gate, bot = talk
    more = {f"key_{i}": "v" * 300 for i in range(80)}
    gate.call("ha_call_service", {"domain": "light", "service": "turn_on"} | more, wait=0)
    number = bot.question("ha_call_service")
    assert "more arguments, all together sha256 " in bot.messages[number]["text"]
    bot.press(number, "Show all arguments", ANN)
    assert json.loads(bot.wait(lambda: bot.documents)[0][1])["key_79"] == "v" * 300


def test_a_channel_with_after_is_told_only_when_nobody_answers(start, bot):
    gate = start(telegram(bot, ", after: 1"))
    light(gate, "light.early")
    gate.answer()
    began = time.monotonic()
    light(gate, "light.late")
    bot.question("light.late")
    assert time.monotonic() - began >= 0.9
    assert len(bot.messages) == 1


def test_quiet_hours_keep_the_chat_silent(start, bot):
    hour = time.localtime().tm_hour
    quiet = f', quiet: {{start: "{hour:02}:00", end: "{(hour + 2) % 24:02}:00"}}'
    gate = start(telegram(bot, quiet))
    light(gate)
    bot.say("/pending", ANN)
    bot.wait(lambda: bot.messages)
    assert not any(m["keyboard"] for m in bot.messages.values())
    assert len(gate.admin.get("/api/approvals")) == 1


def test_a_flood_of_asks_is_ten_messages(start, bot):
    gate = start(telegram(bot).replace("channels:", "rate_limit: {max_pending_approvals: 10}\nchannels:"))
    gate.stop()
    config = gate.folder / "config.yaml"
    config.write_text(config.read_text().replace("max_pending_approvals: 50", "max_pending_approvals: 10"))
    gate.start()
    answers = [light(gate, f"light.n{i}").status for i in range(30)]
    assert answers.count(202) == 10
    assert answers.count(429) == 20
    bot.wait(lambda: len(bot.messages) == 10)
    light(gate, "light.n0")
    assert len(gate.admin.get("/api/approvals")) == 10


def test_the_bot_token_is_in_no_log_and_no_answer(start, bot):
    gate = start(telegram(bot))
    bot.stop()
    light(gate)
    wait_until(lambda: "A channel did not take a message" in gate.stderr)
    assert TOKEN not in gate.stderr
    assert TOKEN not in json.dumps(gate.admin.get("/api/status"))
    bot.start()
    bot.question()
