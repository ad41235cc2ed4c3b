"""The last lines about a source are few, short and told by whom."""

import logging

from agent_gate.observe.lines import LONGEST, MOST_LINES, MOST_SOURCES, SourceLines


def logged(message, **fields):
    return logging.makeLogRecord({"msg": message, "levelname": "ERROR", **fields})


def test_what_is_logged_of_a_source_stands_with_its_reason_beside_what_its_program_printed():
    lines = SourceLines()
    lines.keep("notes", "Traceback: no such table")
    lines.handle(logged("Source is failed", source="notes", reason="it exited with code 1"))
    lines.handle(logged("Gateway started"))
    told = [(line.by, line.text) for line in lines.of("notes")]
    assert told == [
        ("program", "Traceback: no such table"),
        ("error", "Source is failed: it exited with code 1"),
    ]
    assert lines.of("other") == []


def test_a_program_that_prints_without_end_costs_a_bounded_room():
    lines = SourceLines()
    for number in range(3 * MOST_LINES):
        lines.keep("notes", f"{number} " + "x" * 10_000)
    kept = lines.of("notes")
    assert len(kept) == MOST_LINES
    assert kept[-1].text.startswith(f"{3 * MOST_LINES - 1} ")
    assert max(len(line.text) for line in kept) == LONGEST


def test_of_too_many_sources_the_oldest_goes():
    lines = SourceLines()
    for number in range(MOST_SOURCES + 1):
        lines.keep(f"source-{number}", "hello")
    assert lines.of("source-0") == []
    assert lines.of(f"source-{MOST_SOURCES}")
