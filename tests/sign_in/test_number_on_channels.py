"""The number on every channel on which a person says yes: the right one lets in, another is a no, none is no answer.

One gateway asks on all of them at once; the same is tried on each.
"""

import json
import subprocess
from dataclasses import dataclass
from itertools import count

import pytest
from tests import nursery
from tests.approval.bot_api import CHAT, TOKEN, BotApi
from tests.approval.test_slack import SECRET, press
from tests.approval.test_webhook import visit
from tests.gateway import COMMAND, Api, running
from tests.sign_in.conftest import files
from tests.sign_in.small_client import SmallBrowser, SmallClient, begin, follow
from tests.waiting import PATIENCE, wait_until

from agent_gate.approval.numbers import OFFERED
from agent_gate.errors import GatewayError

ANN = 11
CHANNELS = """
people: {{ann: {{telegram: 11}}}}
channels:
  - {{type: telegram, token: "{token}", chat_id: {chat}, allowed_users: [11], base_url: "{bot}"}}
  - {{type: webhook, name: team, url: "{hook}/slack", format: slack, person: ann, signing_secret: {secret}}}
  - {{type: webhook, name: house, url: "{hook}/json", person: ann}}
"""
NAMES = count(1)


@dataclass
class Everywhere:
    """A gateway that asks on every channel."""

    gate: object
    bot: BotApi
    hook: Api

    def posted(self, path, about):
        def look():
            bodies = [one["body"].decode() for one in list(self.hook.requests) if one["path"] == path]
            return next((json.loads(body) for body in bodies if about in body), None)

        return wait_until(look)


@dataclass
class Waiting:
    """A browser that waits for its yes. It asks for a source of its own, so that each message about it is found."""

    client: SmallClient
    name: str
    browser: SmallBrowser
    place: str
    number: str
    id: str

    def answer(self):
        return follow(self.browser, self.place).answer()


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory, api):
    bot = BotApi()
    with Api() as hook:
        more = CHANNELS.format(token=TOKEN, chat=CHAT, bot=bot.url, hook=hook.url, secret=SECRET)
        with running(tmp_path_factory.mktemp("gate"), files(api, more=more), "--insecure") as gate:
            yield Everywhere(gate, bot, hook)
    bot.stop()


@pytest.fixture
def ask(everywhere):
    """Somebody's browser asks; what is still open afterwards is denied."""

    def begun():
        gate, name = everywhere.gate, f"source-{next(NAMES)}-end"
        client = SmallClient(gate)
        assert client.register().status == 201
        browser, place = begin(client, scope=f"mcp:{name}")
        [found] = [one for one in gate.admin.get("/api/approvals") if one["call"] in place]
        return Waiting(client, name, browser, place, browser.get(place).number, found["id"])

    yield begun
    for left in everywhere.gate.admin.get("/api/approvals"):
        everywhere.gate.admin.request("POST", f"/api/approvals/{left['id']}", {"verdict": "deny"})


def over_the_api(everywhere, waiting, number):
    answer = {"verdict": "approve"} | ({"number": number} if number else {})
    try:
        everywhere.gate.admin.request("POST", f"/api/approvals/{waiting.id}", answer)
    except GatewayError as refused:
        return refused.message
    return ""


def in_the_terminal(everywhere, waiting, number):
    words = ["approvals", "approve", waiting.id, *(["--number", number] if number else [])]
    command = [COMMAND, *words, "--admin-socket", everywhere.gate.announced["socket"]]
    return nursery.run(
        command, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
    ).stderr


def behind_a_link(everywhere, waiting, number):
    link = everywhere.posted("/json", waiting.name)["answer"]["once"]
    assert 'name="number"' in visit(link)[1]
    return visit(link, "POST", {"choice": "once"} | ({"number": number} if number else {}))[1]


def in_telegram(everywhere, waiting, number):
    message = everywhere.bot.question(waiting.name)
    labels = [button["text"] for row in everywhere.bot.messages[message]["keyboard"] for button in row]
    return everywhere.bot.press(message, pressed(labels, waiting, number), ANN)


def in_slack(everywhere, waiting, number):
    message = everywhere.posted("/slack", waiting.name)
    values = {one["text"]["text"]: one["value"] for one in message["blocks"][1]["elements"]}
    told = {"url": f"{everywhere.hook.url}/told"}
    assert press(everywhere.gate, values[pressed(values, waiting, number)], **told) == 200


def pressed(labels, waiting, number):
    """The button of the number; where it is not among those offered, one of them that is not the right one."""
    assert len(set(labels)) == OFFERED + 1
    assert waiting.number in labels
    wrong = [one for one in labels if one.isdigit() and one != waiting.number]
    return number if number in labels else wrong[0]


TYPED = [over_the_api, in_the_terminal, behind_a_link]
PRESSED = [in_telegram, in_slack]


@pytest.mark.parametrize("say", TYPED + PRESSED)
def test_the_right_number_lets_the_browser_in_that_shows_it(everywhere, ask, say):
    waiting = ask()
    say(everywhere, waiting, waiting.number)
    assert waiting.client.redeem(waiting.answer()["code"]).status == 200


@pytest.mark.parametrize("say", TYPED + PRESSED)
def test_a_yes_that_is_tricked_out_of_a_person_for_anothers_browser_lets_nobody_in(everywhere, ask, say):
    """The person reads the number of their own browser, and answers the other's question with it."""
    own, others = ask(), ask()
    while own.number == others.number:
        others = ask()
    say(everywhere, others, own.number)
    assert others.answer()["error"] == "access_denied"
    assert own.browser.get(own.place).number == own.number


@pytest.mark.parametrize("say", TYPED)
def test_a_yes_without_a_number_is_no_answer(everywhere, ask, say):
    waiting = ask()
    assert "Say the number" in say(everywhere, waiting, "")
    assert waiting.browser.get(waiting.place).number == waiting.number


def test_no_message_and_no_question_says_which_number_it_is(everywhere, ask):
    waiting = ask()
    while waiting.number in waiting.id + waiting.name + everywhere.hook.url:
        waiting = ask()
    [shown] = [one for one in everywhere.gate.admin.get("/api/approvals") if one["id"] == waiting.id]
    spoken = [
        shown["sentence"],
        json.dumps(shown["arguments"]).replace(waiting.place.partition("id=")[2], ""),
        everywhere.posted("/json", waiting.name)["text"],
        everywhere.posted("/slack", waiting.name)["text"],
        everywhere.bot.messages[everywhere.bot.question(waiting.name)]["text"],
    ]
    for text in spoken:
        assert not [word for word in text.split() if word.strip(".,:;") == waiting.number], text


def test_one_press_in_slack_is_told_there_with_who_let_it_in(everywhere, ask):
    waiting = ask()
    in_slack(everywhere, waiting, waiting.number)
    assert waiting.client.redeem(waiting.answer()["code"]).status == 200
    told = wait_until(lambda: [one for one in list(everywhere.hook.requests) if one["path"] == "/told"])[-1]
    assert "by ann on team" in json.loads(told["body"])["text"]
    signed_in = [one["signed_in"] for one in everywhere.gate.admin.get("/api/agents")]
    assert "ann" in {one["person"] for one in signed_in if one}
