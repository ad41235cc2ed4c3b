"""A credential that an upstream echoes is masked in its results, and nothing around it breaks."""

import json
from base64 import b64encode
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gate.observe.redact import MASK, Mask

TOKEN = 'sk/live+"ü"-0123 456'


def mask(*secrets: str) -> Mask:
    made = Mask()
    made.learn(secrets)
    return made


def masked(value: object, *secrets: str, **how: object) -> object:
    return json.loads(mask(*(secrets or (TOKEN,))).body(json.dumps(value, **how).encode()))


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(
    "written",
    [
        TOKEN,
        quote(TOKEN, safe=""),
        quote(TOKEN, safe="").lower().replace("sk", "sk"),
        quote_plus(TOKEN),
        b64encode(TOKEN.encode()).decode(),
        json.dumps({"token": TOKEN}),
        json.dumps({"token": TOKEN}, ensure_ascii=False),
        json.dumps({"t": TOKEN}).replace("/", "\\/"),
        f"Authorization: Bearer {TOKEN}",
        f"{TOKEN}{TOKEN}",
    ],
)
def test_a_credential_is_masked_however_it_is_written(written, ascii_only):
    found = masked({"a": [written, {written: 1}]}, ensure_ascii=ascii_only)
    shown = json.dumps(found, ensure_ascii=False)
    assert MASK in shown
    assert TOKEN not in shown
    assert "live" not in shown
    assert b64encode(TOKEN.encode()).decode().rstrip("=") not in shown


def test_what_holds_no_credential_is_the_same_object():
    body = b'{"a": "nothing of interest"}'
    assert mask(TOKEN).body(body) is body
    assert mask().body(body) is body


def test_a_short_value_is_not_masked_because_it_would_blot_out_ordinary_text():
    assert masked({"a": "hunter2 hunter2"}, "hunter2") == {"a": "hunter2 hunter2"}


@pytest.mark.parametrize("member", ["data", "blob"])
def test_base64_content_is_never_touched(member):
    token = "abcdefghijklmnop"
    picture = {"type": "image", member: f"AAAA{token}BBBB==", "mimeType": "image/png"}
    found = masked({"content": [picture, {"type": "text", "text": f"see {token}"}]}, token)
    assert found == {"content": [picture, {"type": "text", "text": f"see {MASK}"}]}


def test_a_member_called_data_that_is_text_is_masked():
    token = "abcdefghijklmnop"
    assert masked({"data": token, "blob": f"it is {token}."}, token) == {
        "data": MASK,
        "blob": f"it is {MASK}.",
    }


def test_a_number_that_is_a_credential_leaves_json():
    assert masked({"pin": 123456789012, "n": 5}, "123456789012") == {"pin": MASK, "n": 5}


def test_the_rest_of_an_escape_is_no_beginning_of_a_credential():
    body = b'{"a": "line\\nabcdefghijklmnop"}'
    assert json.loads(mask("nabcdefghijklmnop").body(body)) == {"a": "line\nabcdefghijklmnop"}


def test_content_made_of_credentials_alone_costs_no_more_than_its_length():
    token = b"abcdefghijklmnop"
    blob = b'{"content":[{"type":"image","data":"A' + token * 200_000 + b'"}]}'
    text = b'{"text":"' + token * 200_000 + b'"}'
    assert mask(token.decode()).body(blob) == blob
    assert mask(token.decode()).body(text) == b'{"text":"' + MASK.encode() * 200_000 + b'"}'


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(min_size=12, max_size=20), VALUES, st.booleans())
def test_a_masked_result_is_still_json_without_the_credential(secret, around, ascii_only):
    value = {"a": around, "b": f"x{secret}y", "c": [around, secret]}
    body = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    try:
        found = json.loads(mask(secret).body(body).decode())
    except UnicodeDecodeError:
        return
    assert found["c"][1] == MASK
    assert secret not in found["b"]
