"""Looking into a result takes its own time, not everybody's."""

import asyncio
import json
from threading import Event

import pytest

from agent_gate.access.view import View
from agent_gate.calls.meta import MetaTools
from agent_gate.core.call import Result
from agent_gate.discovery.meta import ViewArgs
from agent_gate.errors import InvalidArgs
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
