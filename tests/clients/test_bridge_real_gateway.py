"""The bridge in front of the real gateway, across its death while a call waits for a person."""

import asyncio
import signal

import pytest
from tests.clients.hosting import modern, start_bridge
from tests.typescript.gateway_process import TOKEN, gateway_process
from tests.waiting import until


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_call_that_waits_for_a_person_survives_the_gateways_death_and_runs_once(tmp_path, era):
    with gateway_process(tmp_path) as gateway:
        bridge = await start_bridge(gateway.url, AGENT_TOKEN=TOKEN)
        if era == "handshake":
            await bridge.greet()
        wrap = modern if era == "modern" else dict
        await bridge.send(id="list", method="tools/list", params=wrap())
        names = [tool["name"] for tool in (await bridge.answer("list"))["result"]["tools"]]
        assert "everything__get_sum" in names
        call = wrap(name="everything__get_sum", arguments={"a": 2, "b": 3})
        await bridge.send(id="sum", method="tools/call", params=call)
        await until(lambda: asyncio.to_thread(gateway.waiting))
        await asyncio.to_thread(gateway.stop, signal.SIGKILL)
        await asyncio.to_thread(gateway.start)
        [question] = await asyncio.to_thread(gateway.waiting)
        await asyncio.to_thread(gateway.operator, "approve", question["id"])
        answer = await bridge.answer("sum")
        assert "result" in answer, answer
        assert "5" in answer["result"]["content"][0]["text"], answer
        assert await asyncio.to_thread(gateway.waiting) == []
        assert await bridge.leave() == 0
