"""Definitions are pinned when first seen: a change is kept as a diff, and waits for a person where asked to."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from agent_gate.core.ports import Plan
from agent_gate.core.tool import Definition, Traits
from agent_gate.errors import InvalidArgs
from agent_gate.store.statement import Statement, Store

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
    """What was seen first, or last accepted, of one tool; `pending` is a change that nobody looked at yet."""

    accepted: Definition
    pending: Definition | None = None
    changed_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A definition that is not what it was, as a person reads it. `pin` names what it is now."""

    source: str
    tool: str
    pin: str
    held: bool
    changed_at: float
    diff: str


def pretty(definition: Definition) -> list[str]:
    shown = {
        "description": definition.description,
        "inputSchema": definition.input_schema,
        "outputSchema": definition.output_schema,
        "annotations": definition.annotations,
    } | ({"request": definition.effect} if definition.effect else {})
    return msgspec.json.format(msgspec.json.encode(shown, order="sorted"), indent=2).decode().split("\n")


def diff(before: Definition, after: Definition) -> str:
    return "\n".join(difflib.unified_diff(pretty(before), pretty(after), "accepted", "now", lineterm=""))


def held(accepted: Definition, now: Definition) -> Definition:
    """What was accepted, as the operator wants it served now. Of the traits, which are in part the server's word, both
    must agree on what is benign."""
    before, after = accepted.traits, now.traits
    traits = Traits(
        read_only=before.read_only and after.read_only,
        destructive=before.destructive or after.destructive,
        idempotent=before.idempotent and after.idempotent,
        open_world=before.open_world or after.open_world,
        trusted=before.trusted and after.trusted,
    )
    ahead = traits.read_only and traits.trusted
    return replace(accepted, traits=traits, timeout=now.timeout, record=now.record if ahead else "await")


class Pins:
    """The pins and last known listings, in memory and in the store; also the sources' small memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pins: dict[tuple[str, str], Pin] = {}
        self._listings: dict[str, list[Definition]] = {}
        self._words: dict[str, str] = {}
        self._held: set[str] = set()

    async def load(self) -> None:
        for tool, definition, pending, changed_at in await self._store.read(
            "SELECT tool, definition, pending, changed_at FROM pins"
        ):
            source, _, name = tool.partition("\n")
            waiting = decode_definition(pending) if pending else None
            self._pins[source, name] = Pin(decode_definition(definition), waiting, changed_at)
        for key, era, listing in await self._store.read("SELECT key, era, listing FROM sources"):
            if listing:
                self._listings[key] = decode_listing(listing)
            if era:
                self._words[key] = era

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
        return tuple(self._serve_one(plan, definition, now) for definition in definitions)

    def remember(self, key: str, served: Sequence[Definition], now: float) -> None:
        """Keep what a source has, to be shown at the next start before it is connected."""
        if self._listings.get(key) != list(served):
            self._listings[key] = list(served)
            self._save(key, now)

    def _serve_one(self, plan: Plan, definition: Definition, now: float) -> Definition:
        key = (plan.source.key, definition.name)
        pin = self._pins.get(key)
        if pin is None:
            self._pins[key] = Pin(definition)
            self._write(key, now)
            return definition
        if pin.accepted.pin() == definition.pin():
            if pin != Pin(definition):
                self._pins[key] = Pin(definition)
                self._write(key, now)
            return definition
        if pin.pending is None or pin.pending.pin() != definition.pin():
            pin.changed_at = now
        if pin.pending != definition:
            pin.pending = definition
            self._write(key, now)
        if plan.hold_changes:
            self._held.add(plan.source.key)
            return held(pin.accepted, definition)
        self._held.discard(plan.source.key)
        return definition

    def changes(self) -> list[Change]:
        """Every definition that differs from what was accepted."""
        return [
            Change(
                source=source,
                tool=name,
                pin=pin.pending.pin(),
                held=source in self._held,
                changed_at=pin.changed_at or 0.0,
                diff=diff(pin.accepted, pin.pending),
            )
            for (source, name), pin in sorted(self._pins.items())
            if pin.pending is not None
        ]

    def accept(self, source: str, tool: str, now: float, seen: str = "") -> Definition | None:
        """A person has looked: the changed definition is the pinned one from now on.

        `seen` is the beginning of the pin that was looked at; a server may have changed the tool once more since.
        """
        pin = self._pins.get((source, tool))
        if pin is None or pin.pending is None:
            return None
        if not pin.pending.pin().startswith(seen):
            raise InvalidArgs(f"{tool} of {source} changed again since you looked. Look at what it is now")
        pin.accepted, pin.pending = pin.pending, None
        self._write((source, tool), now)
        return pin.accepted

    def _write(self, key: tuple[str, str], now: float) -> None:
        pin = self._pins[key]
        pending = msgspec.json.encode(pin.pending).decode() if pin.pending is not None else None
        params = (
            "\n".join(key),
            pin.accepted.pin(),
            msgspec.json.encode(pin.accepted).decode(),
            now,
            pin.changed_at,
            pending,
        )
        self._store.post(Statement(UPSERT_PIN, params))

    def _save(self, key: str, now: float) -> None:
        listing = self._listings.get(key)
        text = msgspec.json.encode(listing).decode() if listing is not None else None
        self._store.post(Statement(UPSERT_LISTING, (key, self._words.get(key), text, now)))
