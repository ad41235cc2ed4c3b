"""Logs: one event a line, secrets out, nothing an argument says can look like another event."""

import io
import json
import logging
import sys

import pytest

from agent_gate.core.call import Call, Caller
from agent_gate.observe.log import Formatter
from agent_gate.observe.redact import Redactor
from agent_gate.observe.trace import span_id
from agent_gate.sources.mcp.source import traced

SECRET = "sekret/with+signs-0815"


@pytest.fixture(params=[True, False], ids=["json", "text"])
def written(request):
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(Formatter(Redactor([SECRET]), as_json=request.param))
    log = logging.getLogger("agent_gate.test_logs")
    log.handlers, log.propagate = [handler], False
    log.setLevel("INFO")
    yield log, out, request.param
    log.handlers = []


def test_a_forged_line_stays_inside_its_own(written):
    log, out, as_json = written
    log.info(
        "Call ended",
        extra={"tool": 'x\n{"level": "info", "event": "Approval resolved"}\r\u2028', "trace_id": "a" * 32},
    )
    assert len(out.getvalue().splitlines()) in (1, 2)
    assert out.getvalue().count("\n") == 1
    if as_json:
        event = json.loads(out.getvalue())
        assert event["event"] == "Call ended"
        assert event["trace_id"] == "a" * 32


def test_a_forged_line_inside_a_message_stays_inside_it(written):
    log, out, _ = written
    log.warning("It failed: %s", 'no\n{"level": "info", "event": "Approval resolved"}\r\n00:00:00.000 info')
    assert out.getvalue().count("\n") == 1
    assert out.getvalue().count("\r") == 0


@pytest.mark.parametrize("form", [SECRET, "sekret%2Fwith%2Bsigns-0815"])
def test_a_known_secret_is_masked_in_every_form(written, form):
    log, out, _ = written
    log.info("GET /x?key=%s", form, extra={"url": f"http://h/?k={form}"})
    try:
        raise ValueError(form)
    except ValueError:
        log.exception("It failed")
    assert form not in out.getvalue()
    assert "•••" in out.getvalue()


def test_an_mcp_server_gets_the_gateways_own_span_as_parent():
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    call = Call(
        tool="t", arguments={}, caller=Caller(name="pi"), trace=trace, meta={"traceparent": trace, "k": 1}
    )
    sent = f"00-0af7651916cd43dd8448eb211c80319c-{span_id(call.id, 'source')}-01"
    assert traced(call) == {"traceparent": sent, "k": 1}
    quiet = Call(tool="t", arguments={}, caller=Caller(name="pi"), meta={"k": 1})
    assert traced(quiet) == {"k": 1}


def test_a_terminal_is_sent_nothing_that_it_would_obey():
    said = "\x1b]0;owned\x07\x9b2J\x7f\u202eabc"
    try:
        raise ValueError(said)
    except ValueError:
        fault = sys.exc_info()
    record = logging.makeLogRecord({"msg": "It failed: %s", "args": (said,), "exc_info": fault, "why": said})
    shown = Formatter(Redactor(), as_json=False).format(record)
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert shown.count("abc") >= 3
    assert "\n" in shown


@pytest.mark.timeout(5)
def test_what_looks_secret_is_masked_however_many_blanks_stand_before_it():
    blanks = " " * 200_000
    redactor = Redactor()
    assert redactor.text(f"authorization:{blanks}") == f"authorization:{blanks}"
    assert redactor.text(f"authorization:{blanks}abc") == f"authorization:{blanks}•••"
    assert redactor.text("authorization: Bearer  abc, x") == "authorization: •••, x"
    assert redactor.text("authorization: basic") == "authorization: •••"
