"""The meta-tools over WebSocket; one that asks a person waits as long as it takes."""

from functools import partial

from agent_gate.calls.meta import MetaTools
from agent_gate.core.call import Call
from agent_gate.discovery.meta import ARGUMENTS
from agent_gate.surfaces.websocket.methods import Extra


def meta_tools(meta: MetaTools) -> dict[str, Extra]:
    """By method name; `browse` is the short one."""
    methods = {name: name for name in ARGUMENTS} | {"browse": "tool_browse"}
    return {method: partial(_answer, meta, name) for method, name in methods.items()}


async def _answer(meta: MetaTools, name: str, call: Call) -> bytes:
    answer = await meta.answer(name, call.arguments, call, wait=None)
    assert isinstance(answer, bytes)
    return answer
