"""The cron host: when jobs are due in every zone, what is caught up with, and that a moment is told once."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.hosting import CONTEXT, Gate, serving_host

from agent_gate.hosts.cron import (
    MOST_CAUGHT_UP,
    CronJob,
    Crontab,
    Firing,
    check_event_type,
    crontab,
    due_of,
    host,
)
from agent_gate.hosts.schedules import Schedule
from agent_gate.hosts.tools import Refused

EXAMPLE = {
    "version": "v1",
    "call_id": "01JXYZ...",
    "tool_name": "cron.create",
    "tenant_id": "home",
    "idempotency_key": "cron-create-home-heartbeat-1",
    "args": {
        "name": "heartbeat",
        "schedule": "*/5 * * * *",
        "event_type": "heartbeat.tick",
        "input": {},
    },
    "timeout_ms": 10000,
    "context": {
        "agent_id": "assistant",
        "session_id": "ses_123",
        "platform": "whatsapp",
        "channel_id": "+15551234567",
        "actor_id": "owner",
        "trace_id": "01JXYZ...",
        "request_origin": "agent_turn",
    },
}


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def due(schedule: str, zone: str, after: str, count: int = 3) -> list[str]:
    found = islice(Schedule.read(schedule, zone).after(at(after)), count)
    return [datetime.fromtimestamp(one, UTC).strftime("%m-%d %H:%M") for one in found]


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "expected"),
    [
        ("*/20 8-9 * * mon", "UTC", "2026-11-14T00:00", ["11-16 08:00", "11-16 08:20", "11-16 08:40"]),
        ("30 9 * * *", "Europe/Berlin", "2026-11-14T00:00", ["11-14 08:30", "11-15 08:30", "11-16 08:30"]),
        ("@daily", "Asia/Kolkata", "2026-11-14T00:00", ["11-14 18:30", "11-15 18:30", "11-16 18:30"]),
        ("0 0 29 2 *", "UTC", "2026-11-14T00:00", ["02-29 00:00", "02-29 00:00", "02-29 00:00"]),
        # Berlin, 29 March 2026: 02:00 becomes 03:00. What falls between runs right after, and once.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00", ["03-28 01:30", "03-29 01:00", "03-30 00:30"]),
        ("0 * * * *", "Europe/Berlin", "2026-03-29T00:00", ["03-29 01:00", "03-29 02:00", "03-29 03:00"]),
        # Berlin, 25 October 2026: 03:00 becomes 02:00. 02:30 comes twice and fires once.
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T00:00", ["10-24 00:30", "10-25 00:30", "10-26 01:30"]),
        ("*/30 * * * *", "Europe/Berlin", "2026-10-25T00:00", ["10-25 00:30", "10-25 01:00", "10-25 01:30"]),
        ("0 12 L * *", "UTC", "2026-11-14T00:00", ["11-30 12:00", "12-31 12:00", "01-31 12:00"]),
        ("0 12 * * fri#2", "UTC", "2026-11-14T00:00", ["12-11 12:00", "01-08 12:00", "02-12 12:00"]),
        ("0 0 1 feb *", "UTC", "2026-11-14T00:00", ["02-01 00:00", "02-01 00:00", "02-01 00:00"]),
        ("@hourly", "UTC", "2026-11-14T00:30", ["11-14 01:00", "11-14 02:00", "11-14 03:00"]),
        ("@weekly", "UTC", "2026-11-14T00:00", ["11-15 00:00", "11-22 00:00", "11-29 00:00"]),
        ("@monthly", "UTC", "2026-11-14T00:00", ["12-01 00:00", "01-01 00:00", "02-01 00:00"]),
        ("@yearly", "UTC", "2026-11-14T00:00", ["01-01 00:00", "01-01 00:00", "01-01 00:00"]),
        ("@every 1h30m", "UTC", "2026-11-14T00:00", ["11-14 01:30", "11-14 03:00", "11-14 04:30"]),
    ],
)
def test_a_schedule_is_due_when_people_expect_it(
    schedule: str, zone: str, after: str, expected: list[str]
) -> None:
    assert due(schedule, zone, after) == expected


@pytest.mark.parametrize(
    ("schedule", "zone"),
    [
        ("", "UTC"),
        ("* * * *", "UTC"),
        ("* * * * * *", "UTC"),
        ("61 * * * *", "UTC"),
        ("0 0 31 2 *", "UTC"),
        ("@every 0s", "UTC"),
        ("@every", "UTC"),
        ("@every 9999d", "UTC"),
        ("@sometimes", "UTC"),
        ("* * * * *", "Mars/Olympus"),
        ("* * * * *", "../../etc/passwd"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_with_a_reason(schedule: str, zone: str) -> None:
    with pytest.raises(Refused):
        Schedule.read(schedule, zone)


@given(st.text(max_size=30), st.text(max_size=12))
def test_whatever_somebody_writes_is_a_schedule_or_refused(schedule: str, zone: str) -> None:
    try:
        found = Schedule.read(schedule, zone)
    except Refused:
        return
    first, second = islice(found.after(0.0), 2)
    assert first < second


def fired(catch_up: Any, down_until: str, schedule: str = "0 * * * *") -> list[tuple[str, int]]:
    job = CronJob(schedule=schedule, catch_up=catch_up)
    found, reached = due_of("id", "n", job, at("2026-11-14T00:00"), at(down_until))
    again, _ = due_of("id", "n", job, reached, at(down_until))
    assert again == []
    return [(datetime.fromtimestamp(one.at, UTC).strftime("%H:%M"), one.missed) for one in found]


def test_what_was_missed_is_caught_up_with_as_the_job_says() -> None:
    assert fired("one", "2026-11-14T03:30") == [("03:00", 3)]
    assert fired("none", "2026-11-14T03:30") == []
    assert fired("all", "2026-11-14T03:30") == [("01:00", 1), ("02:00", 1), ("03:00", 1)]


def test_what_is_due_now_is_not_missed() -> None:
    assert fired("none", "2026-11-14T03:00") == [("03:00", 0)]
    assert fired("one", "2026-11-14T03:00") == [("03:00", 0)]
    assert fired("one", "2026-11-14T00:59") == []


def test_what_is_less_than_a_minute_late_was_not_missed() -> None:
    assert fired("none", "2026-11-14T01:00:59") == [("01:00", 0)]
    assert fired("none", "2026-11-14T01:01:01") == []


def test_the_variable_says_which_events_a_job_may_fire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CRON_EVENTS", raising=False)
    check_event_type("heartbeat.tick")
    monkeypatch.setenv("CRON_EVENTS", "agent.turn, cron.*")
    check_event_type("agent.turn")
    with pytest.raises(Refused, match=r"agent\.turn, cron\.\*"):
        check_event_type("heartbeat.tick")


def test_a_long_time_away_fires_a_bounded_number() -> None:
    assert len(fired("all", "2026-12-24T00:00", "* * * * *")) == MOST_CAUGHT_UP
    assert len(fired("one", "2026-12-24T00:00", "* * * * *")) == 1


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CRON_DATABASE", str(tmp_path / "cron.db"))
    yield
    crontab._wake = lambda: None


async def test_the_documents_example_works_as_it_is_written(tmp_path: Path, jobs: None) -> None:
    gate = Gate()
    async with serving_host(host, tmp_path / "host", gate) as server:
        assert server.folder is not None
        await gate.pair(server.server.port, server.folder.identity.fingerprint)
        reply = await gate.ask(server.server.port, "POST", "/v1/tools/call", EXAMPLE)
        assert b'"status":"ok"' in reply.body, reply.body
        again = await gate.ask(server.server.port, "POST", "/v1/tools/call", EXAMPLE)
        assert b'"status":"ok"' in again.body
        listed = await gate.call(server.server.port, "cron.list", {})
        (job,) = listed["result"]["jobs"]
        assert (job["name"], job["event_type"], job["schedule"]) == (
            "heartbeat",
            "heartbeat.tick",
            "*/5 * * * *",
        )
        twice = await gate.call(
            server.server.port, "cron.create", {"name": "heartbeat", "schedule": "@daily"}
        )
        assert twice["error"]["code"] == "INVALID_ARGS"
        other = await gate.call(
            server.server.port, "cron.create", {"name": "x", "schedule": "@daily", "event_type": "agent.turn"}
        )
        assert other["error"]["code"] == "FORBIDDEN"
        elsewhere = {"agent_id": "a", "session_id": "s", "isolation_key": "anna"}
        hidden = await gate.call(server.server.port, "cron.list", {}, context=elsewhere)
        assert hidden["result"]["jobs"] == []
        gone = await gate.call(server.server.port, "cron.remove", {"job_id": job["job_id"]})
        assert gone["result"]["removed"] == 1


async def test_a_job_fires_across_restarts_and_each_moment_once(tmp_path: Path, jobs: None) -> None:
    gate = Gate()
    async with serving_host(host, tmp_path / "host", gate) as server:
        assert server.folder is not None
        await gate.pair(server.server.port, server.folder.identity.fingerprint)
        args = {"name": "n", "schedule": "@every 1h", "catch_up": "all"}
        made = await gate.call(server.server.port, "cron.create", args)
        assert made["status"] == "ok"
    seen: list[Firing] = []
    began = datetime.now(UTC).timestamp()
    clock = [began]
    assert 0 < Crontab(seen.append, lambda: clock[0]).fire_due() <= 30
    assert seen == []
    clock[0] = began + 3 * 3600 + 5
    Crontab(seen.append, lambda: clock[0]).fire_due()
    Crontab(seen.append, lambda: clock[0]).fire_due()
    assert [one.missed for one in seen] == [1, 1, 0]
    assert len({one.at for one in seen}) == 3


async def test_a_crash_before_a_moment_is_noted_tells_it_again_under_the_same_key(
    tmp_path: Path, jobs: None
) -> None:
    gate = Gate()
    async with serving_host(host, tmp_path / "host", gate) as server:
        assert server.folder is not None
        await gate.pair(server.server.port, server.folder.identity.fingerprint)
        await gate.call(server.server.port, "cron.create", {"name": "n", "schedule": "@every 1h"})
        later = datetime.now(UTC).timestamp() + 3700
        fire = crontab._fire

        def fire_and_die(firing: Firing) -> None:
            fire(firing)
            raise SystemExit

        with pytest.raises(SystemExit):
            Crontab(fire_and_die, lambda: later).fire_due()
        Crontab(fire, lambda: later).fire_due()
        keys = [body.partition(b'"idempotency_key":"')[2][:40] for _seq, body in server.outbox.waiting()]
        assert len(keys) == 2
        assert len(set(keys)) == 1
        event = msgspec.json.decode(server.outbox.waiting()[0][1])
        assert set(event["payload"]) == {"job_id", "name", "scheduled_at", "input", "missed"}
        assert (event["event_type"], event["routing"]["agent_id"], event["routing"]["session_id"]) == (
            "cron.triggered",
            CONTEXT["agent_id"],
            CONTEXT["session_id"],
        )
