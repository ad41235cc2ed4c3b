"""Servers as child processes: well behaved ones, and a zoo of those that are not."""

import asyncio
import errno
import json
import logging
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil
import pytest
from tests.sources.mcp.upstreams import HERE, Bench, Conversation, Memory, bench, connected, zoo
from tests.waiting import until

from agent_gate.config.servers.settings import ServerAuth
from agent_gate.core.traits import Traits
from agent_gate.errors import CallTimeout, DependencyUnavailable, OutcomeUnknown
from agent_gate.sources.mcp.lists import watcher
from agent_gate.sources.mcp.process import child
from agent_gate.sources.mcp.sessions import meeting
from agent_gate.sources.mcp.wire.stdio import StdioLink
from agent_gate.sources.state import ConnectionGone


def link_of(made: Bench) -> StdioLink:
    link = made.source.connections.main.link
    assert isinstance(link, StdioLink)
    return link


def last_words(made: Bench) -> str:
    return link_of(made).child.tail.text()


async def test_a_child_sees_only_its_declared_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_SECRET", "do not tell")
    auth = ServerAuth(type="api-key", env="LAB_KEY", token="k-1")
    async with connected(**zoo(), env={"MINE": "yes"}, auth=auth) as made:
        seen = json.loads(await made.text("env"))
    inherited = {"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}
    assert set(seen) - inherited - {"LC_CTYPE"} == {"MINE", "LAB_KEY"}
    assert seen["LAB_KEY"] == "k-1"


async def test_many_calls_share_one_child_and_each_gets_its_own_answer() -> None:
    async with connected(**zoo()) as made:
        wanted = [f"n{number}" for number in range(200)]
        got = await asyncio.gather(*(made.text("echo", {"text": words}) for words in wanted))
        assert got == wanted
        assert link_of(made).pending == {}


async def test_a_call_that_finds_the_input_closed_may_wait_for_the_next_child() -> None:
    async with connected(**zoo()) as made:
        link_of(made).child.stdin.close()
        with pytest.raises(ConnectionGone, match="its input is closed"):
            await made.text("echo", {"text": "nothing was sent"})


async def test_noise_on_the_output_is_counted_skipped_and_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "agent_gate.sources.mcp")
    async with connected(**zoo("noise")) as made:
        assert await made.text("echo", {"text": "still here"}) == "still here"
        assert link_of(made).noise == 4
        key = made.source.key
    [told] = [vars(line) for line in caplog.records if "was skipped" in line.getMessage()]
    assert (told["source"], told["lines"]) == (key, 1)
    assert told["last"]


async def test_replies_with_foreign_or_repeated_ids_reach_nobody() -> None:
    async with connected(**zoo()) as made:
        assert await made.text("wrong-id") == "yours"
        assert await made.text("twice") == "first"
        assert await made.text("echo", {"text": "next"}) == "next"


async def test_invalid_utf8_and_endless_nesting_are_no_results() -> None:
    async with connected(**zoo()) as made:
        with pytest.raises(OutcomeUnknown, match="utf-8"):
            await made.call("bad-utf8")
        for order in "", "result-first":
            with pytest.raises(OutcomeUnknown, match="cannot be read") as caught:
                await made.call("deep", {"order": order})
            assert caught.value.came.startswith(b'{"jsonrpc":"2.0"')
        assert await made.text("echo", {"text": "fine"}) == "fine"


async def test_a_line_without_end_is_cut_off_in_bounded_memory() -> None:
    async with connected(**zoo()) as made:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(OutcomeUnknown, match="a line of more than"):
            await made.call("big-line", {"mib": 1024})
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 192 * 1024
        with pytest.raises(DependencyUnavailable, match="a line of more than"):
            await made.source.watch()


async def test_a_storm_of_change_notices_has_a_budget_per_minute_and_a_visible_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watcher, "SETTLE_SECONDS", 0.0)

    async with connected(**zoo()) as made:
        lists: list[float] = []
        refresh = made.source.watcher.refresh

        async def counted() -> bool:
            lists.append(0.0)
            return await refresh()

        made.source.watcher.refresh = counted
        watching = asyncio.create_task(made.source.watch())
        while not made.source.unwell:
            await made.text("flood", {"count": 10})
        assert "20 times a minute that its lists changed" in made.source.unwell
        assert len(lists) == watcher.MOST_LISTS
        assert await made.text("echo", {"text": "still here"}) == "still here"
        watching.cancel()


async def test_a_flood_of_notices_costs_a_handful_of_lists() -> None:
    async with connected(**zoo()) as made:
        watching = asyncio.create_task(made.source.watch())
        start = time.monotonic()
        for _ in range(5):
            assert await made.text("flood", {"count": 2_000}) == "flooded"
        seconds = time.monotonic() - start
        await hang_and_give_up(made)
        await until(lambda: "listed" in last_words(made))
        listed = int(last_words(made).rpartition("listed ")[2])
        assert listed <= 3 + 2 * seconds
        assert made.announced == []
        watching.cancel()


async def hang_and_give_up(made: Bench) -> None:
    with pytest.raises(CallTimeout):
        await made.call("hang", seconds=0.1)


async def test_a_call_past_its_deadline_is_cancelled_upstream() -> None:
    async with connected(**zoo()) as made:
        await hang_and_give_up(made)
        assert await until(lambda: "cancelled True" in last_words(made))
        assert await made.text("echo", {"text": "next"}) == "next"


async def test_a_cancelled_task_passes_the_cancel_on() -> None:
    async with connected(**zoo()) as made:
        running = asyncio.create_task(made.call("hang"))
        await until(lambda: link_of(made).pending)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        assert await until(lambda: "cancelled True" in last_words(made))


async def test_a_crash_during_a_call_leaves_its_outcome_unknown_and_ends_the_watch() -> None:
    async with connected(**zoo()) as made:
        watching = asyncio.create_task(made.source.watch())
        with pytest.raises(OutcomeUnknown) as caught:
            await made.call("crash")
        assert caught.value.message.endswith(": it exited with code 9. Check whether it took effect")
        with pytest.raises(DependencyUnavailable, match="exited with code 9"):
            await watching
        with pytest.raises(DependencyUnavailable, match="not available"):
            await made.call("echo")
        await made.source.connect()
        assert await made.text("echo", {"text": "again"}) == "again"


async def test_a_server_that_exits_at_once_is_known_by_its_last_words() -> None:
    async with bench(**zoo("exits")) as made:
        with pytest.raises(DependencyUnavailable, match="cannot find my configuration") as caught:
            await made.source.connect()
        assert "exited with code 3" in caught.value.message


async def test_a_server_that_no_longer_answers_ends_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(watcher, "CHECK_SECONDS", 0.3)

    async with connected(**zoo()) as made:
        watching = asyncio.create_task(made.source.watch())
        await until(lambda: next(link_of(made).numbers) > 6)
        assert not watching.done()
        os.kill(server_of(made), signal.SIGSTOP)
        with pytest.raises(DependencyUnavailable, match="no longer answers"):
            await watching


async def test_a_program_that_was_installed_meanwhile_is_found_at_the_next_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    settings = zoo()

    async with bench(command="late-program-of-the-test", args=settings["args"]) as made:
        with pytest.raises(DependencyUnavailable, match="not found on PATH"):
            await made.source.connect()
        (tmp_path / "late-program-of-the-test").symlink_to(settings["command"])
        assert await made.source.connect()


async def test_a_missing_program_is_the_sources_reason_not_a_crash() -> None:
    async with bench(command="no-such-program-here") as made:
        with pytest.raises(DependencyUnavailable, match="not found on PATH"):
            await made.source.connect()


async def test_a_server_silent_to_discovery_is_probed_once_and_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = Memory()
    monkeypatch.setattr(meeting, "PROBE_SECONDS", 0.5)
    async with connected(memory, **zoo("silent", "old")) as made:
        assert made.source.connections.main.welcome.revision.name == "2024-11-05"
    monkeypatch.setattr(meeting, "PROBE_SECONDS", 3_600)
    async with connected(memory, **zoo("silent", "old")) as made:
        assert await made.text("echo", {"text": "hi"}) == "hi"


async def test_a_server_that_dies_of_discovery_is_started_again_without_it() -> None:
    async with connected(**zoo("dies-on-discover")) as made:
        assert await made.text("echo", {"text": "hi"}) == "hi"


async def test_an_unknown_revision_is_refused_with_its_name() -> None:
    async with bench(**zoo("future")) as made:
        with pytest.raises(DependencyUnavailable, match="2099-01-01"):
            await made.source.connect()


async def test_a_question_on_a_shared_child_goes_to_the_only_call_in_flight() -> None:
    async with connected(**zoo()) as made:
        assert "Ada" in await made.text("ask", conversation=Conversation())
        held = asyncio.create_task(made.call("hang", conversation=Conversation()))
        await until(lambda: link_of(made).pending)
        other = Conversation()
        assert "belongs to no single call" in await made.text("ask", conversation=other)
        assert other.asked == []
        held.cancel()


async def test_log_messages_of_a_shared_child_are_dropped_while_several_calls_run_on_it() -> None:
    async with connected(**zoo()) as made:
        alone, other, third = Conversation(), Conversation(), Conversation()
        await made.call("log", conversation=alone)
        await until(lambda: [params["data"] for _, params in alone.notes] == ["careful"])
        held = asyncio.create_task(made.call("hang", conversation=other))
        await until(lambda: link_of(made).pending)
        assert await made.text("log", conversation=third) == "logged"
        assert (other.notes, third.notes) == ([], [])
        held.cancel()


class Gone:
    """A sender that hung up."""

    connected = False


async def test_a_call_whose_caller_is_gone_does_not_cost_others_their_questions() -> None:
    async with connected(**zoo()) as made:
        left = asyncio.create_task(made.call("held", conversation=Conversation(), sender=Gone()))
        await until(lambda: link_of(made).pending)
        other = Conversation()
        asking = asyncio.create_task(made.text("ask", conversation=other))
        await until(lambda: link_of(made).questions)
        assert other.asked == []
        await made.call("release")
        assert "Ada" in await asking
        assert len(other.asked) == 1
        await left


async def test_a_question_that_may_be_of_a_call_given_up_is_put_to_nobody_else() -> None:
    async with connected(**zoo()) as made:
        left = asyncio.create_task(made.call("held", conversation=Conversation(), sender=Gone()))
        await until(lambda: link_of(made).pending)
        other = Conversation()
        asking = asyncio.create_task(made.text("ask", conversation=other))
        await until(lambda: link_of(made).questions)
        left.cancel()
        assert "belongs to no single call" in await asking
        assert other.asked == []


async def test_isolation_gives_each_caller_its_own_child() -> None:
    async with connected(**zoo(), isolation="caller") as made:
        first, second = await made.text("pid", caller="a"), await made.text("pid", caller="b")
        assert first != second
        assert await made.text("pid", caller="a") == first
        children = made.source.connections.others.values()
        pids = [task.result().link.child.process.pid for task in children] + [int(first), int(second)]
    assert not any(psutil.pid_exists(pid) for pid in pids)


async def test_broken_entries_are_left_out_and_their_siblings_stay() -> None:
    async with connected(**zoo("broken-tools")) as made:
        names = {definition.name for definition in made.source.tools.definitions}
        assert "echo" in names
        reasons = {left.name: left.reason for left in made.source.tools.excluded}
        assert reasons.keys() == {"no-schema", "(unnamed)", "badname"}


@pytest.mark.parametrize("mode", ["many", "endless"])
async def test_a_list_without_measure_is_refused(mode: str) -> None:
    async with bench(**zoo(mode)) as made:
        with pytest.raises(DependencyUnavailable, match="more"):
            await made.source.connect()


async def test_tools_are_filtered_and_renamed_as_the_settings_say() -> None:
    settings = {"include": ("e*", "pid"), "exclude": ("env",), "rename": {"echo": "say"}, "timeout": 7.0}
    async with connected(**zoo(), **settings) as made:
        assert {d.name: d.timeout for d in made.source.tools.definitions} == {"say": 7.0, "pid": 7.0}
        assert {d.traits for d in made.source.tools.definitions} == {Traits()}
        assert await made.text("say", {"text": "hi"}) == "hi"


async def test_a_result_is_passed_on_byte_for_byte() -> None:
    async with connected(**zoo()) as made:
        result = await made.call("echo", {"text": "ü \u2028"})
        assert result.kind == "mcp"
        assert result.body == b'{"content": [{"type": "text", "text": "\\u00fc \\u2028"}]}'
        assert msgspec.json.decode(result.body)["content"][0]["text"] == "ü \u2028"


def server_of(made: Bench) -> int:
    """The process id of the server itself, which its guard is the parent of."""
    [server] = [
        process.pid
        for process in psutil.Process(link_of(made).child.process.pid).children()
        if "zoo.py" in " ".join(process.cmdline()) and os.getpgid(process.pid) == process.pid
    ]
    return server


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # also where it ends between the two looks
        return False


@pytest.mark.parametrize("leaves", ["forks", "daemon"])
async def test_a_stubborn_child_and_its_grandchild_are_gone_after_closing(leaves: str) -> None:
    async with connected(**zoo("stubborn", leaves)) as made:
        await until(lambda: "grandchild" in last_words(made))
        grandchild = int(last_words(made).split("grandchild ")[1].split()[0])
        child = server_of(made)
        assert alive(child)
        assert alive(grandchild)
    await until(lambda: not alive(child) and not alive(grandchild))


@pytest.mark.parametrize("leaves", ["forks", "daemon"])
async def test_a_grandchild_does_not_outlive_a_child_that_ends_by_itself(leaves: str) -> None:
    async with connected(**zoo(leaves)) as made:
        await until(lambda: "grandchild" in last_words(made))
        grandchild = int(last_words(made).split("grandchild ")[1].split()[0])
        with pytest.raises(OutcomeUnknown, match="exited with code 9"):
            await made.call("crash")
        await until(lambda: not alive(grandchild))


async def test_a_server_that_is_killed_is_said_to_be() -> None:
    async with connected(**zoo()) as made:
        os.kill(server_of(made), signal.SIGKILL)
        with pytest.raises(DependencyUnavailable, match="exited with code 137"):
            await made.source.watch()


async def test_the_guard_of_a_server_takes_a_few_megabytes() -> None:
    async with connected(**zoo()) as made:
        guard = psutil.Process(link_of(made).child.process.pid)
        assert guard.children()
        assert guard.memory_full_info().uss < 6 << 20


async def test_what_a_server_does_to_its_own_group_leaves_its_guard_alone() -> None:
    async with connected(**zoo("daemon")) as made:
        await until(lambda: "grandchild" in last_words(made))
        grandchild = int(last_words(made).split("grandchild ")[1].split()[0])
        os.killpg(server_of(made), signal.SIGKILL)
        assert await until(lambda: not alive(grandchild))


GATEWAY = """
import asyncio, sys
sys.path.insert(0, {here!r})
from tests.sources.mcp.upstreams import connected, zoo
from tests.waiting import until
async def main():
    async with connected(**zoo("stubborn", {leaves!r})) as made:
        child = made.source.connections.main.link.child
        await until(lambda: "grandchild" in child.tail.text())
        print(await made.text("pid"), child.tail.text().split()[1], child.process.pid, flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.parametrize("leaves", ["forks", "daemon"])
async def test_a_killed_gateway_leaves_neither_children_nor_grandchildren(leaves: str) -> None:
    script = GATEWAY.format(here=str(HERE.parents[2]), leaves=leaves)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as gateway:
        try:
            pids = [int(word) for word in gateway.stdout.readline().split()]
            assert len(pids) == 3
            assert all(map(alive, pids))
        finally:
            gateway.kill()
    await until(lambda: not any(map(alive, pids)))


async def test_many_crashes_leave_no_process_and_no_descriptor() -> None:
    cycles = int(os.environ.get("AGENT_GATE_CRASH_CYCLES", "30"))
    start = psutil.Process().children(recursive=True)
    memory = Memory()
    async with bench(memory, **zoo("old", "forks")) as made:
        await made.source.connect()
        before = psutil.Process().num_fds()
        for cycle in range(cycles):
            with pytest.raises(OutcomeUnknown):
                await made.call("crash")
            await made.source.connect()
            if cycle % 3 == 0:
                os.kill(server_of(made), 9)
                with pytest.raises(DependencyUnavailable):
                    await made.source.watch()
                await made.source.connect()
        assert psutil.Process().num_fds() - before <= 2
    assert psutil.Process().num_fds() < before
    assert set(psutil.Process().children(recursive=True)) <= set(start)
    # Other workers run servers like these beside us; what they leave for a moment is not ours.
    await until(lambda: not grandchildren_left())


def grandchildren_left() -> list[int]:
    found = psutil.process_iter(["cmdline", "status"])
    return [
        process.pid
        for process in found
        if "time.sleep(600)" in " ".join(process.info["cmdline"] or [])
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


async def test_a_server_that_cannot_list_again_keeps_its_calls_and_is_asked_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watcher, "AGAIN_SECONDS", 0.01)

    said = "its changed lists cannot be read: up cannot be used: not now"

    async with connected(**zoo("busy-for-a-while")) as made:
        watching = asyncio.create_task(made.source.watch())
        running = asyncio.create_task(made.text("hang"))
        await made.call("flood", {"count": 1})
        await until(lambda: said in caplog.text)
        await until(lambda: made.source.unwell is None)
        assert caplog.text.count(said) == 1
        assert not watching.done()
        assert not running.done()
        for task in watching, running:
            task.cancel()
        await asyncio.gather(watching, running, return_exceptions=True)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the exit is heard of in another way")
async def test_a_child_that_starts_with_the_last_descriptors_leaves_neither_a_process_nor_a_descriptor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[int] = []

    def no_descriptor_left(pid: int) -> int:
        started.append(pid)
        raise OSError(errno.EMFILE, "Too many open files")

    async with bench(**zoo()) as made:
        before = len(os.listdir("/proc/self/fd"))
        with monkeypatch.context() as patch:
            patch.setattr(os, "pidfd_open", no_descriptor_left)
            with pytest.raises(DependencyUnavailable, match="Too many open files"):
                await made.source.connect()
        assert len(os.listdir("/proc/self/fd")) == before
        for pid in started:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
        await made.source.connect()
        assert await made.text("echo", {"text": "hi"}) == "hi"


@pytest.mark.parametrize("turns", range(5))
async def test_a_start_that_is_cancelled_leaves_no_pipe_that_would_be_closed_a_second_time(
    monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    started: list[subprocess.Popen] = []
    start = child.start_process

    def remembered(*args) -> subprocess.Popen:
        started.append(start(*args))
        return started[0]

    monkeypatch.setattr(child, "start_process", remembered)
    lines = child.LineReader(lambda _line: None, lambda: None, lambda: None, 100)
    starting = asyncio.ensure_future(child.start_child("cat", ["cat"], dict(os.environ), None, lines))
    for _ in range(turns + 1):
        await asyncio.sleep(0)
    starting.cancel()
    with suppress(asyncio.CancelledError):
        await (await starting).stop()
    process = started[0]
    assert [pipe.closed for pipe in (process.stdin, process.stdout, process.stderr)] == [True] * 3
