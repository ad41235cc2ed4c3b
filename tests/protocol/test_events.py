"""Server-Sent Events are the same however their stream is cut, and none is larger than allowed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gate.mcp.errors import RpcError
from agent_gate.mcp.events import Event, EventParser

STREAM = b': ping\n\nid: 7\nretry: 5\ndata: {"a":1}\n\ndata: x\r\ndata: y\r\n\r\nevent: z\rdata:last\r\r\n'


@given(st.lists(st.integers(0, len(STREAM)), max_size=8).map(sorted))
def test_events_are_the_same_however_the_stream_is_cut(cuts: list[int]) -> None:
    parser, found = EventParser(100), []
    for begin, end in zip([0, *cuts], [*cuts, len(STREAM)], strict=True):
        found += parser.feed(STREAM[begin:end])
    assert [event for event in found if event.data] == [
        Event(b'{"a":1}', id=b"7", retry=0.005),
        Event(b"x\ny"),
        Event(b"last", kind=b"z"),
    ]


def test_an_event_without_an_end_is_given_up_at_its_limit() -> None:
    parser = EventParser(100)
    assert [event for _ in range(100) for event in parser.feed(b"x")] == []
    with pytest.raises(RpcError, match="more than 100 bytes"):
        parser.feed(b"x")


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_any_bytes_are_events_or_none(pieces: list[bytes]) -> None:
    parser = EventParser(1000)
    for piece in pieces:
        assert all(isinstance(event, Event) for event in parser.feed(piece))
