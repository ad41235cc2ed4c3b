"""The supervisor: owns every source's state and is the only writer of the catalog."""

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from agent_gate.config.settings import Settings
from agent_gate.core.catalog import Listing, Shelf, build
from agent_gate.core.ports import Clock, ContextSource, Plan, Screens, Source, Witness
from agent_gate.core.source_state import DefinitionChange, SourceState, Status
from agent_gate.core.tool import Definition, Tool
from agent_gate.errors import CatalogError, ConfigError, DependencyUnavailable, InvalidArgs, ViewFailed
from agent_gate.observe.lines import SourceLine, lines
from agent_gate.observe.redact import Redact
from agent_gate.sources.keeper import Keeper
from agent_gate.sources.pins import ABOUT, Pins
from agent_gate.sources.toolbox import Toolbox, source_kinds

log = logging.getLogger("agent_gate.sources")


def plans(settings: Settings, toolbox: Toolbox) -> list[Plan]:
    """What the configuration asks for; two keys that fold to one namespace are a fault."""
    found = [plan for kind in source_kinds() for plan in kind.make(settings, toolbox)]
    check_namespaces(found)
    return found


def check_namespaces(plans: Iterable[Plan]) -> None:
    taken: dict[str, str] = {}
    for plan in plans:
        other = taken.setdefault(plan.source.namespace, plan.source.key)
        if other != plan.source.key:
            raise ConfigError(
                f"{other!r} and {plan.source.key!r} are one namespace, {plan.source.namespace!r}. Rename one of them"
            )


class Keepers(dict[str, Keeper]):
    """By source. A call of a tool that was on its way while its source went away finds none."""

    def __missing__(self, key: str) -> Keeper:
        raise DependencyUnavailable(f"The source {key} is not configured any more. Nothing was sent")


def note_place(kept: Any, found: Any) -> None:
    """Tell an entry that only moved where it stands now: what goes wrong with it later names that line. Where it stands is
    no part of what is compared, so that nothing else can change here."""
    if kept is not found and hasattr(kept, "where") and hasattr(found, "where"):
        object.__setattr__(kept, "where", found.where)


class Supervisor:
    """Starts sources, hears their changes, and swaps the catalog. A slow source never delays another."""

    def __init__(self, shelf: Shelf, clock: Clock, pins: Pins, redact: Redact = str) -> None:
        self.shelf, self._clock, self.pins, self._redact = shelf, clock, pins, redact
        self.keepers = Keepers()
        self.witnesses: dict[str, Witness] = {}
        """The sources that know what their calls act on."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._listings: dict[str, Listing] = {}
        self._leaving: set[str] = set()
        self._added: set[str] = set()
        self._over = False

    async def start(self, plans: Iterable[Plan]) -> None:
        """Show at once what each source had when it was last seen, then connect them all, each on its own."""
        self._show(list(plans))
        for key in list(self.keepers):
            self._launch(key)

    async def learn(self, seconds: float) -> None:
        """Wait at most so long for the sources of which nothing is known yet: until each has been tried once."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for keeper in list(self.keepers.values()):
                    await keeper.tried.wait()

    def _show(self, plans: Sequence[Plan]) -> None:
        """Add sources to the catalog. Tools that are only remembered and do not fit wait for their source."""
        for plan in plans:
            self._add(plan)
        try:
            self._rebuild()
        except CatalogError:
            self._show_what_fits(plans)

    def _show_what_fits(self, plans: Sequence[Plan]) -> None:
        remembered = [plan for plan in plans if plan.pinned]
        for plan in remembered:
            self._add(plan, remembers=False)
        self._rebuild()
        for plan in remembered:
            self._add(plan)
            try:
                self._rebuild()
            except CatalogError as error:
                log.error(
                    "The tools a source had when it was last seen do not fit; they wait until it lists them again",
                    extra={"source": plan.source.key, "why": error.message},
                )
                self._add(plan, remembers=False)

    def _add(self, plan: Plan, *, remembers: bool = True) -> None:
        known = self._known(plan, remembers=remembers)
        self._keep(plan, known=known is not None)
        self._listings[plan.source.key] = self._listing(plan, known)

    def _keep(self, plan: Plan, *, known: bool) -> None:
        if plan.witness is not None:
            self.witnesses[plan.source.key] = plan.witness
        self.keepers[plan.source.key] = Keeper(
            plan, self._clock, self.publish, known=known, redact=self._redact, serves=self._serves
        )

    def _known(self, plan: Plan, *, remembers: bool) -> Sequence[Definition] | None:
        """What a source has, as far as is known before it is connected."""
        if not plan.pinned:
            return plan.known
        return self.pins.last_listing(plan.source.key) if remembers else None

    def _listing(self, plan: Plan, known: Sequence[Definition] | None) -> Listing:
        source = plan.source
        return Listing(
            key=source.key,
            namespace=source.namespace,
            title=source.title,
            description=self._remembered_about(plan),
            kind=source.kind,
            definitions=tuple(known or ()) if plan.enabled else (),
            reads=plan.reads if plan.enabled else (),
            available=plan.on_demand,
            prefix=plan.prefix,
        )

    def _launch(self, key: str) -> None:
        self._tasks[key] = asyncio.get_running_loop().create_task(
            self.keepers[key].run(), name=f"source {key}"
        )

    def publish(self, plan: Plan, definitions: Sequence[Definition] | None, available: bool) -> None:
        """Take over what a source has now; None keeps what it had. A refresh that cannot be used is refused whole."""
        if self._over:
            return
        key = plan.source.key
        before = self._listings[key]
        if definitions is None:
            after = replace(before, available=available)
        else:
            served = (
                self.pins.serve(plan, definitions, self._clock.now()) if plan.pinned else tuple(definitions)
            )
            after = replace(before, definitions=served, available=available, description=self._about(plan))
        if after != before and not self._take_listing(before, after):
            return
        if plan.pinned and definitions is not None:
            self.pins.remember(key, after.definitions, self._clock.now())

    def _about(self, plan: Plan) -> str:
        """What a source says of itself. One whose changes are held keeps to what it said first."""
        known = self._remembered_about(plan)
        said = plan.source.about
        if not plan.pinned or (plan.hold_changes and known):
            return known
        if said != known:
            self.pins.set(f"{plan.source.key}{ABOUT}", said)
        return said or plan.description

    def _remembered_about(self, plan: Plan) -> str:
        return self.pins.get(f"{plan.source.key}{ABOUT}") or plan.description

    def _take_listing(self, before: Listing, after: Listing) -> bool:
        """Whether the catalog took a source's new listing; one that it did not take is in no other source's way."""
        key = after.key
        self._listings[key] = after
        try:
            self._rebuild()
        except CatalogError as error:
            log.error(
                "A source's new tools were refused; the catalog keeps the old ones",
                extra={"source": key, "why": error.message},
            )
            self._listings[key] = replace(before, available=after.available)
            self._rebuild()
            return False
        except BaseException:
            self._listings[key] = before
            raise
        return True

    def watched(self) -> list[Screens]:
        """The sources with something open that people can watch."""
        found = (keeper.plan.screens for keeper in self.keepers.values())
        return [screens for screens in found if screens is not None]

    async def announce(self, key: str, definitions: Sequence[Definition]) -> None:
        if key in self.keepers:
            self.publish(self.keepers[key].plan, definitions, True)

    def _rebuild(self) -> None:
        catalog = build(self._listings.values(), self.shelf.catalog)
        counts = Counter(tool.source for tool in catalog.tools)
        left_out: dict[str, list[str]] = {}
        for one in catalog.excluded:
            left_out.setdefault(one.source, []).append(f"{one.name} is left out: {one.reason}")
        for key, keeper in self.keepers.items():
            keeper.note_tools(counts[key], tuple(left_out.get(key, ())))
        for excluded in set(catalog.excluded) - set(self.shelf.catalog.excluded):
            log.warning(
                "A tool was left out",
                extra={"source": excluded.source, "tool": excluded.name, "why": excluded.reason},
            )
        self.shelf.swap(catalog)

    def _serves(self, tool: Tool) -> bool:
        """Whether a tool is what it was when a call of it was decided, by what was remembered of its source."""
        now = self.shelf.catalog.find(tool.id)
        return now is not None and (now.source, now.pin, now.traits) == (tool.source, tool.pin, tool.traits)

    def lines(self, key: str) -> list[SourceLine]:
        """The last lines about a source, masked."""
        self._find_keeper(key)
        return [line._replace(text=self._redact(line.text)) for line in lines.of(key)]

    def source(self, key: str) -> Source | None:
        keeper = self.keepers.get(key)
        return keeper.plan.source if keeper else None

    def contexts(self) -> dict[str, ContextSource]:
        """The sources that have resources and prompts too."""
        found = ((key, keeper.plan.source.context) for key, keeper in self.keepers.items())
        return {key: context for key, context in found if context is not None}

    def restarts(self) -> dict[str, int]:
        """How often each source had to be connected again."""
        return {key: keeper.restarts for key, keeper in self.keepers.items()}

    def reconnect(self, key: str) -> None:
        """Try a source now that failed, or was disconnected."""
        keeper = self._find_keeper(key)
        why_not = keeper.cannot_connect()
        if key in self._leaving:
            why_not = f"{key} is being disconnected. Try again"
        if why_not:
            raise InvalidArgs(why_not)
        if key not in self._tasks:
            self._keep(keeper.plan, known=keeper.known)
            self._listings[key] = replace(self._listings[key], available=keeper.plan.on_demand)
            self._rebuild()
            self._launch(key)
        self.keepers[key].wake()

    def try_signing_in(self) -> None:
        """Try the sources that wait for a credential: there may be one now."""
        for key, keeper in self.keepers.items():
            if keeper.state().status is Status.NEEDS_AUTH and not keeper.cannot_connect():
                self.reconnect(key)

    def connect_anew(self, key: str) -> None:
        """Let a source begin again with the credentials of now; one that is away on purpose stays away."""
        keeper = self.keepers.get(key)
        if keeper is not None and key in self._tasks and not keeper.cannot_connect():
            keeper.restart()

    async def forget_caller(self, key: str, caller: str) -> None:
        """Close what a source keeps open for one caller alone, whose account is another one now."""
        if (apart := self._find_keeper(key).plan.apart) is not None:
            await apart.forget(caller)

    async def try_as(self, key: str, caller: str) -> None:
        """See whether a source lets one caller in with its own account; raises what it answers."""
        if (apart := self._find_keeper(key).plan.apart) is not None:
            await apart.try_as(caller)

    async def disconnect(self, key: str, person: str) -> None:
        """Close a source and leave it closed. Its tools stay listed, and calls of them are told why they fail."""
        keeper = self._find_keeper(key)
        if key in self._tasks and not keeper.cannot_connect():
            await asyncio.shield(asyncio.ensure_future(self._leave(keeper, person)))

    async def _leave(self, keeper: Keeper, person: str) -> None:
        await self._stop([keeper.key])
        if self.keepers.get(keeper.key) is keeper:
            keeper.rest(f"disconnected by {person}")
            self.publish(keeper.plan, None, False)

    def _find_keeper(self, key: str) -> Keeper:
        if key not in self.keepers:
            raise ViewFailed(f"There is no source named {key[:64]}. See `agent-gate sources`")
        return self.keepers[key]

    def changes(self) -> list[DefinitionChange]:
        """Definitions that are not what was accepted."""
        return self.pins.changes()

    def accept(self, source: str, tool: str, seen: str = "") -> bool:
        """A person has looked at a changed definition, the one whose pin begins with `seen`: serve it from now on."""
        known = self.pins.knows(source, tool)
        accepted = self.pins.accept(source, tool, self._clock.now(), seen)
        if accepted is None or source not in self._listings:
            return False
        listing = self._listings[source]
        served = tuple(accepted if one.name == tool else one for one in listing.definitions)
        if not known and accepted not in served:
            served = (*served, accepted)
        if not self._take_listing(listing, replace(listing, definitions=served)):
            return False
        self.pins.remember(source, served, self._clock.now())
        return True

    async def take_news(self, places: Collection[str] | None) -> None:
        """Serve what a person accepted on another gateway."""
        for source, tool in await self.pins.take_news(places):
            self.accept(source, tool)

    def states(self) -> list[SourceState]:
        return [keeper.state() for _, keeper in sorted(self.keepers.items())]

    def unready(self) -> list[SourceState]:
        """The enabled eager sources that are not connected."""
        waiting = [
            keeper
            for keeper in self.keepers.values()
            if keeper.plan.counts_for_ready and not keeper.plan.on_demand
        ]
        return [keeper.state() for keeper in waiting if not keeper.counts_as_ready]

    def _same(self, wanted: Mapping[str, Plan]) -> set[str]:
        """The sources whose settings did not change."""
        return self._added | {
            key
            for key, keeper in self.keepers.items()
            if key in wanted and keeper.plan.settings == wanted[key].settings
        }

    def check_fit(self, plans: Sequence[Plan]) -> None:
        """Raise `ConfigError` where a reload would bring tools that cannot stand beside those that stay."""
        wanted = {plan.source.key: plan for plan in plans}
        if taken := wanted.keys() & self._added:
            raise ConfigError(
                f"There is already a source named {min(taken)}, which no file configures. Rename yours"
            )
        same = self._same(wanted)
        check_namespaces([*plans, *(self.keepers[key].plan for key in self._added)])
        self._check_build(
            [self._listings[key] for key in same], [plan for key, plan in wanted.items() if key not in same]
        )

    def _check_build(self, stay: Sequence[Listing], come: Sequence[Plan]) -> None:
        listings = [self._listing(plan, self._known(plan, remembers=False)) for plan in come]
        try:
            build([*stay, *listings], self.shelf.catalog)
        except CatalogError as error:
            raise ConfigError(error.message) from None

    async def reload(self, plans: Sequence[Plan]) -> None:
        """Keep the sources whose settings did not change, start the new ones, stop those that are gone."""
        wanted = {plan.source.key: plan for plan in plans}
        same = self._same(wanted)
        for key in same & wanted.keys():
            note_place(self.keepers[key].plan.settings, wanted[key].settings)
        await self._drop([key for key in self.keepers if key not in same])
        fresh = [key for key in wanted if key not in same]
        self._show([wanted[key] for key in fresh])
        for key in fresh:
            self._launch(key)

    async def _drop(self, keys: Sequence[str]) -> None:
        """Close sources and forget them; the catalog is as it was until it is built anew."""
        await self._stop(keys)
        for key in keys:
            del self.keepers[key]
            self.witnesses.pop(key, None)
            del self._listings[key]

    async def add(self, *plans: Plan) -> None:
        """Keep sources that are no part of the configuration, in place of those that were added under their keys."""
        keys = {plan.source.key for plan in plans}
        if taken := (keys & self.keepers.keys()) - self._added:
            raise ConfigError(
                f"There is a source named {min(taken)} in the configuration. Rename one of the two"
            )
        others = [keeper.plan for other, keeper in self.keepers.items() if other not in keys]
        check_namespaces([*others, *plans])
        self._check_build([self._listings[other.source.key] for other in others], plans)
        await self._drop([key for key in self.keepers if key in keys])
        self._added |= keys
        self._show(plans)
        for key in keys:
            self._launch(key)

    async def remove(self, key: str) -> None:
        """Close a source that was added, and take its tools from the catalog."""
        if key in self._added:
            self._added.discard(key)
            await self._drop([key])
            self._rebuild()

    async def stop(self) -> None:
        self._over = True
        await self._stop(list(self._tasks))

    async def _stop(self, keys: Iterable[str]) -> None:
        """Close sources. One that is closing already is waited for: cancelled again, it might leave a child behind."""
        tasks = {key: self._tasks[key] for key in keys if key in self._tasks}
        for key in tasks.keys() - self._leaving:
            tasks[key].cancel()
        self._leaving |= tasks.keys()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        for key, task in tasks.items():
            if self._tasks.get(key) is task:
                del self._tasks[key]
                self._leaving.discard(key)
