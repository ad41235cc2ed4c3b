"""Definitions are pinned when first seen: a change is kept as a diff, and waits for a person where asked to."""

import difflib
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from agent_gate.core.ports import Plan
from agent_gate.core.source_state import DefinitionChange
from agent_gate.core.tool import Definition
from agent_gate.core.traits import TRAITS, Traits
from agent_gate.errors import InvalidArgs
from agent_gate.store.statement import Statement, Store

log = logging.getLogger("agent_gate.sources")
MOST_ABSENT = 16 * 1024 * 1024
"""Bytes of definitions that are kept of the tools a source does not have any more."""
ABOUT = "\nabout"  # a key has no newline, so this is nobody else's
FORGETFUL = "forgotten pins of "
MARK = "INSERT INTO kv (name, value) VALUES (?, 'yes') ON CONFLICT (name) DO NOTHING"
UPSERT_PIN = (
    "INSERT INTO pins (tool, pin, definition, first_seen, changed_at, pending) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (tool) DO UPDATE SET pin = excluded.pin, definition = excluded.definition, "
    "changed_at = excluded.changed_at, pending = excluded.pending"
)
UPSERT_LISTING = (
    "INSERT INTO sources (key, era, listing, updated_at) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
    "era = excluded.era, listing = excluded.listing, updated_at = excluded.updated_at"
)
decode_listing = msgspec.json.Decoder(list[Definition]).decode
decode_definition = msgspec.json.Decoder(Definition).decode


@dataclass(slots=True)
class Pin:
    """What was seen first, or last accepted, of one tool; `pending` is a change that nobody looked at yet.

    Nothing is accepted of a tool that may be one whose pin was dropped.
    """

    accepted: Definition | None
    pending: Definition | None = None
    changed_at: float | None = None
    size: int = field(default=0, compare=False)


def pretty(definition: Definition) -> list[str]:
    shown = {
        "description": definition.description,
        "inputSchema": definition.input_schema,
        "outputSchema": definition.output_schema,
        "annotations": definition.annotations,
    } | ({"request": definition.effect} if definition.effect else {})
    return msgspec.json.format(msgspec.json.encode(shown, order="sorted"), indent=2).decode().split("\n")


def diff(before: Definition | None, after: Definition) -> str:
    accepted = pretty(before) if before is not None else []
    return "\n".join(difflib.unified_diff(accepted, pretty(after), "accepted", "now", lineterm=""))


def encode(definition: Definition | None) -> str:
    return msgspec.json.encode(definition).decode() if definition is not None else ""


def decode(text: str | None) -> Definition | None:
    return decode_definition(text) if text else None


def held(accepted: Definition, now: Definition) -> Definition:
    """What was accepted, as the operator wants it served now. Of the traits, which are in part the server's word, both
    must agree on what is benign."""
    before, after = accepted.traits, now.traits
    agreed = {
        name: (any if trait.cautious else all)(getattr(one, name) for one in (before, after))
        for name, trait in TRAITS.items()
    }
    traits = Traits(trusted=before.trusted and after.trusted, **agreed)
    ahead = traits.read_only and traits.trusted
    return replace(accepted, traits=traits, timeout=now.timeout, record=now.record if ahead else "await")


class Pins:
    """The pins and last known listings, in memory and in the store; also the sources' small memory.

    Of a source whose names change all the time the pins of tools that it no longer has are bounded. Where one had to
    be dropped, a name that is not known may be that of a dropped one, and counts as changed.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pins: dict[str, dict[str, Pin]] = {}
        self._forgetful: set[str] = set()
        self._listings: dict[str, list[Definition]] = {}
        self._words: dict[str, str] = {}
        self._held: set[str] = set()

    async def load(self) -> None:
        for tool, definition, pending, changed_at in await self._store.read(
            "SELECT tool, definition, pending, changed_at FROM pins ORDER BY first_seen, tool"
        ):
            source, _, name = tool.partition("\n")
            pin = Pin(decode(definition), decode(pending), changed_at, len(definition) + len(pending or ""))
            self._pins.setdefault(source, {})[name] = pin
        for key, era, listing in await self._store.read("SELECT key, era, listing FROM sources"):
            if listing:
                self._listings[key] = decode_listing(listing)
            if era:
                self._words[key] = era
        marks = await self._store.read("SELECT name FROM kv WHERE name LIKE ?", (f"{FORGETFUL}%",))
        self._forgetful = {name.removeprefix(FORGETFUL) for (name,) in marks}

    async def take_news(self, places: Collection[str] | None) -> list[tuple[str, str]]:
        """Take over what other gateways pinned; the tools, with their source, whose change was accepted there."""
        accepted = []
        for tool, text in await self._store.read("SELECT tool, definition FROM pins"):
            source, _, name = tool.partition("\n")
            if (places is not None and tool not in places) or not text:
                continue
            ours, definition = self._pins.setdefault(source, {}).get(name), decode(text)
            assert definition is not None
            if ours is None:
                self._pins[source][name] = Pin(definition, size=len(text))
            elif ours.pending is not None and ours.pending.pin() == definition.pin():
                accepted.append((source, name))
        return accepted

    async def read_kept(self, key: str) -> tuple[tuple[Definition, ...] | None, str]:
        """The last listing of a source and what it says of itself, as the store has them: another gateway lists it."""
        about = f"{key}{ABOUT}"
        rows = await self._store.read(
            "SELECT key, era, listing FROM sources WHERE key IN (?, ?)", (key, about)
        )
        kept = {row[0]: row[1:] for row in rows}
        listing, said = kept.get(key, ("", None))[1], kept.get(about, ("", None))[0]
        return (tuple(decode_listing(listing)) if listing else None), said or ""

    def last_listing(self, key: str) -> tuple[Definition, ...] | None:
        listing = self._listings.get(key)
        return tuple(listing) if listing is not None else None

    def get(self, key: str) -> str | None:
        return self._words.get(key)

    def set(self, key: str, value: str) -> None:
        if self._words.get(key) != value:
            self._words[key] = value
            self._save(key, 0.0)

    def serve(self, plan: Plan, definitions: Sequence[Definition], now: float) -> tuple[Definition, ...]:
        """What may be shown of a new listing: held definitions stay as they were until a person accepts them."""
        served = [self._serve_one(plan, definition, now) for definition in definitions]
        self._drop_absent(plan.source.key, {definition.name for definition in definitions})
        return tuple(one for one in served if one is not None)

    def remember(self, key: str, served: Sequence[Definition], now: float) -> None:
        """Keep what a source has, to be shown at the next start before it is connected."""
        if self._listings.get(key) != list(served):
            self._listings[key] = list(served)
            self._save(key, now)

    def _serve_one(self, plan: Plan, definition: Definition, now: float) -> Definition | None:
        source, name = plan.source.key, definition.name
        pins = self._pins.setdefault(source, {})
        pin = pins.get(name)
        if pin is None and source not in self._forgetful:
            pins[name] = Pin(definition)
            self._write(source, name, now)
            return definition
        if pin is None:
            pin = pins[name] = Pin(None)
        if pin.accepted is not None and pin.accepted.pin() == definition.pin():
            if pin != Pin(definition):
                pins[name] = Pin(definition)
                self._write(source, name, now)
            return definition
        if pin.pending is None or pin.pending.pin() != definition.pin():
            pin.changed_at = now
        if pin.pending != definition:
            pin.pending = definition
            self._write(source, name, now)
        if plan.hold_changes:
            self._held.add(source)
            return held(pin.accepted, definition) if pin.accepted is not None else None
        self._held.discard(source)
        return definition

    def _drop_absent(self, source: str, present: Collection[str]) -> None:
        """Keep the pins of tools that are gone as far as there is room, those known for longest first."""
        pins, left, dropped = self._pins.get(source, {}), MOST_ABSENT, []
        for name in [name for name in pins if name not in present]:
            left -= pins[name].size
            if pins[name].accepted is None or left < 0:
                del pins[name]
                dropped.append(Statement("DELETE FROM pins WHERE tool = ?", (f"{source}\n{name}",)))
        if left < 0 and source not in self._forgetful:
            self._forgetful.add(source)
            dropped.append(Statement(MARK, (f"{FORGETFUL}{source}",)))
            log.warning(
                "A source has had so many tools that some are forgotten; new ones count as changed from now on",
                extra={"source": source},
            )
        if dropped:
            self._store.post(*dropped)

    def changes(self) -> list[DefinitionChange]:
        """Every definition that differs from what was accepted."""
        return [
            DefinitionChange(
                source=source,
                tool=name,
                pin=pin.pending.pin(),
                held=source in self._held,
                changed_at=pin.changed_at or 0.0,
                diff=diff(pin.accepted, pin.pending),
            )
            for source, pins in sorted(self._pins.items())
            for name, pin in sorted(pins.items())
            if pin.pending is not None
        ]

    def knows(self, source: str, tool: str) -> bool:
        """Whether anything was ever accepted of a tool."""
        pin = self._pins.get(source, {}).get(tool)
        return pin is not None and pin.accepted is not None

    def accept(self, source: str, tool: str, now: float, seen: str = "") -> Definition | None:
        """A person has looked: the changed definition is the pinned one from now on.

        `seen` is the beginning of the pin that was looked at; a server may have changed the tool once more since.
        """
        pin = self._pins.get(source, {}).get(tool)
        if pin is None or pin.pending is None:
            return None
        if not pin.pending.pin().startswith(seen):
            raise InvalidArgs(f"{tool} of {source} changed again since you looked. Look at what it is now")
        pin.accepted, pin.pending = pin.pending, None
        self._write(source, tool, now)
        return pin.accepted

    def _write(self, source: str, name: str, now: float) -> None:
        pin = self._pins[source][name]
        accepted, pending = encode(pin.accepted), encode(pin.pending)
        pin.size = len(accepted) + len(pending)
        params = (
            f"{source}\n{name}",
            pin.accepted.pin() if pin.accepted is not None else "",
            accepted,
            now,
            pin.changed_at,
            pending or None,
        )
        self._store.post(Statement(UPSERT_PIN, params))

    def _save(self, key: str, now: float) -> None:
        listing = self._listings.get(key)
        text = msgspec.json.encode(listing).decode() if listing is not None else None
        self._store.post(Statement(UPSERT_LISTING, (key, self._words.get(key), text, now)))
