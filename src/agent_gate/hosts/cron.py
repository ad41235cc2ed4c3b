"""The cron host: jobs that agents make, which fire events into the gateway when they are due.

    agent-gate host run agent_gate.hosts.cron:host --gateway wss://gate:8444 --gateway-key KEY
    agent-gate pair tool wss://10.0.0.1:5225 cron --publish 'cron.*,heartbeat.tick'

Jobs are kept in the file that `CRON_DATABASE` names. They belong to a tenant and an isolation key; nobody sees those of
another. `CRON_EVENTS` names the types of event that a job may fire; the gateway has the last word.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from agent_gate.core.call import new_id
from agent_gate.core.tasks import ends_within
from agent_gate.hosts import Host, Refused, current_context
from agent_gate.hosts.kept import open_database
from agent_gate.hosts.schedules import Schedule
from agent_gate.hosts.tools import current_owner, current_tenant
from agent_gate.peers.authorization import covers
from agent_gate.peers.encoding import to_time

host = Host("cron")
SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
  id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, last_at REAL NOT NULL,
  UNIQUE (owner, name));
"""
USUAL_EVENTS = "cron.*,heartbeat.tick"
MOST_JOBS = 1000
MOST_CAUGHT_UP = 100
PUNCTUAL = 60.0
"""What fires within so many seconds was not missed."""
LONGEST_SLEEP = 30.0
"""The clock may be set, or the machine may sleep: it is looked at again at the latest after this."""

JobName = Annotated[str, Meta(min_length=1, max_length=200, description="Its name, used once.")]
When = Annotated[
    str,
    Meta(
        max_length=200,
        description="Five fields of cron (minute hour day month weekday), @hourly, @daily, or @every 10m.",
    ),
]
EventKind = Annotated[str, Meta(max_length=100, description="The type of the event that it fires.")]
Zone = Annotated[str, Meta(max_length=60, description="Time zone of the schedule, such as Europe/Berlin.")]
MissedRuns = Annotated[
    Literal["one", "none", "all"],
    Meta(description="What was missed while the host was down: fire it once, not at all, or each time."),
]


class CronJob(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a job, and for whom it fires."""

    schedule: str
    timezone: str = "UTC"
    event_type: str = "cron.triggered"
    input: dict[str, Any] = {}
    catch_up: Literal["one", "none", "all"] = "one"
    tenant: str = ""
    agent: str = ""
    session: str = ""

    def moments(self, after: float) -> Iterator[float]:
        return Schedule.read(self.schedule, self.timezone).after(after)


def database() -> sqlite3.Connection:
    return open_database(os.environ.get("CRON_DATABASE", "cron.db"), SCHEMA)


def check_event_type(event_type: str) -> None:
    allowed = [one.strip() for one in os.environ.get("CRON_EVENTS", USUAL_EVENTS).split(",")]
    if not any(covers(one, event_type) for one in allowed if one):
        raise Refused(f"A job may fire {', '.join(allowed)} and nothing else", code="FORBIDDEN")


def shown(row: tuple[Any, ...]) -> dict[str, Any]:
    ident, name, body, last_at = row
    job = msgspec.json.decode(body, type=CronJob)
    return {
        "job_id": ident,
        "name": name,
        "schedule": job.schedule,
        "timezone": job.timezone,
        "event_type": job.event_type,
        "input": job.input,
        "catch_up": job.catch_up,
        "next_at": to_time(next(job.moments(max(last_at, time.time())))),
    }


@host.tool("cron.list", idempotent=True, side_effects=False, timeout_ms=10_000)
def list_jobs() -> dict[str, Any]:
    """List the jobs, each with the next moment it fires"""
    with closing(database()) as jobs, jobs:
        found = jobs.execute(
            "SELECT id, name, body, last_at FROM jobs WHERE owner = ? ORDER BY name", (current_owner(),)
        ).fetchall()
    return {"jobs": [shown(row) for row in found]}


@host.tool("cron.create", timeout_ms=10_000)
def create(
    name: JobName,
    schedule: When,
    event_type: EventKind = "cron.triggered",
    input: dict[str, Any] | None = None,  # noqa: A002 the protocol's own word
    timezone: Zone = "UTC",
    catch_up: MissedRuns = "one",
) -> dict[str, Any]:
    """Make a job: whenever its schedule is due, an event with its input is fired into the gateway"""
    check_event_type(event_type)
    Schedule.read(schedule, timezone)
    context, ident = current_context(), new_id()
    job = CronJob(
        schedule=schedule,
        timezone=timezone,
        event_type=event_type,
        input=input or {},
        catch_up=catch_up,
        tenant=current_tenant(),
        agent=context.agent_id,
        session=context.session_id,
    )
    with closing(database()) as jobs, jobs:
        (count,) = jobs.execute("SELECT COUNT(*) FROM jobs WHERE owner = ?", (current_owner(),)).fetchone()
        if count >= MOST_JOBS:
            raise Refused(f"There are {MOST_JOBS} jobs already. Remove some first", code="RATE_LIMITED")
        row = (ident, name, msgspec.json.encode(job).decode(), time.time())
        try:
            jobs.execute(
                "INSERT INTO jobs (id, name, body, last_at, owner) VALUES (?, ?, ?, ?, ?)",
                (*row, current_owner()),
            )
        except sqlite3.IntegrityError:
            raise Refused(f"There is a job named {name}. Remove it first, or choose another name") from None
    crontab.changed()
    return {**shown(row), "operation_id": ident}


@host.tool("cron.remove", idempotent=True, timeout_ms=10_000)
def remove(
    job_id: Annotated[str, Meta(max_length=64, description="The id that create or list gave.")],
) -> dict[str, Any]:
    """Remove a job; it fires no more"""
    with closing(database()) as jobs, jobs:
        count = jobs.execute(
            "DELETE FROM jobs WHERE owner = ? AND id = ?", (current_owner(), job_id)
        ).rowcount
    crontab.changed()
    return {"removed": count, "operation_id": job_id}


@dataclass(frozen=True, slots=True)
class Firing:
    """A job at one of its moments."""

    job_id: str
    name: str
    job: CronJob
    at: float
    missed: int = 0


def due_of(job_id: str, name: str, job: CronJob, last_at: float, now: float) -> tuple[list[Firing], float]:
    """What a job has to fire by now, by its policy, and up to when that is all of it."""
    found = list(islice(takewhile(lambda at: at <= now, job.moments(last_at)), MOST_CAUGHT_UP + 1))
    if not found:
        return [], last_at
    # Far more than anybody would catch up with: the rest of them is missed for good.
    moments, reached = found[:MOST_CAUGHT_UP], found[-1] if len(found) <= MOST_CAUGHT_UP else now
    late = [at for at in moments if now - at > PUNCTUAL]
    punctual = [at for at in moments if now - at <= PUNCTUAL]
    fired = [Firing(job_id, name, job, at) for at in punctual]
    if job.catch_up == "all":
        fired = [*(Firing(job_id, name, job, at, 1) for at in late), *fired]
    elif job.catch_up == "one" and late and not fired:
        fired = [Firing(job_id, name, job, late[-1], len(late))]
    return fired, reached


class Crontab:
    """Fires what is due. A job's moment is done with only after its event is durable; the same moment is told once."""

    def __init__(self, fire: Callable[[Firing], object], now: Callable[[], float] = time.time) -> None:
        self._fire, self._now = fire, now
        self._wake: Callable[[], object] = lambda: None

    def changed(self) -> None:
        """Jobs were made or removed, on whatever thread."""
        self._wake()

    def fire_due(self) -> float:
        """Fire what is due by now; seconds until the next moment."""
        now, soonest = self._now(), LONGEST_SLEEP
        with closing(database()) as jobs:
            for ident, name, body, last_at in jobs.execute(
                "SELECT id, name, body, last_at FROM jobs"
            ).fetchall():
                job = msgspec.json.decode(body, type=CronJob)
                fired, reached = due_of(ident, name, job, last_at, now)
                for firing in fired:
                    self._fire(firing)
                if reached != last_at:
                    jobs.execute("UPDATE jobs SET last_at = ? WHERE id = ?", (reached, ident))
                    jobs.commit()
                soonest = min(soonest, next(job.moments(max(reached, now))) - now)
        return max(0.05, soonest)

    async def run(self) -> None:
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(news.set)
        while True:
            news.clear()
            wait = await asyncio.to_thread(self.fire_due)
            await ends_within(wait, news.wait())


def fire(firing: Firing) -> None:
    job = firing.job
    host.publish(
        job.event_type,
        {
            "job_id": firing.job_id,
            "name": firing.name,
            "scheduled_at": to_time(firing.at),
            "input": job.input,
            "missed": firing.missed,
        },
        tenant=job.tenant,
        agent=job.agent,
        session=job.session,
        key=f"{firing.job_id}@{firing.at:.0f}",
    )


crontab = Crontab(fire)
host.background(crontab.run)
