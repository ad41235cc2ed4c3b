import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gate.client.bridge import Heard
from agent_gate.client.exchange import Address
from agent_gate.client.messages import HostMessage, mirrors_of, read, repeated, routing, with_key
from agent_gate.errors import ConfigError
from agent_gate.mcp.headers import wrap
from agent_gate.mcp.names import META_KEY
from agent_gate.net.tls.trust import plain_fingerprint

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
PARAMS = st.fixed_dictionaries(
    {"name": st.text(max_size=5)},
    optional={"arguments": JSON, "_meta": st.dictionaries(st.text(max_size=5), JSON, max_size=3)},
)


@given(PARAMS, st.sampled_from([None, 1]), st.booleans())
def test_a_key_is_put_in_and_nothing_else_changes(params, indent, last):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    whole = {**message, "params": params} if last else {"params": params, **message}
    raw = json.dumps(whole, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    keyed = with_key(HostMessage(raw, whole), "k1")
    expected = {**whole, "params": {**params, "_meta": {**params.get("_meta", {}), META_KEY: "k1"}}}
    assert json.loads(keyed.decode("utf-8", "surrogatepass")) == expected
    rest = keyed.replace(b'"agent-gate/idempotency-key":"k1"', b"", 1)
    assert len(rest) - len(raw) in (0, 1, len(b'"_meta":{}'), len(b'"_meta":{},'))


def test_numbers_keep_their_spelling():
    raw = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"x":1.50,"y":1E5,"z":12345678901234567890}}}'
    keyed = with_key(read(raw), "k")
    assert b'{"x":1.50,"y":1E5,"z":12345678901234567890}' in keyed


def test_a_host_that_has_its_own_key_keeps_it():
    raw = b'{"id":1,"method":"tools/call","params":{"_meta":{"agent-gate/idempotency-key":"mine"}}}'
    assert with_key(read(raw), "k") == raw


@pytest.mark.parametrize(
    "raw", [b'{"id":1,"method":"x"}', b'{"id":1,"method":"x","params":[]}', b'{"id":1,"params":{"_meta":1}}']
)
def test_a_message_without_a_place_for_the_key_stays_as_it_is(raw):
    assert with_key(read(raw), "k") == raw


@pytest.mark.parametrize("line", [b"nonsense", b"[1]", b'"x"', b"\xff"])
def test_what_is_no_message_is_refused(line):
    with pytest.raises(ValueError):
        read(line)


def test_a_modern_request_repeats_its_body_in_headers():
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    body = {"id": 1, "method": "tools/call", "params": {"name": "größe", "_meta": meta}}
    assert routing(HostMessage(b"", body)) == {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "=?base64?Z3LDtsOfZQ==?=",
    }


@pytest.mark.parametrize(
    ("text", "plain"), [("echo", True), ("a b", True), (" a", False), ("ü", False), ("a\r\nX: y", False), ("", True), ("=?base64?YQ==?=", False)]
)  # fmt: skip
def test_only_plain_values_stand_in_a_header_as_they_are(text, plain):
    assert (wrap(text) == text) is plain


def test_annotated_arguments_become_headers():
    region = {"type": "string", "x-mcp-header": "Region"}
    schema = {"properties": {"place": {"type": "object", "properties": {"region": region}}}}
    known = mirrors_of([{"name": "t", "inputSchema": schema}, "odd", {"name": 1}])
    call = {"params": {"name": "t", "arguments": {"place": {"region": "eu"}}}}
    assert repeated(HostMessage(b"", call), known) == {"Mcp-Param-Region": "eu"}
    assert repeated(HostMessage(b"", {"params": {"name": "t"}}), known) == {}


@given(st.data())
def test_events_are_the_same_however_the_stream_is_cut(data):
    stream = b': ping\n\nid: 7\ndata: {"a":1}\n\ndata: x\r\ndata: y\r\n\r\nevent: z\ndata:last\n\n'
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    events = Heard()
    found = []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += events.feed(stream[begin:end])
    assert found == [b'{"a":1}', b"x\ny", b"last"]
    assert events.last == "7"


@pytest.mark.parametrize(
    ("url", "origin", "path"),
    [
        ("http://127.0.0.1:8443", "http://127.0.0.1:8443", "/mcp"),
        ("https://gate/", "https://gate", "/mcp"),
        ("wss://gate:8443/mcp/proxy", "https://gate:8443", "/mcp/proxy"),
        ("http://[::1]:80/mcp", "http://[::1]", "/mcp"),
    ],
)
def test_an_address_is_completed(url, origin, path):
    address = Address.parse(url)
    assert (address.origin, address.path) == (origin, path)


@pytest.mark.parametrize(
    "url", ["gate:8443", "ftp://x", "http://", "http://u:p@x", "http://x/?a=1", "http://x/ü"]
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(ConfigError):
        Address.parse(url)


def test_fingerprints_are_read_in_every_spelling():
    digits = "ab" * 32
    spelled = ":".join(["AB"] * 32)
    assert plain_fingerprint(f"sha256:{digits}") == plain_fingerprint(spelled) == digits
    with pytest.raises(ConfigError):
        plain_fingerprint("ab")


def test_the_bridge_starts_without_anything_heavy():
    heavy = ("msgspec", "uvloop", "yaml", "sqlite3", "cryptography", "agent_gate.calls")
    code = f"import sys, agent_gate.client.bridge; print([n for n in {heavy} if n in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
