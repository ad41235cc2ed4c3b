"""A person says yes where they are: in Telegram by pressing the number, in the terminal by typing it."""

import subprocess

import pytest
from tests import nursery
from tests.approval.bot_api import CHAT, TOKEN, BotApi
from tests.gateway import COMMAND, running
from tests.sign_in.conftest import files
from tests.sign_in.small_client import SmallBrowser, SmallClient, begin, follow, question, say_yes, sign_in
from tests.waiting import PATIENCE

from agent_gate.approval.numbers import OFFERED
from agent_gate.policy.conditions.callers import ByCallers

CHANNEL = (
    "people: {{ann: {{telegram: 11}}}}\n"
    'channels: [{{type: telegram, token: "{token}", chat_id: {chat}, allowed_users: [11], base_url: "{url}"}}]'
)
ANN = 11


@pytest.fixture(scope="module")
def chat(tmp_path_factory, api):
    """A gateway that asks in Telegram."""
    bot = BotApi()
    more = CHANNEL.format(token=TOKEN, chat=CHAT, url=bot.url)
    with running(tmp_path_factory.mktemp("chat"), files(api, more=more), "--insecure") as gateway:
        yield gateway, bot
    bot.stop()


def asked_in(chat):
    gateway, bot = chat
    client = SmallClient(gateway)
    assert client.register().status == 201
    browser, place = begin(client)
    return client, browser, place, bot.question("agents__sign_in")


def labels(bot, message):
    return [button["text"] for row in bot.messages[message]["keyboard"] for button in row]


def test_a_press_on_the_right_number_lets_the_client_in(chat):
    _, bot = chat
    client, browser, place, message = asked_in(chat)
    number = browser.get(place).number
    offered = labels(bot, message)
    assert len(offered) == OFFERED + 1
    assert {number, "Deny"} <= set(offered)
    assert "Approved" in bot.press(message, number, ANN)
    assert client.redeem(follow(browser, place).answer()["code"]).status == 200
    [agent] = [one for one in chat[0].admin.get("/api/agents") if one["signed_in"]]
    assert agent["name"] == "tester/ann"
    bot.reset()


def test_a_press_on_another_number_lets_nobody_in(chat):
    _, bot = chat
    _, browser, place, message = asked_in(chat)
    number = browser.get(place).number
    wrong = next(label for label in labels(bot, message) if label not in (number, "Deny"))
    assert "Denied" in bot.press(message, wrong, ANN)
    assert follow(browser, place).answer()["error"] == "access_denied"
    bot.reset()


def typed(gate, *words):
    command = [COMMAND, *words, "--admin-socket", gate.announced["socket"]]
    return nursery.run(command, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)


def test_the_terminal_takes_the_number_and_makes_it_narrower(gate):
    client = SmallClient(gate)
    client.register()
    browser, place = begin(client)
    asked = question(gate)
    unsaid = typed(gate, "approvals", "approve", asked["id"])
    assert unsaid.returncode != 0
    assert "Say the number" in unsaid.stderr
    number = browser.get(place).number
    said = (
        "--number",
        number,
        "--agent",
        "desk/ada",
        "--namespace",
        "notes",
        "--mode",
        "proxy",
        "--days",
        "7",
    )
    done = typed(gate, "approvals", "approve", asked["id"], *said)
    assert done.returncode == 0, done.stderr
    assert client.redeem(follow(browser, place).answer()["code"]).json["scope"] == "mcp mcp:notes"
    listed = typed(gate, "agents", "list").stdout
    assert "desk/ada" in listed
    assert "signed in by localhost" in listed
    assert typed(gate, "agents", "revoke", "desk/ada").returncode == 0
    assert client.list_tools().status == 401


def test_an_invitation_is_a_link_to_open(gate):
    link = typed(gate, "agents", "invite").stdout.strip()
    assert link.startswith(f"{gate.url}/invite/")
    shown = SmallBrowser(gate.url).get(link)
    assert "You are invited" in shown.text
    assert "HttpOnly" in shown.headers["set-cookie"]


def test_a_rule_that_denies_sign_ins_ends_them_before_anybody_is_asked(tmp_path, api):
    rules = (
        'rules: [{pattern: "agents__sign_in(evil.example)", action: deny}, {pattern: "*", action: allow}]\n'
    )
    with running(tmp_path, files(api, permissions=rules), "--insecure") as gate:
        client = SmallClient(gate, callback="https://evil.example/cb")
        client.register()
        browser = SmallBrowser(gate.url)
        assert browser.press_continue(browser.get(client.authorize_url())).status == 403
        assert gate.admin.get("/api/approvals") == []
        honest = sign_in(gate)
        assert honest.list_tools().status == 200


@pytest.mark.parametrize(
    ("pattern", "caller", "means"),
    [
        ("claude*", "claude/ada", False),
        ("c*", "claude/ada", False),
        ("*", "claude/ada", True),
        ("claude/*", "claude/ada", True),
        ("*/ada", "claude/ada", True),
        ("claude*", "claude-code", True),
    ],
)
def test_a_pattern_without_a_slash_does_not_mean_an_agent_that_signed_in(pattern, caller, means):
    assert (ByCallers((pattern,)).strangers((caller,)) == ()) is means


def test_a_yes_reaches_the_record_with_its_person(gate):
    client = SmallClient(gate)
    client.register()
    browser, place = begin(client)
    call = question(gate)["call"]
    say_yes(gate, browser.get(place).number)
    follow(browser, place)
    rows = gate.admin.get(f"/api/calls/{call}")
    assert [row["body"]["by"] for row in rows if row["state"] == "approved"] == ["operator"]
