"""Agents on a WebSocket that do not acknowledge: cut off from one gateway, they find their results on another by their ids.

They count from 1 on each connection, so only the rows of the connection that was cut just before are theirs by id.
"""

import json
from contextlib import contextmanager

import pytest
from tests.cluster.several import several
from tests.gateway import TOKEN
from tests.waiting import PATIENCE, wait_until
from websockets.sync.client import connect


@contextmanager
def agent_on(gateway):
    """An agent that says nothing of acknowledging; gives what asks for one thing and returns the reply."""
    with connect(gateway.url.replace("http", "ws"), compression=None, proxy=None) as socket:

        def ask(ident, method, params):
            socket.send(json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}))
            while method != "tool_request":
                reply = json.loads(socket.recv(PATIENCE))
                if reply.get("id") == ident:
                    return reply["result"]
            return None

        assert ask("auth", "auth", {"token": TOKEN})["status"] == "authenticated"
        yield ask


def call_and_be_asked(ask, gateway, ident, n):
    ask(ident, "tool_request", {"tool": "write", "args": {"n": n}})
    [question] = wait_until(lambda: gateway.admin.get("/api/approvals"))
    return question


def answer(gateway, question):
    gateway.admin.request("POST", f"/api/approvals/{question['id']}", {"verdict": "approve"})
    wait_until(lambda: gateway.story(question["call"])[-1] == "completed")


def pending(ask):
    return [row["request_id"] for row in ask("p", "get_pending_results", {})["results"]]


@pytest.fixture
def gateways(tmp_path, database, api):
    with several(tmp_path, database, api) as made:
        yield made


def test_an_agent_finds_the_result_of_its_call_on_another_gateway_by_its_own_id(gateways):
    one, two = gateways.start("one"), gateways.start("two")
    with agent_on(one) as ask:
        question = call_and_be_asked(ask, two, 7, 1)
        gateways.stop("one")
        answer(two, question)
    with agent_on(two) as ask:
        assert pending(ask) == [7]


def test_of_two_connections_at_once_on_two_gateways_neither_gets_the_ids_of_the_other(gateways):
    one, two = gateways.start("one"), gateways.start("two")
    with agent_on(one) as first:
        question = call_and_be_asked(first, two, 7, 1)
        with agent_on(two) as second:
            answer(two, question)
            assert pending(second) == [question["call"]]
