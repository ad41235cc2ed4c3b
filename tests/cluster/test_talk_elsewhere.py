"""A server that runs on one gateway speaks to callers on another while their calls run: progress, questions, cancellation."""

import asyncio
import sys
from contextlib import suppress
from itertools import product
from pathlib import Path

import psycopg
import pytest
from tests import postgres
from tests.cluster.several import Several
from tests.eras.era_agents import agent, new_key, text
from tests.gateway import Api
from tests.waiting import PATIENCE, until, wait_until

from agent_gate.sources.errands.rows import ErrandMessage
from agent_gate.sources.errands.talk import NOTE, ErrandLine
from agent_gate.vault.sealing import SealingKey

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
SERVER = Path(__file__).parents[1] / "eras" / "era_server.py"
ERAS = ("handshake", "modern")
PAIRS = pytest.mark.parametrize(
    ("client", "server"), [pytest.param(*row, id="-".join(row)) for row in product(ERAS, ERAS)]
)


class Speaking(Several):
    """Two gateways with a server of each of some eras, all of which run on the first; the plain one runs on both."""

    def __init__(self, folder, database, api, eras=ERAS, plain=True):
        self.place = Path(folder)
        servers = [
            f"{era}: {{command: {sys.executable}, args: [{SERVER}, {era}, {folder}, stdio], single: true}}"
            for era in eras
        ]
        if plain:
            servers.append(
                f"plain: {{command: {sys.executable}, args: [{SERVER}, handshake, {folder}, stdio]}}"
            )
        super().__init__(folder, database, api, more=f"servers: {{{', '.join(servers)}}}")
        self.one, self.two = self.begin("one"), self.begin("two")

    def files(self, name, more=""):
        return super().files(name, more) | {"permissions.yaml": "defaults: [{pattern: '*', action: allow}]"}

    def begin(self, name):
        gateway = self.start(name)
        wait_until(lambda: gateway.request("GET", "/ready", token=None).status == 200)
        return gateway

    def noted(self, name, key):
        """How often a server noted `key` under this name."""
        path = self.place / name
        return path.read_text().splitlines().count(key) if path.exists() else 0

    def ask(self, sql):
        with psycopg.connect(self.database, autocommit=True) as connection:
            return connection.execute(sql).fetchall()


@pytest.fixture(scope="module")
def gates(tmp_path_factory):
    with Api() as api:
        found = Speaking(tmp_path_factory.mktemp("speaking"), postgres.server().new_database(), api)
        yield found
        found.close()


@pytest.fixture
def fresh(tmp_path):
    """Those of a test that kills one of them."""
    with Api() as api:
        found = Speaking(tmp_path, postgres.server().new_database(), api, ["handshake"], plain=False)
        yield found
        found.close()


@PAIRS
async def test_progress_arrives_in_order_and_before_the_result(gates, client, server):
    async with agent(gates.two, client) as one:
        result = await one.call(f"{server}__steps")
        assert text(result) == "all steps done"
        assert one.progress == [(step, 4, f"step {step}") for step in (1, 2, 3, 4)]


@PAIRS
async def test_the_answers_of_the_clients_person_and_model_reach_the_servers_result(gates, client, server):
    async with agent(gates.two, client) as one:
        assert text(await one.call(f"{server}__elicit")) == "hello Ada"
        assert text(await one.call(f"{server}__sample")) == "the model says Paris"
        assert one.asked == ["Who are you?", "What is the capital of France?"]


@PAIRS
async def test_several_questions_of_one_call_are_asked_one_after_the_other(gates, client, server):
    key = new_key()
    async with agent(gates.two, client) as one:
        assert text(await one.call(f"{server}__two_rounds", key=key)) == "Ada likes green"
        assert one.asked == ["Who are you?", "Which colour?"]
    assert gates.noted("rounds", key) == (3 if server == "modern" else 1)


@PAIRS
async def test_a_question_that_the_clients_person_refuses_is_declined(gates, client, server):
    async with agent(gates.two, client, action="decline") as one:
        assert text(await one.call(f"{server}__elicit")) == "declined by decline"


@PAIRS
async def test_a_question_that_nobody_can_answer_is_refused_and_the_call_ends(gates, client, server):
    said = ""
    async with agent(gates.two, client, can_answer=False) as one, asyncio.timeout(PATIENCE):
        with suppress(Exception):
            said = text(await one.call(f"{server}__elicit"))
    assert "hello" not in said
    wait_until(lambda: not gates.ask("SELECT id FROM errands"))


@PAIRS
async def test_a_call_that_is_cancelled_is_cancelled_at_the_server_and_its_outcome_is_unknown(
    gates, client, server
):
    key = new_key()
    async with agent(gates.two, client) as one:
        calling = asyncio.create_task(one.call(f"{server}__wait", key=key))
        await until(lambda: gates.noted("began", key), "the call's start")
        calling.cancel()
        with suppress(asyncio.CancelledError):
            await calling
        await until(lambda: gates.noted("cancelled", key), "the cancellation at the server")
    [call] = {row["call"] for row in gates.two.admin.get(f"/api/calls?text={key}")["rows"]}
    assert wait_until(lambda: gates.two.story(call) == ["dispatching", "unknown"])
    gates.ask("DELETE FROM errands RETURNING id")


OVERHEAR = """
CREATE TABLE overheard (body BYTEA);
CREATE FUNCTION overhear() RETURNS trigger AS $$ BEGIN
  INSERT INTO overheard VALUES (NEW.body); RETURN NULL; END $$ LANGUAGE plpgsql;
CREATE TRIGGER overhearing AFTER INSERT ON words FOR EACH ROW EXECUTE FUNCTION overhear();
"""


async def test_what_is_said_between_gateways_is_sealed_and_its_rows_are_gone_when_it_was_heard(gates):
    with psycopg.connect(gates.database, autocommit=True) as connection:
        connection.execute(OVERHEAR)
    async with agent(gates.two, "handshake", name="somebody in particular") as one:
        assert text(await one.call("handshake__elicit")) == "hello somebody in particular"
    heard = [bytes(body) for (body,) in gates.ask("SELECT body FROM overheard")]
    assert len(heard) >= 2
    assert not any(b"particular" in body or b"Who are you" in body for body in heard)
    wait_until(lambda: not gates.ask("SELECT seq FROM words"))


async def test_a_call_that_waits_on_one_gateway_for_its_callers_answer_goes_on_when_that_comes_to_the_other(
    gates,
):
    """A client of the modern revision comes back with its answer; a server of the older ones waits for it meanwhile."""

    async with agent(gates.one, "modern") as first, agent(gates.two, "modern") as second:
        asked = await first.leg("plain__elicit")
        [(name, question)] = asked["inputRequests"].items()
        assert question["params"]["message"] == "Who are you?"
        said = {
            "requestState": asked["requestState"],
            "inputResponses": {name: {"action": "accept", "content": {"name": "Ada"}}},
        }
        told = await second.leg("plain__elicit", said)
        assert told["content"][0]["text"] == "hello Ada"
        again = await second.leg("plain__elicit", said)
        assert again["content"][0]["text"] == "hello Ada"


async def test_a_question_to_a_caller_whose_gateway_died_is_declined_and_the_server_goes_on(fresh):
    with suppress(Exception):
        async with agent(fresh.two, "handshake", thinks=asyncio.Event()) as one:
            call = asyncio.create_task(one.call("handshake__elicit"))
            await until(lambda: one.asked, "the question")
            fresh.kill("two")
            call.cancel()
    wait_until(lambda: fresh.ask("SELECT state FROM errands") == [("done",)])
    assert fresh.one.call("handshake__steps").status == 200


async def test_a_call_whose_server_died_with_its_gateway_while_its_caller_was_asked_is_unknown(fresh):
    async with agent(fresh.two, "handshake", thinks=asyncio.Event()) as one:
        call = asyncio.create_task(one.call("handshake__elicit"))
        await until(lambda: one.asked, "the question")
        fresh.kill("one")
        told = await call
        assert told.is_error
        assert "stopped while it ran this call" in text(told)


async def test_a_line_between_gateways_hears_each_word_once_in_its_order_and_nothing_that_was_altered():
    said = []

    class Words:
        async def say(self, word):
            said.append(word.body)

    key = SealingKey(b"k" * 32)
    near, far = (
        ErrandLine(Words(), key, "errand-1", me, other) for me, other in (("one", "two"), ("two", "one"))
    )
    for number in (1, 2):
        near.say(ErrandMessage(kind=NOTE, number=number))
        await near.wait_said()
    assert far.hear(said[1]) == ()
    assert far.hear(said[0][:-1]) == ()
    assert near.hear(said[0]) == ()
    assert [one.number for one in far.hear(said[0])] == [1]
    assert far.hear(said[0]) == ()
    assert [one.number for one in far.hear(said[1])] == [2]
