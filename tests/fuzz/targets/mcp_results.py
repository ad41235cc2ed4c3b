"""Bytes from a server to a tool result: refused when they arrive, or shown by every surface without a fault."""

import json

from tests.fuzz.fuzzing import Target

from agent_gate.core.call import Outcome, Result, State
from agent_gate.mcp.results import NoResult, read_tool_result, without_reserved
from agent_gate.mcp.revisions import NEWEST, NEWEST_WITH_SESSIONS
from agent_gate.results.data import content_of, data_of
from agent_gate.surfaces.mcp.tools import render


def run(data: bytes) -> None:
    try:
        shape = read_tool_result(data)
    except NoResult:
        return
    body = without_reserved(data, shape)
    result = Result(body, "mcp", shape.error is True, shape.asks)
    outcome = Outcome(call_id="c", state=State.COMPLETED, result=result)
    for revision in (NEWEST, NEWEST_WITH_SESSIONS):
        shown = render.outcome_result(outcome, "lab", revision)
        assert isinstance(json.loads(render.completed(shown)), dict)
    json.loads(data_of(result))
    json.loads(content_of(result) or b"[]")


TARGET = Target(
    "mcp_results",
    run,
    words=(
        b'{"content":[{"type":"text","text":"a"}]}', b'"structuredContent":{}', b'"isError":true', b'"_meta":{', b'"agent-gate/error":1',
        b'"io.modelcontextprotocol/serverInfo":{}', b'"resultType":"complete"', b'"input_required"', b'"type":"image","data":"YQ==","mimeType":"a/b"',
        b'"type":"resource","resource":{"uri":"a:b","text":"c"}', b'"type":"resource_link","uri":"a:b","name":"c"', b"null", b"[", b"]", b"{", b"}",
        b",", b":", b'"', b"\\u005f", b"\\ud800", b"\xff", b"1e999", b" ", b"\n",
    ),
)  # fmt: skip
