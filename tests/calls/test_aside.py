"""Looking into a result takes its own time, not everybody's."""

import asyncio
import json
from threading import Event

import pytest

from agent_gate.access.view import View
from agent_gate.calls.meta import MetaTools
from agent_gate.calls.shaping import LARGE
from agent_gate.core.call import Result
from agent_gate.discovery.meta import ViewArgs
from agent_gate.errors import InvalidArgs
from agent_gate.results.envelope import ResultEnvelope
from calls.small_calls import ANNA, SmallCalls, opened, told

SECONDS = 3


def test_other_calls_go_on_while_a_result_is_looked_into(tmp_path):
    looking, go_on = Event(), Event()

    def fits(_text, _budget):
        looking.set()
        assert go_on.wait(SECONDS), "nothing else went on meanwhile"
        return True

    async def story():
        async with opened(tmp_path) as store:
            gate = SmallCalls(store)
            visible = View(gate.shelf, lambda _tool, _caller: False).tools
            meta = MetaTools(gate.calls, gate.shelf, visible, gate.artifacts, fits)
            kept = await gate.artifacts.save(gate.call(), Result(json.dumps(list(range(100))).encode()))
            args = ViewArgs(handle=kept.handle, selector={"type": "jsonpath", "path": "$[*]"})
            views = [asyncio.ensure_future(meta.view(ANNA, args)) for _ in range(5)]
            while not looking.is_set():
                await asyncio.sleep(0)
            await gate.calls.run(gate.call())
            views[0].cancel()
            go_on.set()
            seen = await asyncio.gather(*views[1:])
            assert {view.text.count("=") for view in seen} == {100}
            wrong = ViewArgs(handle=kept.handle, selector={"type": "jsonpath", "path": "x"})
            with pytest.raises(InvalidArgs, match="JSONPath"):
                await meta.view(ANNA, wrong)

    told(story)


def test_other_calls_go_on_while_a_large_result_is_summarised(tmp_path, monkeypatch):
    summarising, go_on = Event(), Event()

    def summarise(result, artifact, _fits):
        summarising.set()
        assert go_on.wait(SECONDS), "nothing else went on meanwhile"
        return ResultEnvelope(status="partial", summary="large", artifacts=(artifact,))

    async def work(job):
        return json.dumps("x " * (LARGE if job.arguments else 1)).encode()

    async def story():
        async with opened(tmp_path) as store:
            gate = SmallCalls(store, work)
            large = asyncio.ensure_future(gate.calls.run(gate.call(arguments={"n": 1}, mode="gateway")))
            while not summarising.is_set():
                await asyncio.sleep(0)
            await gate.calls.run(gate.call())
            go_on.set()
            assert json.loads((await large).result.body)["summary"] == "large"

    monkeypatch.setattr("agent_gate.calls.shaping.summarise", summarise)
    told(story)


def test_several_results_that_are_too_large_together_are_refused_before_they_are_read(tmp_path, monkeypatch):
    async def story():
        async with opened(tmp_path) as store:
            gate = SmallCalls(store)
            kept = [
                await gate.artifacts.save(gate.call(), Result(b'"' + b"x" * 100 + b'"')) for _ in range(2)
            ]
            handles = [one.handle for one in kept]
            assert len(await gate.artifacts.load_all(handles, ANNA)) == 2
            monkeypatch.setattr("agent_gate.results.artifacts.MOST_BYTES", 150)
            assert len(await gate.artifacts.load_all(handles[:1], ANNA)) == 1
            with pytest.raises(InvalidArgs, match="too large together"):
                await gate.artifacts.load_all(handles, ANNA)

    told(story)
