"""Tools at work: a hard stop at the deadline, one execution for one idempotency key, and an answer in any case."""

import asyncio
import contextvars
import logging
import threading
import time
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agent_gate.hosts.kept import GivenResults, call_digest
from agent_gate.hosts.tools import FunctionTool, Refused, Turn, as_result, turn
from agent_gate.peers.toolwire import VERSION, ErrorCode, HostError, HostReply, HostRequest, ToolStatus

log = logging.getLogger("agent_gate.hosts")
MOST_AT_WORK = 64
OTHER_CALL = "This idempotency key was used for another call"
CUT_SHORT = "This call was begun before the host stopped, and how it ended is not known. It may have run"


class HostEnding(Struct, frozen=True, omit_defaults=True):
    """How a call ended, whoever asked for it."""

    status: ToolStatus
    result: dict[str, Any] | UnsetType = UNSET
    error: HostError | UnsetType = UNSET


def failed(
    code: ErrorCode, message: str, *, status: ToolStatus = "error", details: dict[str, Any] | None = None
) -> HostEnding:
    error = HostError(
        code=code, message=message, details=details or UNSET, retryable=status == "retryable_error"
    )
    return HostEnding(status, error=error)


class Execution:
    """Runs the tools of one host."""

    def __init__(self, tools: dict[str, FunctionTool], results: GivenResults) -> None:
        self._tools, self._results, self._light = tools, results, GivenResults(None)
        self._keyed: dict[str, asyncio.Task[HostEnding]] = {}
        self._by_call: dict[str, asyncio.Task[HostEnding]] = {}
        self._threads = 0

    async def answer(self, request: HostRequest) -> HostReply:
        began, now = time.monotonic(), Turn(request)
        tool = self._tools.get(request.tool_name)
        if tool is None:
            ending = failed("TOOL_NOT_FOUND", f"There is no tool named {request.tool_name[:128]}")
        else:
            ending = await self._run_to_its_end(tool, now)
        return HostReply(
            version=VERSION,
            call_id=request.call_id,
            tool_name=request.tool_name,
            status=ending.status,
            duration_ms=round((time.monotonic() - began) * 1000),
            result=ending.result,
            error=ending.error,
            logs=now.logs or UNSET,
        )

    def cancel(self, call_id: str) -> bool:
        """Stop a call that nobody waits for; false where it is over, or was never here."""
        task = self._by_call.get(call_id)
        return task is not None and task.cancel()

    async def _run_to_its_end(self, tool: FunctionTool, now: Turn) -> HostEnding:
        request = now.request
        if len(self._by_call) + self._threads >= MOST_AT_WORK or request.call_id in self._by_call:
            return failed("RATE_LIMITED", "Too many calls are at work here", status="retryable_error")
        if request.idempotency_key is UNSET:
            return await self._watch(tool, now)
        context = request.context
        name = "\0".join((request.tenant_id, context.agent_id, str(request.idempotency_key)))
        digest = call_digest(request.tool_name, [request.args, context.isolation_key or ""])
        return await self._run_once(tool, now, name, digest)

    async def _run_once(self, tool: FunctionTool, now: Turn, name: str, digest: str) -> HostEnding:
        results = self._results_of(tool)
        known = results.find(name)
        if known is not None and known[0] != digest:
            return failed("INVALID_ARGS", OTHER_CALL)
        if known is not None and known[1]:
            return msgspec.json.decode(known[1], type=HostEnding)
        if (running := self._keyed.get(name)) is not None:
            return await asyncio.shield(running)
        if known is not None and not tool.offered.idempotent:
            return failed("INTERNAL", CUT_SHORT)
        results.keep(name, digest, b"")
        self._keyed[name] = task = asyncio.ensure_future(self._watch(tool, now))
        task.add_done_callback(lambda done: self._keep(tool, name, digest, done))
        return await asyncio.shield(task)

    def _keep(self, tool: FunctionTool, name: str, digest: str, task: asyncio.Task[HostEnding]) -> None:
        del self._keyed[name]
        over = not task.cancelled() and task.exception() is None
        ending = task.result() if over else failed("INTERNAL", CUT_SHORT)
        again = ending.status == "retryable_error" or (tool.offered.idempotent and ending.status != "ok")
        results = self._results_of(tool)
        if again:
            results.drop(name)
        else:
            results.keep(name, digest, msgspec.json.encode(ending))

    def _results_of(self, tool: FunctionTool) -> GivenResults:
        """What does nothing may be done again after a restart, so it needs no disk."""
        return self._results if tool.offered.side_effects or not tool.offered.idempotent else self._light

    async def _watch(self, tool: FunctionTool, now: Turn) -> HostEnding:
        """The ending of one execution: at its deadline it is stopped, and one that cannot be stopped is left behind."""
        offered, wanted = tool.offered, now.request.timeout_ms
        limit = min(wanted or offered.timeout_ms_default, offered.timeout_ms_max)
        turn.set(now)
        try:
            arguments = tool.arguments(now.request.args)
        except Refused as refused:
            return failed(refused.code, refused.message)
        work = self._await_tool if tool.waits else self._run_in_thread
        task = asyncio.ensure_future(self._guard(work(tool, arguments), tool))
        call_id = now.request.call_id
        self._by_call[call_id] = task
        try:
            done, _ = await asyncio.wait({task}, timeout=limit / 1000)
        finally:
            self._by_call.pop(call_id, None)
        if not done:
            task.cancel()
            log.warning("A tool was stopped at its deadline", extra={"tool": tool.name, "call": call_id})
            message = f"{tool.name} did not end within {limit} ms and was stopped. It may have run"
            return failed("TIMEOUT", message, status="timeout")
        if task.cancelled():
            return failed("INTERNAL", "The call was cancelled. It may have run")
        return task.result()

    async def _guard(self, work: Any, tool: FunctionTool) -> HostEnding:
        try:
            return HostEnding("ok", result=as_result(await work))
        except Refused as refused:
            status: ToolStatus = "retryable_error" if refused.retryable else "error"
            return failed(refused.code, refused.message, status=status, details=refused.details)
        except asyncio.CancelledError:
            raise
        except Exception:  # the boundary: what a tool raises ends its own call only
            log.exception("The tool %s failed", tool.name)
            return failed("INTERNAL", f"{tool.name} failed; the host's log says why")

    async def _await_tool(self, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        return await tool.function(**arguments)

    async def _run_in_thread(self, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        """A thread of its own, which can be left behind: one that hangs must not keep others from starting."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Any] = loop.create_future()
        context = contextvars.copy_context()

        def settle(value: Any, error: BaseException | None) -> None:
            self._threads -= 1
            if result.done():
                return
            if error is not None:
                result.set_exception(error)
            else:
                result.set_result(value)

        def run() -> None:
            value, failure = None, None
            try:
                value = context.run(tool.function, **arguments)
            except Exception as error:  # noqa: BLE001 - told to whoever waits
                failure = error
            except BaseException as error:  # noqa: BLE001 - a tool that exits ends its own call only
                failure = RuntimeError(type(error).__name__)
            try:
                loop.call_soon_threadsafe(settle, value, failure)
            except RuntimeError:  # the host has stopped meanwhile
                log.info("A tool ended after its host", extra={"tool": tool.name})

        self._threads += 1
        threading.Thread(target=run, name=f"tool {tool.name}", daemon=True).start()
        return await result

    def close(self) -> None:
        self._results.close()
        self._light.close()
