"""The composition root: the only module that knows every other. It turns a configuration into a running gateway."""

import asyncio
import logging
from pathlib import Path
from typing import Any

from agent_gate.access.credentials import credentials
from agent_gate.access.door import Door
from agent_gate.access.keys import END_SESSIONS, Keys
from agent_gate.access.login import Logins
from agent_gate.access.passphrase import Passphrases
from agent_gate.access.people import OPERATOR, People
from agent_gate.access.quota import LOOKS, Quota
from agent_gate.access.tokens import Credential, Tokens
from agent_gate.access.view import View
from agent_gate.approval.channels.buttons import Buttons
from agent_gate.approval.channels.desk import Desk
from agent_gate.approval.channels.dispatcher import Dispatcher, ToldChannel
from agent_gate.approval.channels.make import channel_people, make_places
from agent_gate.approval.grants import Grants
from agent_gate.approval.inbox import Inbox
from agent_gate.approval.pictures import purge_pictures
from agent_gate.audit import Heads, Sealer, ensure_key
from agent_gate.calls import Calls
from agent_gate.calls.in_force import InForce, Terms
from agent_gate.calls.meta import MetaTools
from agent_gate.calls.pipeline import make_calls
from agent_gate.calls.recovery import recover
from agent_gate.calls.restored import end_what_was_under_way, is_older
from agent_gate.calls.shaping import Shaper
from agent_gate.calls.sweeper import Sweeper
from agent_gate.config.configuration import Configuration
from agent_gate.config.options import Options
from agent_gate.config.settings import AgentSettings, Settings
from agent_gate.core.approval import Approval
from agent_gate.core.call import Call, Mode
from agent_gate.core.catalog import Shelf
from agent_gate.core.ports import SystemClock
from agent_gate.discovery.semantic import load as load_semantic
from agent_gate.discovery.tokens import fits
from agent_gate.net.pool import Pool
from agent_gate.observe.metrics import Metrics
from agent_gate.observe.readings import read_heads, read_questions, read_sources
from agent_gate.observe.redact import Redactor
from agent_gate.observe.trace import Tracer
from agent_gate.observe.tracing import tracer_to
from agent_gate.observe.trends import EVERY, Trends
from agent_gate.policy.written import policy_of
from agent_gate.results.artifacts import Artifacts
from agent_gate.results.readers import Readers
from agent_gate.sources.accounts.credentials import Roster
from agent_gate.sources.accounts.signins import SignIns
from agent_gate.sources.accounts.source import ConnectionsSource
from agent_gate.sources.accounts.source import plan as connections_plan
from agent_gate.sources.pins import Pins
from agent_gate.sources.remote import Peering
from agent_gate.sources.supervisor import Supervisor, plans
from agent_gate.sources.toolbox import Toolbox
from agent_gate.store import open_store
from agent_gate.store.statement import StoreSettings
from agent_gate.surfaces.admin.admin import Admin, Ledger, Numbers, Setup, WhoComesIn
from agent_gate.surfaces.admin.policy_faults import PolicyFaults
from agent_gate.surfaces.admin.surface import AdminSurface
from agent_gate.surfaces.listeners import Listeners
from agent_gate.surfaces.mcp import McpSurface
from agent_gate.surfaces.mcp.modes.meta import MetaMode
from agent_gate.surfaces.paths import Paths
from agent_gate.surfaces.rest import RestSurface
from agent_gate.surfaces.rest.health import Health
from agent_gate.surfaces.typescript.surface import TypeScriptSurface
from agent_gate.surfaces.websocket.before import Predecessors
from agent_gate.surfaces.websocket.meta_tools import meta_tools
from agent_gate.surfaces.websocket.surface import WebSocketSurface
from agent_gate.surfaces.websocket.undelivered import Undelivered
from agent_gate.vault.custody import Custody
from agent_gate.vault.sealing import SealingKey

log = logging.getLogger("agent_gate.app")
META_MODES: tuple[Mode, ...] = ("proxy", "gateway")


class Gateway:
    """One running gateway. `start` brings everything up in order, `stop` takes it down in the opposite one."""

    def __init__(self, options: Options) -> None:
        self.configuration = Configuration(options)
        self.people = People(
            lambda: self.settings.people,
            lambda: channel_people(self.settings.channels),
            lambda: self.settings.approvers.passphrase,
        )
        self.folder = self.settings.storage.path.absolute().parent
        self.clock = SystemClock()
        self.redactor = Redactor(self.configuration.loaded.secrets)
        self.metrics = Metrics()
        self._tasks: list[asyncio.Task[None]] = []
        self._reloading = asyncio.Lock()
        self._warnings = self.configuration.warnings()
        self.tracer: Tracer | None = None

    @property
    def settings(self) -> Settings:
        """What counts now."""
        return self.configuration.settings

    async def start(self) -> None:
        settings = self.settings
        await self._load()
        self.pool = Pool()
        self.listeners = Listeners(settings, self.folder, insecure=self.configuration.options.insecure)
        self.shelf = Shelf()
        self.supervisor = Supervisor(self.shelf, self.clock, self.pins, self.redactor.text)
        self.peering = await self._open_peering()
        self.in_force = InForce(Terms(settings=settings, policy=policy_of(self.configuration.loaded)))
        self.policy_faults = PolicyFaults(self.configuration, self.shelf, lambda: self.in_force.terms.policy)
        self.tokens = Tokens(self._credentials(settings))
        self.door = Door(self.tokens, self.clock)
        self.view = View(self.shelf, lambda: self.in_force.terms.policy)
        self.sweeper = Sweeper(self.clock)
        self.buttons = Buttons(ensure_key(self.folder / "channels.key"))
        self.dispatcher = Dispatcher(self.store, self.inbox, self.clock, self.metrics)
        self.artifacts = Artifacts(self.store, self.clock, settings.results.retention_days * 86_400)
        self.readers = Readers(fits)
        self.calls = self._make_calls()
        self.sign_ins = SignIns(self.custody, lambda: self.roster, self.supervisor, self.clock)
        await self.sign_ins.load()
        self.custody.heard.append(lambda: self._spawn(self._offer_connections()))
        self.connections = ConnectionsSource(self.sign_ins, self._approver, self._ask_person)
        looks = Quota(self.clock, "looks at tools and results", LOOKS)
        self.meta = MetaTools(
            self.calls,
            self.shelf,
            self.view.tools,
            self.artifacts,
            fits,
            load_semantic,
            looks.take,
            self.readers,
        )
        self.sweeper.every(3600.0, self.artifacts.sweep)
        self.sweeper.every(3600.0, self.dispatcher.purge)
        self.sweeper.every(3600.0, lambda: purge_pictures(self.store, self.clock))
        places = self._places(settings)
        self._make_surfaces()
        read_heads(self.metrics, lambda: self.listeners.public.known, self.pool)
        read_sources(self.metrics, self.supervisor)
        read_questions(self.metrics, self.inbox.open)
        await self.supervisor.start(plans(settings, self.toolbox(settings, self.roster)))
        await self._offer_connections()
        await self.peering.start()
        self.sweeper.every(3600.0, self.peering.renew_due)
        self.policy_faults.tell()
        self.shelf.subscribe(lambda _before, _now: self.policy_faults.tell())
        await recover(self.calls, self.store, self.inbox, self.clock)
        self._spawn(self.sweeper.run())
        try:
            await self.listeners.start(
                self.paths.handle,
                self.websocket.upgrade,
                self.admin.listener.handle,
                self.admin.socket.handle,
                self.admin.socket.upgrade,
            )
        except Exception:
            await self._give_up()
            raise
        await self.dispatcher.start(places)

    async def _load(self) -> None:
        """The store, and what of it is kept in memory."""
        storage, gateway = self.settings.storage, self.settings.gateway
        settings = StoreSettings(type=storage.type, path=storage.path, url=storage.url, chain=gateway.id)
        self.store = await asyncio.to_thread(open_store, settings)
        self.audit_key = ensure_key(self.folder / "audit.key")
        self.heads = Heads(self.folder / "audit.head", self.audit_key)
        self.sealer = Sealer(self.store, self.audit_key, clock=self.clock, heads=self.heads)
        await self.sealer.__aenter__()
        self.pins = Pins(self.store)
        await self.pins.load()
        self.inbox = Inbox(self.store, self.clock, SealingKey(ensure_key(self.folder / "arguments.key")))
        self.grants = Grants(self.store, self.clock, self.people.answers)
        await self._see_to_a_copy()
        await self.grants.load()
        self.predecessors = Predecessors(self.store)
        await self.predecessors.load()
        self.keys = Keys(self.store, self.clock)
        await self.keys.load()
        await self._open_vault()

    async def _open_vault(self) -> None:
        config = self.configuration.options.config
        self.env = self.configuration.environment()
        self.custody = Custody.of(
            self.store,
            self.clock,
            folder=self.folder,
            files=config.absolute().parent if config is not None else Path.cwd(),
            tenant=self.settings.gateway.tenant,
            env=lambda: self.env,
            redirect_uri=lambda: self.listeners.callback_url(),
        )
        await self.custody.open()
        self.roster = Roster(self.custody, self.clock)

    async def _see_to_a_copy(self) -> None:
        """Where the store was restored from an older copy, nothing in it counts that was taken back since."""
        noted = self.heads.known.get(self.store.chain)
        if await is_older(self.store, noted):
            also = [self.grants.ending_all(), END_SESSIONS]
            await end_what_was_under_way(self.store, self.inbox, self.clock, noted, also)

    async def _open_peering(self) -> Peering:
        gateway = self.settings.gateway
        peering = Peering(
            self.store,
            self.clock,
            self.supervisor,
            lambda: self.toolbox(self.settings, self.roster),
            tenant=gateway.tenant,
        )
        await peering.open(self.folder, self.custody.vault, gateway.id)
        return peering

    def _make_calls(self) -> Calls:
        self.tracer = tracer_to(
            self.settings.telemetry.otlp_endpoint, self.settings.gateway.id, self.redactor
        )
        return make_calls(
            store=self.store,
            clock=self.clock,
            shelf=self.shelf,
            inbox=self.inbox,
            grants=self.grants,
            sources=self.supervisor,
            witnesses=self.supervisor.witnesses,
            sweeper=self.sweeper,
            in_force=self.in_force,
            shaper=Shaper(self.artifacts, fits, self.in_force, self.readers),
            tracer=self.tracer,
            metrics=self.metrics,
            redactor=self.redactor,
            caller_now=self.tokens.caller,
        )

    def _places(self, settings: Settings) -> list[ToldChannel]:
        """Where people are asked, beside the page and the terminal."""
        desk = Desk(
            inbox=self.inbox,
            store=self.store,
            clock=self.clock,
            pool=self.pool,
            metrics=self.metrics,
            redactor=self.redactor,
            buttons=self.buttons,
            answer=self.calls.answer,
            became=self.calls.became,
        )
        return make_places(settings.channels, settings.people, desk, self.listeners.people_url)

    def _refresh_agents(self) -> None:
        self._admit_agents(self._credentials(self.settings))

    def _credentials(self, settings: Settings) -> list[Credential]:
        def alone(token: str) -> AgentSettings:
            return AgentSettings(token=token, rate_limit=settings.rate_limit)

        return credentials(settings.agents.values(), alone, self.folder, self.keys)

    def _admit_agents(self, agents: list[Credential]) -> None:
        """Let these in and nobody else; what was kept for those who are gone is forgotten."""
        self.tokens.replace(agents)
        self.websocket.refresh()
        self.mcp.refresh()
        callers = {agent.caller for agent in agents}
        names = {caller.name for caller in callers}
        self.view.keep(callers)
        self.meta.keep(names)
        self.rest.keep(names)
        self.mcp.lists.keep(names)

    def _make_surfaces(self) -> None:
        self.health = Health(self.supervisor.states, self.supervisor.unready, lambda: self.store.fault)
        self.rest = RestSurface(self.calls, self.door, self.view, self.meta)
        self.typescript = TypeScriptSurface(self.door.enter, lambda: self.shelf.catalog, self.view.tools)
        self.websocket = WebSocketSurface(
            calls=self.calls,
            door=self.door,
            visible=self.view.tools,
            keep=Undelivered(self.store, self.shelf, self.clock).keep,
            before=self.predecessors,
            extra=meta_tools(self.meta),
        )
        hold = self.settings.limits.hold
        self.mcp = McpSurface(
            self.calls,
            self.door,
            self.shelf,
            self.supervisor.contexts,
            self.view.tools,
            seal_key=ensure_key(self.folder / "seal.key"),
            denies=lambda read, arguments, caller: self.in_force.terms.policy.denies(read, arguments, caller),
            modes={name: MetaMode(name, self.meta, self.calls, hold) for name in META_MODES},
            clock=self.clock,
            hold=hold,
        )
        self.paths = Paths(self.mcp, self.rest, self.typescript, self.health, self.door)
        self.admin = self._make_admin()

    def _make_admin(self) -> AdminSurface:
        self.logins = Logins(
            self.keys, self.clock, self.people.known, lambda: f"agent_gate_{self.listeners.page.port}"
        )
        trends = Trends(self.metrics, self.clock)
        self.sweeper.every(EVERY, trends.sample)
        self.sweeper.every(3600.0, self.keys.purge)
        admin = Admin(
            calls=self.calls,
            grants=self.grants,
            clock=self.clock,
            shelf=self.shelf,
            view=self.view,
            sources=self.supervisor,
            peering=self.peering,
            who=WhoComesIn(
                keys=self.keys,
                people=self.people,
                logins=self.logins,
                passphrases=Passphrases(self.clock, self.people.passphrase),
                callers=self.tokens.callers,
                refresh_agents=self._refresh_agents,
            ),
            record=Ledger(store=self.store, audit_key=self.audit_key, heads=self.heads),
            numbers=Numbers(metrics=self.metrics, trends=trends),
            setup=Setup(
                configuration=self.configuration,
                listeners=self.listeners,
                policy=lambda: self.in_force.terms.policy,
                policy_faults=self.policy_faults,
                channel_faults=self._channel_faults,
                reload=self.reload,
            ),
            custody=self.custody,
            sign_ins=self.sign_ins,
            secret_changed=self._secret_changed,
        )
        return AdminSurface(admin, self.buttons, self.pool)

    async def _offer_connections(self) -> None:
        """The tools that connect accounts, as long as a source may need one."""
        key = self.connections.key
        if not self.sign_ins.wanted():
            await self.supervisor.remove(key)
        elif self.supervisor.source(key) is None:
            await self.supervisor.add(connections_plan(self.connections))

    async def _approver(self, call_id: str) -> str:
        approval = await self.inbox.get(call_id)
        return approval.answered_by if approval is not None else ""

    async def _ask_person(self, call: Call, reason: str, person: str) -> Approval:
        return await self.calls.ask_about(call, reason, (person,) if person else ())

    def _secret_changed(self, name: str) -> list[str]:
        """Connect the sources that use a secret anew, so that children get it too; they are named."""
        users = self.roster.referring_to(name)
        for key in users:
            self.supervisor.connect_anew(key)
        return users

    def _channel_faults(self) -> dict[str, str]:
        return {name: self.redactor.text(why) for name, why in self.dispatcher.faults.items()}

    def toolbox(self, settings: Settings, roster: Roster) -> Toolbox:
        return Toolbox(
            pool=self.pool,
            announce=self.supervisor.announce,
            plans=self.supervisor,
            memory=self.pins,
            clock=self.clock,
            learn=self.redactor.add,
            credentials=roster.credentials,
            max_bytes=settings.limits.max_result_bytes,
        )

    def _spawn(self, work: Any) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    def login_url(self) -> str:
        """A fresh one-time link to the operator's page."""
        return f"{self.listeners.page_url()}/login#{self.logins.link(OPERATOR)}"

    async def reload(self) -> list[str]:
        """Read the files again and take them over whole, or keep what runs and say why; one at a time."""
        async with self._reloading:
            return await self._reload()

    async def _reload(self) -> list[str]:
        before = self.settings
        async with self.configuration.trial() as loaded:
            settings = loaded.settings
            roster = Roster(self.custody, self.clock)
            wanted = plans(settings, self.toolbox(settings, roster))
            self.supervisor.check_fit(wanted)
            await asyncio.to_thread(self.policy_faults.check, loaded)
            places = self._places(settings)
            policy, agents = policy_of(loaded), self._credentials(settings)
            self.listeners.take_over(settings)
        changed = (before.channels, before.people) != (settings.channels, settings.people)
        self.redactor.learn(loaded.secrets)
        self.in_force.swap(Terms(settings=settings, policy=policy))
        self._admit_agents(agents)
        self.env, self.roster = self.configuration.environment(), roster
        await self.supervisor.reload(wanted)
        await self.calls.end_denied()
        await self._offer_connections()
        self.supervisor.try_signing_in()
        self.mcp.changed()
        if changed:
            await self.dispatcher.stop()
            await self.dispatcher.start(places)
        log.info("The configuration was reloaded")
        self.policy_faults.tell()
        known, self._warnings = self._warnings, self.configuration.warnings()
        for warning in self._warnings:
            if warning not in known:
                log.warning(warning)
        return [*self._warnings, *self.policy_faults.warnings()]

    async def stop(self) -> None:
        """Answer what is under way, all of it by one deadline, then close everything."""
        deadline = self.clock.monotonic() + self.settings.limits.drain

        def left() -> float:
            return max(0.1, deadline - self.clock.monotonic())

        self.health.draining = True
        await asyncio.gather(self.websocket.drain(left()), self.calls.drain(left()))
        await self.mcp.close(left())
        await self.listeners.drain(left())
        await self.dispatcher.stop()
        await self._close()

    async def _give_up(self) -> None:
        """Nobody can be served: let what recovery took up end, as it would at a stop, and close everything."""
        await self.calls.drain(self.settings.limits.drain)
        await self.listeners.drop()
        await self._close()

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.supervisor.stop()
        await self.sign_ins.close()
        await self.pool.aclose()
        await self.custody.web.aclose()
        self.readers.close()
        if self.tracer is not None:
            await asyncio.to_thread(self.tracer.close)
        await self.calls.close()
        await self.sealer.__aexit__(None, None, None)
        await self.store.close()
