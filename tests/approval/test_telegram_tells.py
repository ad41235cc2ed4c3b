"""A chat says what became of an approved call, shows its picture, and is not held up by what cannot be read."""

import base64
from textwrap import dedent

from tests.approval.conftest import ANN, light, outcome, telegram
from tests.gateway import running
from tests.surfaces.admin.admin_gate import browser
from tests.waiting import wait_until

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
KIND = f"""
import asyncio
import base64
from dataclasses import dataclass
from typing import Annotated

from agent_gate.config.kinds import section
from agent_gate.config.shape import GIVEN
from agent_gate.core.call import Result
from agent_gate.core.ports import Picture, Plan
from agent_gate.core.tool import Definition

PIXEL = base64.b64decode("{base64.b64encode(PIXEL).decode()}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowSettings:
    name: Annotated[str, "Its key.", GIVEN]
    where: Annotated[str, "File and line.", GIVEN] = ""


SHOWS = section("shows", ShowSettings, "Pages to click on.")


class Show:
    kind, unwell, about, watched, context = "shows", None, "", False, None

    def __init__(self, settings):
        self.key = self.namespace = self.title = settings.name

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None

    async def connect(self):
        return [Definition(name="click", input_schema={{"type": "object"}}, ask="Click {{facts.element}}?")]

    async def watch(self):
        await asyncio.get_running_loop().create_future()

    async def answer(self, job):
        return Result(b'"clicked"')

    def facts(self, tool, call):
        return {{"element": "Buy"}}

    async def picture(self, tool, call):
        return Picture("image/png", PIXEL)


class ShowKind:
    name, section = "shows", SHOWS

    def make(self, settings, toolbox):
        sources = [(Show(one), one) for one in SHOWS.of(settings).values()]
        return [Plan(source=source, settings=one, witness=source) for source, one in sources]


KIND = ShowKind()
"""
CONFIG = """
    gateway: {{port: 0}}
    admin: {{port: 0, socket: ./data/admin.sock}}
    agents: {{pi: {{token: token-of-the-first-agent-in-tests}}}}
    people: {{ann: {{telegram: 11}}}}
    storage: {{type: sqlite, path: ./data/gate.db}}
    shows: {{web: {{}}}}
    {channels}
"""


def installed(folder):
    """A package with a kind of source, as an installer leaves it."""
    about = folder / "shows-1.dist-info"
    about.mkdir(parents=True)
    (folder / "shows_kind.py").write_text(KIND)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shows\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[agent_gate.sources]\nshows = shows_kind:KIND\n")
    return str(folder)


def test_a_question_comes_with_its_facts_and_its_picture(tmp_path, bot):
    files = {"config.yaml": dedent(CONFIG).format(channels=telegram(bot)), "permissions.yaml": "{}\n"}
    env = {"PYTHONPATH": installed(tmp_path / "packages")}
    with running(tmp_path, files, "--insecure", env=env) as gate:
        wait_until(lambda: gate.admin.get("/api/sources")[0]["status"] == "ready")
        call = gate.call("web__click", {"ref": "e1"}, wait=0).json["call"]
        number = bot.question("Click Buy?")
        assert 'facts.element = "Buy"' in bot.messages[number]["text"]
        assert bot.wait(lambda: bot.photos) == [("image/png", PIXEL, number)]
        [row] = gate.admin.get("/api/approvals")
        assert (row["picture"], row["facts"]) == ("image/png", {"element": "Buy"})
        shown = browser(gate).send("GET", f"/api/approvals/{row['id']}/picture")
        assert (shown.headers["content-type"], shown.body) == ("image/png", PIXEL)
        bot.press(number, "Once", ANN)
        assert outcome(gate, call).json["status"] == "executed"


def test_the_message_says_what_became_of_the_call(start, bot, api):
    gate = start(telegram(bot))
    light(gate)
    number = bot.question("light.bedroom")
    bot.press(number, "Once", ANN)
    bot.wait(lambda: "It ran." in bot.messages[number]["text"])
    api.replies["*"] = (500, {}, b'{"message": "the bulb is broken"}')
    light(gate, "light.kitchen")
    number = bot.question("light.kitchen")
    bot.press(number, "Once", ANN)
    bot.wait(lambda: "It failed: " in bot.messages[number]["text"])
    assert "Approved once by ann" in bot.messages[number]["text"]
    light(gate, "light.hall")
    number = bot.question("light.hall")
    bot.press(number, "Deny", ANN)
    bot.wait(lambda: "Denied by ann" in bot.messages[number]["text"])
    assert "It failed" not in bot.messages[number]["text"]


def test_answers_to_many_questions_say_what_became_of_each_call(start, api):
    gate = start()
    for entity in ("light.bedroom", "light.hall"):
        light(gate, entity)
    api.replies["*"] = lambda _handler, body: (500 if b"hall" in body else 200, {}, b"{}")
    ids = [row["id"] for row in gate.admin.get("/api/approvals")]
    body = {"ids": [*ids, "nothing"], "verdict": "approve"}
    ran, failed, missing = gate.admin.request("POST", "/api/approvals", body)["results"]
    assert (ran["became"]["state"], ran["became"]["text"]) == ("completed", "It ran.")
    assert (failed["state"], failed["became"]["state"]) == ("approved", "failed")
    assert failed["became"]["text"].startswith("It failed: ")
    assert "became" not in missing


DAMAGED = (5, [], None, {"update_id": "x"}, {"update_id": 1e300}, {"message": {}})


def test_updates_that_cannot_be_read_are_confirmed_once_and_logged_once(start, bot):
    gate = start(telegram(bot))
    light(gate)
    number = bot.question("light.bedroom")
    with bot.lock:
        for sent in DAMAGED:
            bot.damaged(sent)
        bot.say("hello", ANN)
    wait_until(lambda: not bot.updates)
    assert "Approved once by ann" in bot.press(number, "Once", ANN)
    assert gate.stderr.count("An update cannot be read and is skipped") == len(DAMAGED)
    assert "A channel's loop failed" not in gate.stderr


def test_an_update_without_a_number_that_comes_again_is_logged_once_and_holds_up_nobody(start, bot):
    gate = start(telegram(bot))
    light(gate)
    number = bot.question("light.bedroom")
    bot.damaged({"update_id": "x"})
    bot.damaged({"update_id": "y"})
    asked = len(bot.calls)
    wait_until(lambda: [method for method, _ in bot.calls[asked:]].count("getUpdates") >= 2)
    assert "Approved once by ann" in bot.press(number, "Once", ANN)
    wait_until(lambda: not bot.updates)
    assert gate.stderr.count("An update cannot be read and is skipped") == 2
