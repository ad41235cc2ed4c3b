"""`/health`, `/ready` and `/status`: whether the process lives, whether it can do its work, and what is wrong."""

from collections.abc import Callable, Sequence
from typing import Any

from agent_gate import __version__
from agent_gate.core.call import Caller
from agent_gate.core.source_state import SourceState
from agent_gate.net.http import Response, json_response


def shown(state: SourceState) -> dict[str, Any]:
    """A source as an agent may see it: of its reason the first line, since below it a program speaks."""
    out: dict[str, Any] = {
        "source": state.key,
        "namespace": state.namespace,
        "kind": state.kind,
        "state": str(state.status),
        "tools": state.tools,
    }
    if state.reason:
        out["reason"] = state.reason.partition("\n")[0]
    if state.next_try is not None:
        out["next_try"] = state.next_try
    return out


class Health:
    """Answers from what the supervisor and the store say right now."""

    def __init__(
        self,
        states: Callable[[], Sequence[SourceState]],
        unready: Callable[[], Sequence[SourceState]],
        fault: Callable[[], str | None],
    ) -> None:
        self._states, self._unready, self._fault = states, unready, fault
        self._draining = False

    def drain(self) -> None:
        """From now on it is not ready: it stops."""
        self._draining = True

    def health(self) -> Response:
        return json_response(200, {"status": "ok", "version": __version__})

    def ready(self) -> Response:
        """200 when every enabled eager source is connected and the record can be written; else 503 naming what is not."""
        problems = [
            {"source": state.key, "state": str(state.status), "reason": state.reason.partition("\n")[0]}
            for state in self._unready()
        ]
        fault = self._fault()
        if fault:
            problems.append({"source": "store", "state": fault})
        if self._draining:
            problems.append({"source": "gateway", "state": "stopping"})
        return json_response(503 if problems else 200, {"ready": not problems, "waiting_for": problems})

    def status(self, caller: Caller) -> Response:
        states = [shown(state) for state in self._states() if caller.sees(state.namespace)]
        return json_response(200, {"version": __version__, "caller": caller.name, "sources": states})
