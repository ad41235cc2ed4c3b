"""`Gateway`: brings up the parts of a configuration in order, and takes them down in the opposite one."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from agent_gate.access.issuers import Issuers
from agent_gate.access.people import People
from agent_gate.access.tokens import Tokens
from agent_gate.app.accounts import GatewayAccounts
from agent_gate.app.agents import agents_of
from agent_gate.app.asking_people import AskingPeople
from agent_gate.app.kept import KeptState, open_kept
from agent_gate.app.pipeline import make_pipeline
from agent_gate.app.sign_in import GatewaySignIn
from agent_gate.app.ways_in import WaysIn
from agent_gate.approval.channels.make import channel_people
from agent_gate.calls import Calls
from agent_gate.calls.in_force import InForce, Terms
from agent_gate.calls.recovery import recover
from agent_gate.calls.sweeper import Sweeper
from agent_gate.config.configuration import Configuration
from agent_gate.config.options import Options
from agent_gate.config.settings import Settings
from agent_gate.core.catalog import Shelf
from agent_gate.net.pool import Pool
from agent_gate.observe.metrics import Metrics
from agent_gate.observe.readings import read_heads, read_load, read_questions, read_sources
from agent_gate.observe.redact import Redactor
from agent_gate.policy.written import policy_of
from agent_gate.sources.accounts.credentials import Roster
from agent_gate.sources.errands.errands import Errands
from agent_gate.sources.supervisor import Supervisor, plans
from agent_gate.sources.toolbox import Toolbox
from agent_gate.store.clock import GatewayClock
from agent_gate.surfaces.admin.policy_faults import PolicyFaults
from agent_gate.surfaces.listeners import Listeners
from agent_gate.vault.oauth.reach import Web
from agent_gate.vault.secrets import Secrets


class Gateway:
    """One running gateway. Its life is one stack: what was brought up last is closed first."""

    kept: KeptState
    pool: Pool
    listeners: Listeners
    sign_in: GatewaySignIn
    supervisor: Supervisor
    errands: Errands
    in_force: InForce
    calls: Calls
    accounts: GatewayAccounts
    asking_people: AskingPeople
    ways_in: WaysIn

    def __init__(self, options: Options) -> None:
        self.configuration = Configuration(options)
        self.clock = GatewayClock()
        self.metrics = Metrics()
        self._life = AsyncExitStack()

    @property
    def settings(self) -> Settings:
        """What counts now."""
        return self.configuration.settings

    @property
    def redactor(self) -> Redactor:
        """What takes the secrets of the configuration out of everything that is shown."""
        return self.configuration.redactor

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
        await self._make_ground()
        tokens, issuers = await self._make_sign_in(life)
        self.calls, results = make_pipeline(self, life, sweeper, tokens)
        self.accounts = GatewayAccounts(self)
        await self.accounts.open()
        await self.accounts.sign_ins.move_to_people(tokens.callers())
        self.asking_people = AskingPeople(self, people, sweeper)
        self._close_sources(life)
        faults = PolicyFaults(self.configuration, self.supervisor.shelf, lambda: self.in_force.terms.policy)
        self.ways_in = WaysIn(self, tokens, issuers, results, people, faults, sweeper)
        channels = self.asking_people.make(self.settings)
        self._read_metrics()
        await self._start_sources(sweeper)
        faults.tell()
        self.supervisor.shelf.subscribe(lambda _before, _now: faults.tell())
        await recover(self.calls, self.kept.store, self.kept.inbox, self.clock)
        life.push_async_callback(end, asyncio.ensure_future(sweeper.run()))
        self.accounts.tasks.start(issuers.refresh())
        await self._let_in(life, sweeper)
        await self.asking_people.start(channels)

    async def _make_ground(self) -> None:
        """What everything else stands on."""
        settings = self.settings
        self.pool = Pool()
        self.listeners = Listeners(settings, self.folder, insecure=self.configuration.options.insecure)
        self.supervisor = Supervisor(Shelf(), self.clock, self.kept.pins, self.redactor.text)
        self.errands = self._make_errands()
        await self.errands.begin()
        self.in_force = InForce(Terms(settings=settings, policy=policy_of(self.configuration.loaded)))

    async def _make_sign_in(self, life: AsyncExitStack) -> tuple[Tokens, Issuers]:
        """Who may come in: agents of ours, those that signed in, and those of other issuers."""
        web = Web(self.clock)
        life.push_async_callback(web.aclose)
        self.sign_in = GatewaySignIn(self, web)
        await self.sign_in.signed_in.load()
        issuers = Issuers(web, self.clock, lambda name: tokens.has(name))
        issuers.replace(self.settings.trusted_issuers())
        tokens = Tokens(agents_of(self, self.settings), issuers)
        return tokens, issuers

    async def _start_sources(self, sweeper: Sweeper) -> None:
        await self.supervisor.start(plans(self.settings, self.toolbox(self.settings, self.accounts.roster)))
        await self.accounts.start(sweeper)
        await self.sign_in.start(sweeper)

    async def _let_in(self, life: AsyncExitStack, sweeper: Sweeper) -> None:
        """Callers first, then other gateways on the store, then paired components."""
        await self._open()
        await self.ways_in.fellowship.begin(life)
        self.refresh_agents()
        await self.ways_in.peers.start(sweeper, self.settings)
        life.push_async_callback(self.ways_in.peers.stop)

    async def _fill_settings(self) -> None:
        """Look up what agents, people and channels refer to; the vault is open now."""
        configuration = self.configuration
        secrets = Secrets(self.kept.vault, configuration.folder, configuration.environment)
        await configuration.fill(secrets.look_up)

    def _make_errands(self) -> Errands:
        kept, supervisor = self.kept, self.supervisor
        return Errands(
            kept.store,
            self.clock,
            kept.errand_key,
            kept.alone,
            kept.pins,
            kept.words,
            kept.gateways.is_alive,
            supervisor.shelf,
            supervisor.keepers,
        )

    def _people(self) -> People:
        return People(
            lambda: self.settings.people,
            lambda: channel_people(self.settings.channels),
            lambda: self.settings.approvers.passphrase,
            lambda name: self.sign_in.vouching.people.rights(name),
        )

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
        public, mcp = self.listeners, self.ways_in.mcp
        read_load(self.metrics, lambda: len(public.public.connections), lambda: len(mcp.sessions))

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

    def person_behind(self, agent: str) -> str:
        """For whom an agent works, as far as one is known by its name alone."""
        caller = self.ways_in.tokens.own(agent)
        return caller.person if caller is not None else ""

    async def reload(self) -> list[str]:
        """Take up what the files say now; what changed, in words."""
        return await self.ways_in.reload()

    def refresh_agents(self) -> None:
        """After an agent was made or revoked."""
        self.ways_in.admit(agents_of(self, self.settings))

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
            others=self.errands if self.kept.store.shared else None,
            lender=self.configuration.options.lender,
        )

    async def make_login_url(self) -> str:
        return await self.ways_in.operators.make_login_url()

    async def stop(self) -> None:
        """Answer what is under way, all of it by one deadline, then close everything."""
        await self.ways_in.fellowship.drain()
        deadline = self.clock.monotonic() + self.settings.limits.drain
        await self.ways_in.drain(self, lambda: max(0.1, deadline - self.clock.monotonic()))
        await self.asking_people.stop()
        await self._life.aclose()


async def end(task: "asyncio.Future[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
