"""`Gateway`: brings up the parts of a configuration in order, and takes them down in the opposite one."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from agent_gate.access.credentials import credentials
from agent_gate.access.people import People
from agent_gate.access.tokens import Credential, Tokens
from agent_gate.app.accounts import GatewayAccounts
from agent_gate.app.asking_people import AskingPeople
from agent_gate.app.kept import KeptState, open_kept
from agent_gate.app.reload import Reload
from agent_gate.app.ways_in import LargeResults, WaysIn
from agent_gate.approval.channels.make import channel_people
from agent_gate.calls import Calls
from agent_gate.calls.in_force import InForce, Terms
from agent_gate.calls.pipeline import make_calls
from agent_gate.calls.recovery import recover
from agent_gate.calls.shaping import Shaper
from agent_gate.calls.sweeper import HOUR, Sweeper
from agent_gate.config.configuration import Configuration
from agent_gate.config.options import Options
from agent_gate.config.settings import AgentSettings, Settings
from agent_gate.core.catalog import Shelf
from agent_gate.core.ports import SystemClock
from agent_gate.discovery.tokens import fits
from agent_gate.net.pool import Pool
from agent_gate.observe.metrics import Metrics
from agent_gate.observe.readings import read_heads, read_questions, read_sources
from agent_gate.observe.redact import Redactor
from agent_gate.observe.tracing import tracer_to
from agent_gate.policy.written import policy_of
from agent_gate.results.artifacts import Artifacts
from agent_gate.results.readers import Readers
from agent_gate.sources.accounts.credentials import Roster
from agent_gate.sources.supervisor import Supervisor, plans
from agent_gate.sources.toolbox import Toolbox
from agent_gate.surfaces.admin.policy_faults import PolicyFaults
from agent_gate.surfaces.listeners import Listeners
from agent_gate.vault.secrets import Secrets


class Gateway:
    """One running gateway. Its life is one stack: what was brought up last is closed first."""

    kept: KeptState
    pool: Pool
    listeners: Listeners
    supervisor: Supervisor
    in_force: InForce
    calls: Calls
    accounts: GatewayAccounts
    asking_people: AskingPeople
    ways_in: WaysIn
    reload: Reload

    def __init__(self, options: Options) -> None:
        self.configuration = Configuration(options)
        self.clock = SystemClock()
        self.redactor = Redactor(self.configuration.loaded.secrets)
        self.metrics = Metrics()
        self._life = AsyncExitStack()

    @property
    def settings(self) -> Settings:
        """What counts now."""
        return self.configuration.settings

    @property
    def folder(self) -> Path:
        """Where the store and the keys are."""
        return self.kept.folder

    async def start(self) -> None:
        """Bring everything up; where that fails, what came up already is closed."""
        async with AsyncExitStack() as life:
            await self._bring_up(life)
            self._life = life.pop_all()

    async def _bring_up(self, life: AsyncExitStack) -> None:
        sweeper, people = Sweeper(self.clock), self._people()
        self.kept = await open_kept(life, self.configuration, self.clock, people)
        await self._fill_settings()
        settings = self.settings
        self.pool = Pool()
        self.listeners = Listeners(settings, self.folder, insecure=self.configuration.options.insecure)
        self.supervisor = Supervisor(Shelf(), self.clock, self.kept.pins, self.redactor.text)
        self.in_force = InForce(Terms(settings=settings, policy=policy_of(self.configuration.loaded)))
        tokens = Tokens(self.credentials(settings))
        results = self._make_calls(life, sweeper, tokens)
        self.accounts = GatewayAccounts(self)
        await self.accounts.open()
        self.asking_people = AskingPeople(self, sweeper)
        self._close_sources(life)
        faults = PolicyFaults(self.configuration, self.supervisor.shelf, lambda: self.in_force.terms.policy)
        self.reload = Reload(self, faults)
        self.ways_in = WaysIn(self, tokens, results, people, faults, sweeper)
        channels = self.asking_people.make(settings)
        self._read_metrics()
        await self.supervisor.start(plans(settings, self.toolbox(settings, self.accounts.roster)))
        await self.accounts.start(sweeper)
        faults.tell()
        self.supervisor.shelf.subscribe(lambda _before, _now: faults.tell())
        await recover(self.calls, self.kept.store, self.kept.inbox, self.clock)
        life.push_async_callback(end, asyncio.ensure_future(sweeper.run()))
        await self._open()
        await self.ways_in.peers.start(sweeper, settings)
        life.push_async_callback(self.ways_in.peers.stop)
        await self.asking_people.start(channels)

    async def _fill_settings(self) -> None:
        """Look up what agents, people and channels refer to; the vault is open now."""
        configuration = self.configuration
        secrets = Secrets(self.kept.vault, configuration.folder, configuration.environment)
        await configuration.fill(secrets.look_up)
        self.redactor.learn(configuration.loaded.secrets)

    def _people(self) -> People:
        return People(
            lambda: self.settings.people,
            lambda: channel_people(self.settings.channels),
            lambda: self.settings.approvers.passphrase,
        )

    def _make_calls(self, life: AsyncExitStack, sweeper: Sweeper, tokens: Tokens) -> LargeResults:
        """The pipeline, and where it leaves what is too large for its callers."""
        settings = self.settings
        tracer = tracer_to(settings.telemetry.otlp_endpoint, settings.gateway.id, self.redactor)
        artifacts = Artifacts(self.kept.store, self.clock, settings.results.retention_days * 86_400)
        readers = Readers(fits)
        self.calls = make_calls(
            store=self.kept.store,
            clock=self.clock,
            shelf=self.supervisor.shelf,
            inbox=self.kept.inbox,
            grants=self.kept.grants,
            sources=self.supervisor.keepers,
            witnesses=self.supervisor.witnesses,
            sweeper=sweeper,
            in_force=self.in_force,
            shaper=Shaper(artifacts, fits, self.in_force, readers),
            tracer=tracer,
            metrics=self.metrics,
            redactor=self.redactor,
            caller_now=tokens.caller,
        )
        sweeper.every(HOUR, artifacts.sweep)
        life.push_async_callback(self.calls.close)
        if tracer is not None:
            life.push_async_callback(asyncio.to_thread, tracer.close)
        life.callback(readers.close)
        return LargeResults(artifacts, readers)

    def _close_sources(self, life: AsyncExitStack) -> None:
        """What sources work with is closed after them."""
        life.push_async_callback(self.accounts.custody.web.aclose)
        life.push_async_callback(self.pool.aclose)
        life.push_async_callback(self.accounts.sign_ins.close)
        life.push_async_callback(self.supervisor.stop)
        life.push_async_callback(self.accounts.tasks.cancel)

    def _read_metrics(self) -> None:
        read_heads(self.metrics, lambda: self.listeners.public.known, self.pool)
        read_sources(self.metrics, self.supervisor)
        read_questions(self.metrics, self.kept.inbox.open)

    async def _open(self) -> None:
        """Let callers in. Where nobody can be served, what recovery took up ends as it would at a stop."""
        admin = self.ways_in.operators.surface
        try:
            await self.listeners.start(
                self.ways_in.paths.handle,
                self.ways_in.websocket.upgrade,
                admin.listener.handle,
                admin.socket.handle,
                admin.socket.upgrade,
            )
        except Exception:
            await self.calls.drain(self.settings.limits.drain)
            await self.listeners.drop()
            raise

    def credentials(self, settings: Settings) -> list[Credential]:
        """The agents of these settings, and those that were made at run time."""

        def alone(token: str) -> AgentSettings:
            return AgentSettings(token=token, rate_limit=settings.rate_limit)

        return credentials(settings.agents.values(), alone, self.folder, self.kept.keys)

    def refresh_agents(self) -> None:
        """After an agent was made or revoked."""
        self.ways_in.admit(self.credentials(self.settings))

    def toolbox(self, settings: Settings, roster: Roster) -> Toolbox:
        return Toolbox(
            pool=self.pool,
            announce=self.supervisor.announce,
            plans=self.supervisor,
            memory=self.kept.pins,
            clock=self.clock,
            learn=self.redactor.add,
            credentials=roster.credentials,
            max_bytes=settings.limits.max_result_bytes,
        )

    def login_url(self) -> str:
        return self.ways_in.operators.login_url()

    async def stop(self) -> None:
        """Answer what is under way, all of it by one deadline, then close everything."""
        deadline = self.clock.monotonic() + self.settings.limits.drain
        await self.ways_in.drain(self, lambda: max(0.1, deadline - self.clock.monotonic()))
        await self.asking_people.stop()
        await self._life.aclose()


async def end(task: "asyncio.Future[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
