"""A key that is given twice in one object: whoever reads such a message may read it differently."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.surfaces.mcp.mcp_client import client_of
from tests.surfaces.mcp.mcp_small import Cupboard, small_gate

from agent_gate.mcp.errors import PARSE_ERROR, RpcError
from agent_gate.surfaces.mcp.incoming.params import read_message, read_params

CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lab__echo","arguments":{"a":"x:y"}}}'


@pytest.mark.parametrize(
    ("once", "twice"),
    [
        ('"method":', '"method":"ping","method":'),
        ('"method":', '"m\\u0065thod":"ping","method":'),
        ('"id":1', '"id":1,"id":2'),
        ('"params":', '"params":{"name":"lab__other"},"params" :'),
        ('"name":', '"name":"lab__other", "name"\t:'),
        ('"arguments":', '"arguments":{},"arguments":'),
        ('"a":', '"a":{"\\\\":1},"a":'),
        ('"a":', '"b":[{"c":1,"c":"\\":"}],"a":'),
        ('"arguments":', '"_meta":{"k":1,"k":2},"arguments":'),
    ],
)
async def test_a_request_that_gives_a_key_twice_is_a_parse_error_and_runs_nothing(
    tmp_path: Path, once: str, twice: str
) -> None:
    lab = Cupboard()
    lab.tool("echo")
    async with small_gate(tmp_path, lab) as gate, client_of(gate) as client:
        await client.initialize()
        headers = client.session_headers()
        reply = await client.send("POST", CALL.replace(once, twice, 1).encode(), headers)
        assert (reply.status, reply.error["code"]) == (400, PARSE_ERROR)
        assert "twice" in reply.error["message"]
        assert not lab.jobs
        assert (await client.send("POST", CALL.encode(), headers)).status == 200
        assert len(lab.jobs) == 1


KEYS = st.sampled_from(["a", "b:", '"', "\\", "é", "name", "_meta"])
TEXTS = st.text('ab:"\\ \n{', max_size=8)
GAPS = st.sampled_from(["", "", " ", "\n\t"])


def objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Objects as text, some with a key twice, some with white space around their colons."""
    member = st.tuples(KEYS, GAPS, inner).map(lambda one: f"{json.dumps(one[0])}{one[1]}: {one[2]}")
    return st.lists(member, max_size=4).map(lambda members: "{" + ",".join(members) + "}")


VALUES = st.recursive(
    TEXTS.map(json.dumps) | st.just("1") | st.just("null"),
    lambda inner: st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]") | objects(inner),
    max_leaves=8,
)


def has_repeats(text: str) -> bool:
    found = []

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found.append(len(pairs) != len(dict(pairs)))
        return dict(pairs)

    json.loads(text, object_pairs_hook=look)
    return any(found)


@settings(max_examples=400, deadline=None)
@given(objects(VALUES), st.sampled_from(["tools/call", "ping"]))
def test_what_is_refused_is_exactly_what_repeats_a_key(arguments: str, method: str) -> None:
    wanted = f'{{"name":"x","arguments":{arguments}}}' if method == "tools/call" else arguments
    text = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{wanted}}}'
    message = read_message(text.encode())
    try:
        read_params(text.encode(), message)
        refused = False
    except RpcError as error:
        refused = error.code == PARSE_ERROR
    assert refused == has_repeats(text)
