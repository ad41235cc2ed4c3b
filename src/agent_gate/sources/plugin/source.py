"""The plugin source: a service answered by a Python class, behind its own thread and a bounded number of calls."""

import asyncio
import copy
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from agent_gate.config.services.definition import to_definition
from agent_gate.config.services.section import SERVICES
from agent_gate.config.services.settings import ServiceConfig
from agent_gate.config.settings import Settings
from agent_gate.core.call import Result
from agent_gate.core.credentials import Identity
from agent_gate.core.ids import fold_namespace
from agent_gate.core.ports import Job, Plan
from agent_gate.core.tool import Definition
from agent_gate.errors import ConfigError, DependencyUnavailable, GatewayError, OutcomeUnknown, UpstreamError
from agent_gate.sources.base import SourceBase
from agent_gate.sources.plugin.handler import ServiceHandler
from agent_gate.sources.plugin.loading import load_handler
from agent_gate.sources.plugin.worker import Stopped, Worker, safely, wording
from agent_gate.sources.toolbox import Toolbox

log = logging.getLogger("agent_gate.sources.plugin")
CONCURRENCY = 8
START_SECONDS = 30.0
CLOSE_SECONDS = 5.0
HEALTH_SECONDS = 30.0
HEALTH_TIMEOUT = 5.0
LONGEST_QUEUEING = 5.0


class PluginSource(SourceBase):
    """Answers calls by a handler's `execute`. At most `options.concurrency` run at once."""

    kind = "plugin"

    def __init__(self, config: ServiceConfig, handler: type[ServiceHandler], toolbox: Toolbox) -> None:
        self.config, self._class = config, handler
        self._clock, self._max_bytes = toolbox.clock, toolbox.max_bytes
        self._access = toolbox.access(identity(config), masks=config.mask_results)
        self.key, self.namespace, self.title = config.name, fold_namespace(config.name), config.name
        self._slots = asyncio.Semaphore(concurrency(config))
        self._tools = {tool.name: tool for tool in config.tools}
        self._worker: Worker | None = None
        self._handler: ServiceHandler | None = None

    async def __aexit__(self, *_: object) -> None:
        worker, handler = self._worker, self._handler
        self._worker = self._handler = None
        if worker is None:
            return
        if handler is not None:
            await self._run_quietly(worker, handler, "close", CLOSE_SECONDS)
        await asyncio.to_thread(worker.stop)

    async def connect(self) -> Sequence[Definition]:
        """Make and start the handler, in its own thread; the tools are those of the file."""
        if self._worker is None:
            self._worker = Worker(self.key)
        if self._handler is None:
            handler = await self._make_handler(self._worker)
            await self._run_step(self._worker, START_SECONDS, "start", part(handler, "start"))
            self._handler, self.unwell = handler, None
        return self.definitions()

    def definitions(self) -> list[Definition]:
        return [to_definition(self.config, tool) for tool in self.config.tools]

    async def _make_handler(self, worker: Worker) -> ServiceHandler:
        made = await self._run_step(
            worker, START_SECONDS, "start", self._class, await self._fill_secrets(), list(self.config.tools)
        )
        if not isinstance(made, ServiceHandler):
            raise DependencyUnavailable(f"{self.key} did not start: its class makes something else")
        return made

    async def watch(self) -> None:
        """Ask the handler how it is, now and then; a handler that is not well still gets calls."""
        while True:
            await asyncio.sleep(HEALTH_SECONDS)
            if self._worker is None or self._handler is None:
                return
            well = await self._run_quietly(self._worker, self._handler, "health_check", HEALTH_TIMEOUT)
            self.unwell = None if well else "its own health check fails"

    async def answer(self, job: Job) -> Result:
        self._get_started()
        await self._wait_for_slot(job.deadline)
        tool = job.case.tool.upstream
        try:
            worker, handler = self._get_started()
            outcome = worker.submit(part(handler, "execute"), tool, copy.deepcopy(dict(job.arguments)))
        except BaseException:
            self._slots.release()
            raise
        loop = asyncio.get_running_loop()
        outcome.add_done_callback(lambda _: loop.call_soon_threadsafe(self._slots.release))
        try:
            value = await asyncio.shield(asyncio.wrap_future(outcome))
        except asyncio.CancelledError:
            worker.cancel(outcome)
            raise
        except Stopped:
            raise OutcomeUnknown(
                f"{self.key} was stopped while {tool} ran. Check whether it took effect"
            ) from None
        except Exception as error:  # noqa: BLE001 - the boundary to a stranger's code
            raise self._failure(tool, error) from None
        return self._result(tool, value)

    def _get_started(self) -> tuple[Worker, ServiceHandler]:
        if self._worker is None or self._handler is None:
            raise DependencyUnavailable(f"{self.key} is not started. Nothing was sent")
        return self._worker, self._handler

    async def _fill_secrets(self) -> ServiceConfig:
        """The settings as the plugin gets them: with the secrets that the file refers to."""
        proof = self._access.at_hand("") or await self._access.fetch("")
        given = {name.decode(): value.decode() for name, value in proof.headers}
        auth = replace(self.config.auth, token=given.get("token", ""), password=given.get("password", ""))
        return replace(self.config, auth=auth)

    async def _wait_for_slot(self, deadline: float) -> None:
        """Wait a moment for a free place; a plugin whose places are all stuck answers nobody, and says so."""
        left = min(LONGEST_QUEUEING, deadline - self._clock.monotonic() - 0.1)
        try:
            async with asyncio.timeout(max(0.0, left)):
                await self._slots.acquire()
        except TimeoutError:
            busy = concurrency(self.config)
            raise DependencyUnavailable(
                f"{self.key} is busy: {busy} calls are running and none ended. Nothing was sent",
                retry_after=5,
            ) from None

    def _failure(self, tool: str, error: Exception) -> GatewayError:
        """What the agent may read: an error that the plugin meant for it, else only the kind of the exception."""
        if isinstance(error, GatewayError) and isinstance(error.message, str):
            error.message = self._access.redactor.text(error.message)
            return error
        log.error("A plugin failed", extra={"source": self.key, "tool": tool}, exc_info=error)
        return UpstreamError(f"{self.key} failed ({type(error).__name__}); the gateway's log says more")

    def _result(self, tool: str, value: Any) -> Result:
        definition = self._tools[tool]
        if definition.response is not None and definition.response.wrap is not None:
            value = {definition.response.wrap: value}
        try:
            body = safely(msgspec.json.encode, value)
        except Exception as error:  # noqa: BLE001 - the boundary to a stranger's code
            log.error(
                "A plugin answered something that is not JSON",
                extra={"source": self.key, "tool": tool, "why": wording(error)},
            )
            raise OutcomeUnknown(f"{self.key} ran {tool} and answered something that is not JSON") from None
        if len(body) > self._max_bytes:
            raise OutcomeUnknown(
                f"{self.key} ran {tool} and answered {len(body)} bytes; at most {self._max_bytes} are taken"
            )
        return Result(self._access.masked(body))

    async def _run_step(
        self, worker: Worker, seconds: float, phase: str, function: Callable[..., Any], *args: Any
    ) -> Any:
        """A step of the handler's life, under a deadline; the reason shown never has an exception's text."""
        outcome = worker.submit(function, *args)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(outcome)
        except TimeoutError:
            worker.cancel(outcome)
            raise DependencyUnavailable(f"{self.key} did not {phase} within {seconds:g} s") from None
        except GatewayError:
            raise
        except Exception as error:  # the boundary to a stranger's code
            log.error("A plugin failed", extra={"source": self.key, "phase": phase}, exc_info=error)
            raise DependencyUnavailable(
                f"{self.key} did not {phase} ({type(error).__name__}); the gateway's log says more"
            ) from None

    async def _run_quietly(self, worker: Worker, handler: ServiceHandler, step: str, seconds: float) -> bool:
        """Whether a step of the handler's life went well."""
        try:
            said = await self._run_step(worker, seconds, "answer", part(handler, step))
        except GatewayError:
            return False
        try:
            return safely(bool, said)
        except Exception:  # noqa: BLE001 - the boundary to a stranger's code
            return False


def part(handler: ServiceHandler, name: str) -> Callable[..., Any]:
    """A method of the handler; one that cannot even be looked up fails when it is called, where that is caught."""
    try:
        return safely(getattr, handler, name)  # type: ignore[no-any-return]
    except Exception as error:  # noqa: BLE001 - the boundary to a stranger's code
        failure = error

        def fail(*_: Any) -> Any:
            raise failure

        return fail


def identity(config: ServiceConfig) -> Identity:
    """What a handler was given to log in with, whatever it makes of it."""
    auth = config.auth
    return Identity(source=config.name, headers={"token": auth.token, "password": auth.password})


def concurrency(config: ServiceConfig) -> int:
    wanted = config.options.get("concurrency", CONCURRENCY)
    if isinstance(wanted, bool) or not isinstance(wanted, int) or not 1 <= wanted <= 1000:
        raise ConfigError(
            f"service {config.name}: options.concurrency must be a whole number from 1 to 1000",
            where=config.where or None,
        )
    return wanted


class PluginKind:
    """Registers the services with `handler: python`."""

    name = "plugin"
    section = SERVICES

    def make(self, settings: Settings, toolbox: Toolbox) -> list[Plan]:
        return [
            self._plan(config, toolbox)
            for config in SERVICES.of(settings).values()
            if config.handler == "python"
        ]

    def _plan(self, config: ServiceConfig, toolbox: Toolbox) -> Plan:
        source = PluginSource(config, load_handler(config), toolbox)
        return Plan(source=source, settings=config, known=source.definitions())


SOURCE = PluginKind()
