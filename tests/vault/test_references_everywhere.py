"""A secret may stand elsewhere than in the file wherever one is needed: agents, people, channels and the store too."""

from collections.abc import Iterator

import pytest
from tests import nursery, postgres
from tests.approval.bot_api import CHAT, BotApi
from tests.approval.bot_api import TOKEN as BOT_TOKEN
from tests.gateway import COMMAND, OTHER_TOKEN, TOKEN, Api, Gateway, running
from tests.oauth.test_signing_in import traces
from tests.waiting import PATIENCE, wait_until

CONFIG = """
gateway: {{port: 0}}
admin: {{port: 0}}
agents:
  pi: {{token: "env:TOKEN_OF_PI"}}
  coder: {{token: "vault:coder"}}
services:
  house: {{url: "{api}", tools: tools.yaml}}
approvers: {{passphrase: "file:secrets/passphrase"}}
channels: [{{type: telegram, token: "file:secrets/bot", chat_id: {chat}, allowed_users: [11], base_url: "{bot}"}}]
storage: {{type: postgres, url: "file:secrets/store"}}
"""
TOOLS = "tools: {light_get: {request: {method: GET, path: /light}}}\n"


@pytest.fixture(scope="module")
def bot() -> Iterator[BotApi]:
    made = BotApi()
    yield made
    made.stop()
    assert made.faults == []


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, bot: BotApi) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("refers")
    with Api() as api:
        files = {
            "config.yaml": CONFIG.format(api=api.url, chat=CHAT, bot=bot.url),
            "tools.yaml": TOOLS,
            "secrets/bot": f"{BOT_TOKEN}\n",
            "secrets/passphrase": "correct horse battery staple",
            "secrets/store": postgres.server().clean_database(),
        }
        with running(folder, files, "--insecure", env={"TOKEN_OF_PI": TOKEN}) as made:
            yield made


def test_agents_channels_people_and_the_store_are_known_by_what_the_file_refers_to(gateway, bot):
    assert gateway.call("light_get", wait=0).status == 202
    number = bot.question("light_get")
    with pytest.raises(Exception, match="passphrase"):
        gateway.answer()
    gateway.answer(passphrase="correct horse battery staple")
    bot.wait(lambda: not bot.messages[number]["keyboard"])
    secret = [BOT_TOKEN, TOKEN, "correct horse battery staple"]
    assert [one for one in traces(gateway.folder, *secret) if "/secrets/" not in one] == []


def test_an_agent_whose_secret_is_missing_stays_outside_until_it_is_set(gateway):
    assert gateway.call("light_get", token=OTHER_TOKEN, wait=0).status == 401
    assert any("agent-gate secrets set coder" in one for one in gateway.admin.get("/api/status")["warnings"])
    said = nursery.run(
        [COMMAND, "secrets", "set", "coder", "--admin-socket", gateway.announced["socket"]],
        input=OTHER_TOKEN,
        capture_output=True,
        text=True,
    )
    assert (said.returncode, "the configuration will use it now" in said.stdout) == (0, True), said
    wait_until(lambda: gateway.call("light_get", token=OTHER_TOKEN, wait=0).status == 202)
    assert traces(gateway.folder, OTHER_TOKEN) == []


def test_the_address_of_the_store_cannot_be_in_the_store(tmp_path):
    (tmp_path / "config.yaml").write_text('storage: {type: postgres, url: "vault:store"}\n')
    said = nursery.run(
        [COMMAND, "serve", "--config", "config.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert said.returncode == 8
    assert "storage.url cannot refer to the vault" in said.stderr
