"""Plugins do their work, and whatever else they do hurts only themselves."""

import asyncio
import json
import logging
import re
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.sources.plugin import plugins_for_tests as plugins
from tests.sources.plugin.plugin_parts import HERE, Make, config_of, job
from tests.toolboxes import toolbox
from tests.waiting import until

from agent_gate.config.load import load
from agent_gate.errors import ConfigError, DependencyUnavailable, GatewayError, OutcomeUnknown, UpstreamError
from agent_gate.net.pool import Pool
from agent_gate.sources.plugin import SOURCE, PluginSource
from agent_gate.sources.plugin import source as source_module
from agent_gate.sources.plugin import worker as worker_module
from agent_gate.sources.plugin.loading import load_handler


async def test_a_plugin_gets_its_configuration_and_its_tools_and_answers(make: Make) -> None:
    async with make("Good") as source:
        result = await source.answer(await job(source, arguments={"how": "well"}))
        data = json.loads(result.body)
        assert data["tool"] == "work"
        assert data["args"] == {"how": "well"}
        assert data["tools"] == ["work", "wrapped"]
        assert data["url"] == "custom://anything"
        assert data["thread"] == "plugin p"
        assert source._handler.started


async def test_an_answer_is_wrapped_as_the_tool_says(make: Make) -> None:
    async with make("Slow") as source:
        result = await source.answer(await job(source, "wrapped"))
        assert json.loads(result.body) == {"state": "plugin p"}


async def test_what_a_plugin_does_to_its_arguments_stays_with_it(make: Make) -> None:
    async with make("Good") as source:
        work = await job(source, arguments={"how": "a"})
        await source.answer(work)
        assert work.arguments == {"how": "a"}


@pytest.mark.parametrize("name", ["Blocking", "BlockingLoop"])
async def test_a_plugin_that_blocks_does_not_delay_the_gateway(make: Make, name: str) -> None:
    handler = getattr(plugins, name)
    handler.begun.clear()
    handler.go_on.clear()

    async with make(name) as source:
        blocked = asyncio.create_task(source.answer(await job(source)))
        await asyncio.sleep(0)
        await until(handler.begun.is_set)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not blocked.done()
        handler.go_on.set()
        assert (await blocked).body == b'"done"'


async def test_only_so_many_calls_run_at_once_and_the_rest_are_told_that_nothing_was_sent(make: Make) -> None:
    plugins.Blocking.go_on.clear()

    async with make("Blocking", options={"concurrency": 2}) as source:
        work = [asyncio.create_task(source.answer(await job(source))) for _ in range(2)]
        await until(lambda: plugins.Blocking.running == 2)
        with pytest.raises(DependencyUnavailable, match="Nothing was sent"):
            await source.answer(await job(source, seconds=0.2))
        assert plugins.Blocking.running == 2
        plugins.Blocking.go_on.set()
        assert len(await asyncio.gather(*work)) == 2
        assert (await source.answer(await job(source))).body == b'"done"'


async def test_a_call_that_was_given_up_keeps_its_place_until_the_thread_is_done(make: Make) -> None:
    plugins.Blocking.go_on.clear()

    async with make("Blocking", options={"concurrency": 1}) as source:
        work = asyncio.create_task(source.answer(await job(source)))
        await until(lambda: plugins.Blocking.running == 1)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        with pytest.raises(DependencyUnavailable):
            await source.answer(await job(source, seconds=0.2))
        plugins.Blocking.go_on.set()
        assert (await source.answer(await job(source))).body == b'"done"'


async def test_a_cancellation_reaches_a_coroutine(make: Make) -> None:
    plugins.Cancellable.begun.clear()
    plugins.Cancellable.cancelled.clear()

    async with make("Cancellable") as source:
        work = asyncio.create_task(source.answer(await job(source)))
        await until(plugins.Cancellable.begun.is_set)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await until(plugins.Cancellable.cancelled.is_set)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("Crashing", "exit"),
        ("Crashing", "fail"),
        ("Crashing", "nothing found"),
        ("Crashing", "given up"),
        ("CrashingLoop", "exit"),
        ("CrashingLoop", "fail"),
        ("CrashingLoop", "panic"),
        ("CrashingLoop", "given up"),
        ("Mistaken", ""),
    ],
)
async def test_a_plugin_that_crashes_answers_the_next_call_and_tells_no_secret(
    make: Make, name: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        async with make(name) as source:
            for _ in range(2):
                with pytest.raises(UpstreamError) as caught:
                    await source.answer(await job(source, arguments={"how": how}))
                assert "hunter2" not in caught.value.message
                assert caught.value.message.startswith("p failed (")
    assert any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize("name", ["Blocking", "BlockingLoop", "Cancellable"])
async def test_a_call_that_runs_while_its_plugin_is_stopped_is_told_so_at_once(
    make: Make, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "CLOSE_SECONDS", 0.01)
    monkeypatch.setattr(worker_module, "STOP_SECONDS", 0.01)
    plugin = getattr(plugins, name)
    plugin.begun.clear()
    plugins.Blocking.go_on.clear()
    plugins.BlockingLoop.go_on.clear()
    try:
        async with make(name) as source:
            work = asyncio.create_task(source.answer(await job(source)))
            await until(plugin.begun.is_set)
        with pytest.raises(OutcomeUnknown, match="stopped while work ran"):
            await work
    finally:
        plugins.Blocking.go_on.set()
        plugins.BlockingLoop.go_on.set()


async def test_a_call_that_waits_for_a_place_while_its_plugin_is_stopped_was_not_sent(make: Make) -> None:
    plugins.Blocking.go_on.clear()
    try:
        async with make("Blocking", options={"concurrency": 1}) as source:
            first = asyncio.create_task(source.answer(await job(source)))
            await until(lambda: plugins.Blocking.running == 1)
            second = asyncio.create_task(source.answer(await job(source)))
            await asyncio.sleep(0)
        with pytest.raises(OutcomeUnknown):
            await first
        with pytest.raises(DependencyUnavailable, match="Nothing was sent"):
            await second
    finally:
        plugins.Blocking.go_on.set()


async def test_an_error_that_a_plugin_means_for_the_agent_reaches_it_without_the_password(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    async with make("Crashing") as source:
        with pytest.raises(UpstreamError, match="The valve is stuck") as caught:
            await source.answer(await job(source, arguments={"how": "told"}))
        assert "hunter2" not in caught.value.message
        with pytest.raises(OutcomeUnknown, match="not JSON"):
            await source.answer(await job(source, arguments={"how": "object"}))
        assert "type object" in caplog.records[-1].why
        with pytest.raises(OutcomeUnknown, match="at most 1000000"):
            await source.answer(await job(source, arguments={"how": "large"}))


async def test_a_plugin_that_cannot_start_stays_visible_and_is_tried_again(make: Make) -> None:
    plugins.NoStart.tries = 0

    async with make("NoStart") as source:
        for _ in range(2):
            with pytest.raises(DependencyUnavailable, match="did not start") as caught:
                await source.connect()
            assert "hunter2" not in caught.value.message
        assert [definition.name for definition in await source.connect()] == ["work", "wrapped"]
        assert (await source.answer(await job(source))).body == b"3"


async def test_a_source_that_is_closed_leaves_no_thread_behind(make: Make) -> None:
    async with make("Good") as source:
        await source.connect()
        worker = source._worker
    assert not worker._thread.is_alive()
    with pytest.raises(DependencyUnavailable):
        await source.answer(SimpleNamespace(case=None, deadline=0.0))


async def test_the_example_of_the_docs_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    page = (HERE.parents[2] / "docs" / "plugins.md").read_text()
    [code, config] = re.findall(r"```(?:python|yaml)\n(.*?)```", page, re.DOTALL)
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "garden.py").write_text(code)
    (tmp_path / "config.yaml").write_text(config)
    settings = load(tmp_path / "config.yaml", None, {}).settings

    [plan] = SOURCE.make(settings, toolbox(Pool()))
    async with plan.source as source:
        result = await source.answer(await job(source, "water", {"bed": "roses"}))
        assert json.loads(result.body) == {"watered": "roses", "at": "garden://back"}


async def test_a_plugin_whose_own_check_says_no_is_shown_as_unwell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "HEALTH_SECONDS", 0.01)
    answers = [False, True]

    class Checked(plugins.Good):
        async def health_check(self) -> bool:
            return answers[0]

    async with PluginSource(config_of("Good"), Checked, toolbox(Pool())) as source:
        await source.connect()
        watching = asyncio.ensure_future(source.watch())
        assert await until(lambda: source.unwell == "its own health check fails")
        answers.pop(0)
        assert await until(lambda: source.unwell is None)
        watching.cancel()


async def test_a_plugin_is_closed_at_the_end(make: Make) -> None:
    async with make("Good") as source:
        await source.connect()
        handler = source._handler
        assert not handler.closed
    assert handler.closed


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("no_such_module:Class", "no_such_module cannot be imported"),
        ("tests.sources.plugin.plugins_for_tests:Nobody", "has no class Nobody"),
        ("tests.sources.plugin.plugins_for_tests:Stranger", "is not a subclass of agent_gate.ServiceHandler"),
        ("tests.sources.plugin.plugins_for_tests:not_a_class", "is not a subclass"),
        ("tests.sources.plugin.plugins_for_tests:Unfinished", "does not implement execute"),
        ("broken_plugin:Broken", "broken_plugin cannot be imported: ZeroDivisionError"),
        ("tests.sources.plugin.plugins_for_tests", "must be module:Class"),
        ("../evil:Class", "must be module:Class"),
        ("", "must be module:Class"),
    ],
)
def test_a_class_that_is_no_plugin_is_a_config_error_with_its_place(
    tmp_path: Path, spec: str, message: str
) -> None:
    (tmp_path / "broken_plugin.py").write_text("1 / 0\n")
    with pytest.raises(ConfigError) as caught:
        load_handler(config_of("", handler_class=spec, plugin_folders=(HERE, tmp_path)))
    assert caught.value.message.startswith("config.yaml:7: service p: ")
    assert message in caught.value.message


HANDLER = """
from agent_gate import ServiceHandler
class Plain(ServiceHandler):
    async def execute(self, tool_name, args):
        return 1
"""
ENDS = [
    "raise SystemExit(0)",
    "raise SystemExit('no display')",
    "raise KeyboardInterrupt",
    "raise GeneratorExit",
]
HOSTILE_MODULES = [
    *ENDS,
    *(f"class Plain:\n    {end}" for end in ENDS),
    *(f"def __getattr__(name):\n    {end}" for end in ENDS),
    "class Sly(Exception):\n    def __str__(self):\n        raise SystemExit(0)\nraise Sly",
    HANDLER + "class Meta(type(ServiceHandler)):\n"
    "    def __getattribute__(cls, name):\n        raise SystemExit(0)\n"
    "class Plain(ServiceHandler, metaclass=Meta):\n    pass",
]


@pytest.mark.parametrize("text", HOSTILE_MODULES)
def test_a_plugin_that_wants_to_end_the_process_when_imported_is_a_config_error(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "hostile_plugin", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "hostile_plugin.py").write_text(text)
    with pytest.raises(ConfigError, match="hostile_plugin") as caught:
        load_handler(config_of("", handler_class="hostile_plugin:Plain", plugin_folders=(tmp_path,)))
    assert caught.value.message.startswith("config.yaml:7: service p: ")


@pytest.mark.parametrize("end", [*ENDS, "raise BaseException"])
@pytest.mark.parametrize(
    "place",
    [
        "def __init__(self, config, tools): {end}",
        "async def start(self): {end}",
        "async def health_check(self): {end}",
        "def close(self): {end}",
        "def execute(self, tool_name, args): {end}",
        "async def execute(self, tool_name, args): {end}",
        "@property\n    def execute(self): {end}",
        "@property\n    def start(self): {end}",
        "@property\n    def close(self): {end}",
        "async def execute(self, tool_name, args): return Odd()",
        "async def health_check(self): return Odd()",
    ],
)
async def test_whatever_a_plugin_raises_wherever_ends_only_its_own_work(
    monkeypatch: pytest.MonkeyPatch, place: str, end: str
) -> None:
    monkeypatch.setattr(source_module, "HEALTH_SECONDS", 0.01)
    space: dict[str, Any] = {}
    odd = f"class Odd(dict):\n    def __bool__(self): {end}\n    def items(self): {end}\n    __iter__ = keys = items\n"
    base = HANDLER.replace("class Plain", "class Base")
    body = f"class Plain(Base):\n    {place.format(end=end)}\n"
    exec(base + odd + body, space)
    made = PluginSource(config_of("Good"), space["Plain"], toolbox(Pool()))
    async with made as source:
        try:
            await source.connect()
        except DependencyUnavailable:
            return
        watching = asyncio.ensure_future(source.watch())
        with suppress(GatewayError):
            await source.answer(await job(source))
        if "health" in place:
            await until(lambda: source.unwell)
        watching.cancel()


def test_the_entry_point_makes_a_source_for_python_services_only() -> None:
    services = {
        "p": config_of("Good"),
        "h": config_of("Good", name="h", handler="http"),
    }
    settings = SimpleNamespace(sources={"services": services})
    [plan] = SOURCE.make(settings, toolbox(Pool()))
    assert plan.source.key == "p"
    assert plan.settings is services["p"]
    assert [definition.name for definition in plan.known] == ["work", "wrapped"]
    services["p"] = config_of("Good", options={"concurrency": 0})
    with pytest.raises(ConfigError, match=r"options\.concurrency"):
        SOURCE.make(settings, toolbox(Pool()))
