"""The pure parts of the MCP source: text, headers, events, results, lists and rates."""

import asyncio
import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.mcp.upstreams import tool
from tests.waiting import PATIENCE

from agent_gate.config.servers.settings import ServerSettings, TraitSettings
from agent_gate.core.ids import tool_id
from agent_gate.core.traits import Traits
from agent_gate.errors import CatalogError, RateLimited
from agent_gate.mcp.events import EventParser
from agent_gate.mcp.headers import wrap
from agent_gate.mcp.messages import request
from agent_gate.mcp.results import NOT_A_SERVERS, NoResult, read_envelope, read_tool_result, without_reserved
from agent_gate.mcp.revisions import NEWEST, NEWEST_WITH_SESSIONS
from agent_gate.sources.mcp.calling.bucket import Bucket
from agent_gate.sources.mcp.clean import MAX_DESCRIPTION, clean, clean_schema
from agent_gate.sources.mcp.lists.links import LONGEST, MOST, Links
from agent_gate.sources.mcp.lists.listing import usable_tools
from agent_gate.sources.mcp.lists.mirrors import header_map, param_headers
from agent_gate.sources.mcp.wire.frames import MAX_MESSAGE, read_frame, result_of
from agent_gate.sources.mcp.wire.mux import Mux

SETTINGS = ServerSettings(key="up")
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain", "plain"),
        ("line\nand\ttab", "line\nand\ttab"),
        ("a\u202eb\u200bc", "abc"),
        ("tag\U000e0041\U000e0042", "tag"),
        ("bell\x07\x9b", "bell"),
        ("\ufeffbom", "bom"),
        (7, ""),
        (None, ""),
    ],
)
def test_hidden_characters_are_taken_out_of_texts(written: object, shown: str) -> None:
    assert clean(written) == shown


@given(st.text(), st.integers(8, 64))
def test_cleaned_text_fits_its_limit_and_is_stable(text: str, limit: int) -> None:
    cleaned = clean(text, limit)
    assert len(cleaned.encode()) <= limit
    assert clean(cleaned, limit) == cleaned


def test_a_schemas_texts_are_cleaned_and_its_structure_kept() -> None:
    schema = {"type": "object", "properties": {"a": {"description": "x\u200by", "enum": ["p", "q\u202e"]}}}
    cleaned = clean_schema(schema)
    assert cleaned == {"type": "object", "properties": {"a": {"description": "xy", "enum": ["p", "q"]}}}
    long = clean_schema({"description": "d" * 10_000})["description"]
    assert len(long.encode()) <= MAX_DESCRIPTION


@given(st.text())
def test_a_header_value_can_be_read_back(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    value = wrap(text)
    assert value.isascii()
    assert value.isprintable()
    if value != text:
        assert base64.b64decode(value.removeprefix("=?base64?").removesuffix("?=")).decode() == text


def test_headers_are_made_of_nested_arguments_that_are_there() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "boolean", "x-mcp-header": "Flag"}}}
    schema = {"type": "object", "properties": {"a": inner, "n": {"type": "integer", "x-mcp-header": "Num"}}}
    wanted = header_map(schema)
    assert param_headers(wanted, {"a": {"b": True}, "n": 5}) == {
        "Mcp-Param-Flag": "true",
        "Mcp-Param-Num": "5",
    }
    assert param_headers(wanted, {"a": 3}) == {}


@given(st.lists(st.binary(max_size=40), max_size=5), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.data())
def test_events_are_the_same_wherever_the_stream_is_cut(payloads, end: bytes, data) -> None:
    lines = [payload.replace(b"\r", b"").replace(b"\n", b"") for payload in payloads]
    stream = (
        b"".join(b"id: %d%bdata: %b%b%b" % (n, end, line, end, end) for n, line in enumerate(lines)) + b":end"
    )
    whole = [event.data for event in EventParser(MAX_MESSAGE).feed(stream)]
    cut = data.draw(st.integers(0, len(stream)))
    parser = EventParser(MAX_MESSAGE)
    parts = [event.data for chunk in (stream[:cut], stream[cut:]) if chunk for event in parser.feed(chunk)]
    assert parts == whole == lines


def test_an_event_knows_its_kind_id_and_retry() -> None:
    (event,) = EventParser(MAX_MESSAGE).feed(b"event: endpoint\nid: 7\nretry: 250\ndata: a\ndata: b\n\n")
    assert (event.kind, event.id, event.retry, event.data) == (b"endpoint", b"7", 0.25, b"a\nb")


@given(st.binary(max_size=200))
async def test_any_bytes_are_a_message_or_noise(data: bytes) -> None:
    async def nowhere(sent: bytes) -> None:
        del sent

    mux = Mux(nowhere)
    mux.feed(data)
    assert mux.pending == {}
    await mux.stop()


@given(json_values)
def test_a_result_survives_as_the_bytes_it_came_in(value: object) -> None:
    raw = msgspec.json.encode(value)
    message = read_frame(b'{"jsonrpc":"2.0","id":1,"result":' + raw + b"}")[0]
    assert result_of(message) == raw


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_a_request_is_one_line(params: dict) -> None:
    data = request(1, "tools/call", params)
    assert b"\n" not in data
    assert msgspec.json.decode(data)["params"] == params


@given(
    st.dictionaries(st.text(), json_values, max_size=3), st.dictionaries(st.text(), json_values, max_size=3)
)
def test_reserved_meta_is_dropped_and_everything_else_stays(meta: dict, rest: dict) -> None:
    reserved = {"io.modelcontextprotocol/serverInfo": {"name": "x"}, "agent-gate/tool-id": "other:tool"}
    meta = {name: value for name, value in meta.items() if not name.startswith(NOT_A_SERVERS)}
    members = ("_meta", "isError", "resultType", "content", "structuredContent")
    rest = {name: value for name, value in rest.items() if name not in members}
    part = {"type": "text", "text": "x", "_meta": {**meta, **reserved}}
    body = msgspec.json.encode({"content": [part], **rest, "_meta": {**meta, **reserved}})
    cleaned = msgspec.json.decode(without_reserved(body, read_tool_result(body)))
    theirs = {**meta, "io.modelcontextprotocol/serverInfo": {"name": "x"}}
    assert cleaned == {"content": [{**part, "_meta": theirs}], **rest, "_meta": meta}


@pytest.mark.parametrize(
    "meta",
    [
        b'"_meta":{"agent-gate/tool-id":"other:tool"}',
        b'"_meta":{"agent\\u002dgate/tool-id":"other:tool"}',
        b'"_meta":{"agent-gate/tool-id":"other:tool"},"_meta":{}',
    ],
)
def test_no_server_speaks_in_the_gateways_name(meta: bytes) -> None:
    body = b'{"content":[],"n":123456789012345678901234567890,%b}' % meta
    cleaned = without_reserved(body, read_tool_result(body))
    assert cleaned == b'{"content":[],"n":123456789012345678901234567890,"_meta":{}}'


@pytest.mark.parametrize("body", [b"[]", b"1", b'{"resultType":5}', b'{"a":"\xff"}', b"{"])
def test_an_answer_that_is_no_object_of_the_protocol_is_no_result(body: bytes) -> None:
    with pytest.raises(NoResult):
        read_envelope(body)


def traits(annotations: dict, **settings: object) -> Traits:
    made = usable_tools(
        [tool("t", annotations=annotations)], ServerSettings(key="up", **settings), NEWEST_WITH_SESSIONS
    )
    return made.definitions[0].traits


CLAIMS = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": True, "openWorldHint": True}


def test_an_untrusted_server_is_believed_only_the_worst() -> None:
    assert traits(CLAIMS) == Traits(destructive=True, open_world=True)
    assert traits({"destructiveHint": "yes"}) == Traits()


def test_a_trusted_server_is_believed_and_the_operator_has_the_last_word() -> None:
    every = Traits(read_only=True, destructive=True, idempotent=True, open_world=True, trusted=True)
    assert traits(CLAIMS, trust_annotations=True) == every
    said = TraitSettings(read_only=True, destructive=False)
    assert traits(CLAIMS, traits=said) == Traits(read_only=True, open_world=True, trusted=True)


def test_only_trusted_read_only_tools_go_ahead_of_their_record() -> None:
    def record(annotations: dict, **settings: object) -> str:
        asked = ServerSettings(key="up", record="behind", **settings)
        return (
            usable_tools([tool("t", annotations=annotations)], asked, NEWEST_WITH_SESSIONS)
            .definitions[0]
            .record
        )

    assert record({"readOnlyHint": True}, trust_annotations=True) == "behind"
    assert record({}, traits=TraitSettings(read_only=True)) == "behind"
    assert record({"readOnlyHint": True}) == "await"
    assert record({}, trust_annotations=True) == "await"


@given(
    st.lists(json_values | st.fixed_dictionaries({"name": st.text(), "inputSchema": json_values}), max_size=5)
)
def test_any_list_of_tools_yields_definitions_or_reasons(entries: list) -> None:
    names = [entry.get("name") for entry in entries if isinstance(entry, dict)]
    if len(names) != len({name for name in names if isinstance(name, str)}):
        return
    made = usable_tools(entries, SETTINGS, NEWEST)
    assert len(made.definitions) + len(made.excluded) == len(entries)
    assert {definition.name for definition in made.definitions} == set(made.routes)


@pytest.mark.parametrize(
    ("upstream", "version", "ident"),
    [
        ("github.create_issue", "1.4.0", "github:create_issue@1.4.0"),
        ("create_issue", "2024-05", "github:create_issue@2024-05"),
        ("create_issue", "1.0 beta", "github:create_issue#e069a61d"),
        ("create_issue", {"major": 1}, "github:create_issue#e069a61d"),
    ],
)
def test_a_version_that_a_tool_declares_stands_in_its_id(upstream: str, version: object, ident: str) -> None:
    made = usable_tools([tool(upstream, _meta={"version": version})], SETTINGS, NEWEST_WITH_SESSIONS)
    assert [tool_id("github", definition) for definition in made.definitions] == [ident]


def test_a_result_leads_to_its_links_and_to_the_resources_it_brings_along() -> None:
    links = Links()
    parts = [
        {"type": "resource_link", "uri": "a://link", "name": "a"},
        {"type": "resource", "resource": {"uri": "a://inside", "text": "x"}},
        {"type": "text", "text": "a://text", "uri": "a://odd"},
        {"type": "resource_link", "uri": "a://" + "x" * LONGEST, "name": "b"},
    ]
    links.note(msgspec.json.encode({"content": parts}))
    assert [uri in links for uri in ("a://link", "a://inside", "a://odd")] == [True, True, False]
    assert parts[3]["uri"] not in links
    for body in (
        b'{"content":[{"type":"resource_link","uri":7}]}',
        b'{"content":"resource"}',
        b'["resource"]',
    ):
        links.note(body)


def test_of_the_links_in_results_the_latest_are_known() -> None:
    links = Links()
    for number in (*range(MOST), 0, MOST):
        links.note(msgspec.json.encode({"content": [{"type": "resource_link", "uri": f"a://{number}"}]}))
    assert [f"a://{number}" in links for number in (0, 1, 2, MOST)] == [True, False, True, True]


def test_the_page_of_a_tool_is_known_while_the_tool_is_listed() -> None:
    links = Links()
    metas = [{"ui": {"resourceUri": "ui://new"}}, {"ui/resourceUri": "ui://old"}, {"ui": "odd"}, {}]
    entries = [tool(f"t{number}", _meta=meta) for number, meta in enumerate(metas)]
    links.note_listed(usable_tools(entries, SETTINGS, NEWEST).definitions)
    assert ("ui://new" in links, "ui://old" in links) == (True, True)
    links.note_listed(())
    assert "ui://new" not in links


def test_a_tool_that_can_only_run_as_a_task_is_left_out() -> None:
    tasks = {kind: tool(kind, execution={"taskSupport": kind}) for kind in ("required", "optional")}
    made = usable_tools(list(tasks.values()), SETTINGS, NEWEST)
    assert [definition.name for definition in made.definitions] == ["optional"]
    assert [(left.name, "only run as a task" in left.reason) for left in made.excluded] == [
        ("required", True)
    ]


def test_of_two_tools_of_one_name_and_different_ids_the_first_is_kept() -> None:
    other = {"type": "object", "properties": {"n": {"type": "integer"}}}
    made = usable_tools(
        [tool("a", description="1"), tool("a", description="2", inputSchema=other)],
        SETTINGS,
        NEWEST_WITH_SESSIONS,
    )
    assert [definition.description for definition in made.definitions] == ["1"]
    assert made.excluded[0].reason == "another tool of this server has the same name"


@pytest.mark.parametrize("version", [{}, {"_meta": {"version": "1.2"}}, {"_meta": {"version": 2}}])
def test_a_list_with_two_tools_of_one_id_is_refused_whole(version: dict) -> None:
    entries = [tool("a", description="1", **version), tool("b"), tool("a", description="2", **version)]
    with pytest.raises(CatalogError, match="two tools with the id up:a"):
        usable_tools(entries, SETTINGS, NEWEST_WITH_SESSIONS)


@pytest.mark.parametrize(
    ("declared", "version"),
    [(2, "2"), (1.5, "1.5"), ("1.2.3", "1.2.3"), (True, ""), (None, ""), ([1], "")],
)
def test_a_version_may_be_a_number(declared: object, version: str) -> None:
    [definition] = usable_tools(
        [tool("a", _meta={"version": declared})], SETTINGS, NEWEST_WITH_SESSIONS
    ).definitions
    assert definition.version == version


class Hand:
    """A clock that moves when told to."""

    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


async def test_a_bucket_lets_a_burst_go_and_then_one_at_a_time() -> None:
    clock = Hand()
    bucket = Bucket(60, clock, "up")
    for _ in range(6):
        await bucket.take(clock.time + 0.1)
    with pytest.raises(RateLimited) as caught:
        await bucket.take(clock.time + 0.1)
    assert caught.value.retry_after == pytest.approx(1)
    clock.time += 1
    await asyncio.wait_for(bucket.take(clock.time + 0.1), PATIENCE)
