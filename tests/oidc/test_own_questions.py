"""Questions that go to the person for whom an agent works, who logged in at the provider: page, Telegram, terminal."""

import os

import pytest
from tests.approval.bot_api import CHAT, TOKEN, BotApi
from tests.oidc.agents_house import PersonWithAgent, login_gate
from tests.oidc.provider_house import PersonAtProvider
from tests.sign_in.test_sign_in_channels import typed

OWN = """
rules: [{pattern: "notes_*", action: ask, approvers: {own: true}}]
defaults: [{pattern: "*", action: ask}]
"""
ANNA, BEN = 11, 22
MORE = """
people:
  anna: {{login: anna@example.test, telegram: 11, uid: {uid}}}
  ben: {{login: ben@example.test, telegram: 22}}
limits: {{hold: 0.1}}
channels: [{{type: telegram, token: "{token}", chat_id: {chat}, allowed_users: [11, 22], base_url: "{url}"}}]
"""


@pytest.fixture(scope="module")
def bot():
    made = BotApi()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def gate(tmp_path_factory, api, provider, bot):
    more = MORE.format(uid=os.getuid(), token=TOKEN, chat=CHAT, url=bot.url)
    folder = tmp_path_factory.mktemp("own")
    with login_gate(folder, api, provider, more, OWN, agents="{sre: {}}") as started:
        yield started


@pytest.fixture(scope="module")
def agents(gate, provider):
    """An agent of each, by their own login."""
    found = {}
    for name in ("anna", "ben"):
        provider.tell_of(name, groups="sre")
        found[name] = PersonWithAgent(gate, provider, name).sign_in()
    return found


def ask(gate, client, thing):
    """Call; the question that is open now."""
    params = {"name": "notes_write", "arguments": {"thing": thing}}
    waiting = client.mcp({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})
    assert waiting.status == 200, waiting.body
    return next(one for one in gate.admin.get("/api/approvals") if one["arguments"] == {"thing": thing})


def state_of(gate, question):
    return gate.admin.get(f"/api/approvals/{question['id']}")["state"]


def page_of(gate, provider, name):
    person = PersonAtProvider(gate, provider, name)
    assert person.log_in().status == 303
    return person.page


def test_on_the_page_they_answer_and_nobody_else(gate, provider, agents):
    question = ask(gate, agents["ben"], "by page")
    assert question["approvers"] == ["ben"]
    anna, ben = page_of(gate, provider, "anna"), page_of(gate, provider, "ben")
    yes = {"verdict": "approve"}
    refused = anna.send("POST", f"/api/approvals/{question['id']}", yes)
    assert (refused.status, "Only ben may answer this" in refused.json["error"]["message"]) == (403, True)
    ben.post(f"/api/approvals/{question['id']}", yes)
    assert state_of(gate, question) == "approved"


def test_in_telegram_they_answer_and_nobody_else(gate, agents, bot):
    question = ask(gate, agents["anna"], "by telegram")
    message = bot.question("by telegram")
    assert bot.press(message, "Once", BEN).startswith("Only anna may answer this")
    assert state_of(gate, question) == "pending"
    assert "Approved once by anna" in bot.press(message, "Once", ANNA)


def test_in_the_terminal_they_answer_and_nobody_else(gate, agents):
    """The terminal of the tests is Anna's, by her uid."""
    mine, bens = ask(gate, agents["anna"], "by terminal"), ask(gate, agents["ben"], "by another's terminal")
    assert typed(gate, "approvals", "approve", mine["id"]).returncode == 0
    refused = typed(gate, "approvals", "approve", bens["id"])
    assert (refused.returncode != 0, "Only ben may answer this" in refused.stderr) == (True, True)
    assert state_of(gate, bens) == "pending"
