"""Takes a snapshot: Playwright's tree, what else is known of its elements, and what reacts to clicks without a role."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from agent_gate.sources.browser.tree import (
    CLICKABLE,
    Details,
    Loose,
    PageNode,
    actionable,
    add_loose,
    build,
    frame_of,
)
from agent_gate.sources.browser.trim import Item, simplify
from agent_gate.sources.browser.whole import measure
from agent_gate.sources.browser.worlds import GROUP, World, Worlds, script

if TYPE_CHECKING:
    from playwright.async_api import Page

log = logging.getLogger("agent_gate.sources.browser")
SNAPSHOT_MS = 10_000
MOST_LISTENERS = 1_500
UNSPOKEN = "x"
"""How references begin of what reacts to clicks without having a role."""
HEARD = frozenset({"click", "mousedown", "mouseup", "pointerdown", "pointerup", "dblclick", "contextmenu"})


@dataclass(slots=True)
class Found:
    """What the frames of a page know of their elements, and what they are called themselves."""

    details: dict[str, Details] = field(default_factory=dict)
    origins: dict[str, Details] = field(default_factory=dict)
    loose: list[Loose] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Sight:
    """What a page showed at one moment. `known` finds its nodes by reference. `raw` and `found` are what it is made of:
    where they are the same again, the page shows the same."""

    url: str
    title: str
    root: PageNode
    known: Mapping[str, PageNode] = field(repr=False)
    raw: Sequence[Any] = field(repr=False)
    found: Found = field(repr=False)

    @property
    def actionable(self) -> list[PageNode]:
        return actionable(self.root)

    @cached_property
    def items(self) -> list[Item]:
        return simplify(self.root)

    @cached_property
    def characters(self) -> int:
        """Of the page's whole tree."""
        return measure(self.root)


async def look(
    page: "Page", worlds: Worlds, last: Sight | None = None, *, listeners_too: bool = True
) -> Sight:
    """A fresh snapshot of the whole page, its frames included.

    What reacts to clicks without a role is taken from the last one where it is not wanted anew.
    """
    await worlds.follow_frames()
    channel = page.main_frame._impl_obj._channel
    answer = await channel.ariaSnapshotJSON(
        mode="ai", selector=None, depth=None, boxes=None, timeout=SNAPSHOT_MS
    )
    found, anew = Found(), listeners_too or last is None
    for world in worlds.references():
        try:
            await describe(world, worlds.main_of(world.frame), found, anew=anew)
        except Exception as error:
            log.debug("A frame could not be described", exc_info=error)
    if last is not None and not anew:
        found.loose = last.found.loose
    url, title = page.url, found.titles.get(worlds.top) or await page.title()
    made_of = (url, title, answer["snapshot"], found)
    if last is not None and made_of == (last.url, last.title, last.raw, last.found):
        return last
    root = build(answer["snapshot"], found.details, found.origins)
    add_loose(root, found.loose)
    known = {node.ref: node for node in root.walk() if node.ref}
    return Sight(url=url, title=title, root=root, known=known, raw=answer["snapshot"], found=found)


async def describe(world: World, main: World | None, found: Found, *, anew: bool) -> None:
    """What one frame knows of its elements; of those that have no role only where that is wanted anew."""
    if not world.met:
        await world.run(script("sight.js"))
        world.met.add(0)
    said = await ask(world, "agentGateSight.describe()")
    origin = str(said["origin"])
    found.titles[world.frame] = str(said["title"])
    for ref, about in said["refs"].items():
        found.details[ref] = Details(origin=origin, **about)
    if said["first"]:
        found.origins[frame_of(said["first"])] = Details(origin=origin)
    if not anew:
        return
    if said["hosts"]:
        await meet(world, await find_closed_roots(world))
    heard = await find_listeners(main)
    await meet(world, [number for number in heard if number not in world.met])
    if heard or said["hosts"] or said["closed"] or said["quiet"]:
        found.loose.extend(await find_unspoken(world, origin, heard))


async def ask(world: World, expression: str) -> Any:
    """What an expression of ours gives, which travels as text: Chromium takes longer to write out objects than a script."""
    return msgspec.json.decode(await world.run(f"JSON.stringify({expression})"))


async def find_listeners(main: World | None) -> list[int]:
    """The elements with a listener for clicks, by Chromium's numbers.

    Asked of the page's own world, whose `document` no script can replace: asked of another one, the renderer of
    Chromium 150 breaks at its next collection of garbage.
    """
    if main is None:
        return []
    sent = {"objectId": await main.find_object("document"), "depth": -1, "pierce": True}
    answer = await main.session.send("DOMDebugger.getEventListeners", sent)
    await main.session.send("Runtime.releaseObjectGroup", {"objectGroup": GROUP})
    heard = (one.get("backendNodeId") for one in answer["listeners"] if one["type"] in HEARD)
    return list(dict.fromkeys(int(number) for number in heard if number))[:MOST_LISTENERS]


async def meet(world: World, numbers: Sequence[int]) -> None:
    """Hand elements to a frame's world by their numbers, once: to look one up costs more than all that is said of it."""
    if not numbers:
        return
    objects = await asyncio.gather(*(resolve(world, number) for number in numbers))
    there = [(number, one) for number, one in zip(numbers, objects, strict=True) if one]
    await introduce(world, [number for number, _ in there], [one for _, one in there])
    world.met.update(numbers)


async def introduce(world: World, numbers: Sequence[int], objects: Sequence[str]) -> None:
    given = [{"objectId": one} for one in objects]
    await world.call("(...all) => agentGateSight.meet(...all)", list(numbers), *given)
    await world.session.send("Runtime.releaseObjectGroup", {"objectGroup": GROUP})


async def list_members(world: World, array: str) -> list[str]:
    """The objects in an array of objects."""
    answer = await world.session.send("Runtime.getProperties", {"objectId": array, "ownProperties": True})
    return [one["value"]["objectId"] for one in answer["result"] if one["name"].isdigit()]


async def find_closed_roots(world: World) -> list[int]:
    """The closed shadow roots below elements that look as if they had one, and were not looked into yet."""
    found: list[int] = []
    for host in await list_members(world, await world.find_object("agentGateSight.hosts()")):
        sent = {"objectId": host, "depth": 1, "pierce": True}
        node = (await world.session.send("DOM.describeNode", sent))["node"]
        roots = node.get("shadowRoots") or ()
        found += [int(root["backendNodeId"]) for root in roots if root.get("shadowRootType") == "closed"]
    return found


async def find_unspoken(world: World, origin: str, heard: list[int]) -> list[Loose]:
    """Elements that react to clicks, or stand in closed shadow roots, with what can be said of them."""
    records: list[dict[str, Any]] = await ask(world, f"agentGateSight.unspoken({heard})")
    nameless = [record for record in records if not record["backend"]]
    if nameless:
        elements = await list_members(world, await world.find_object("agentGateSight.unnumbered()"))
        numbers = await asyncio.gather(*(find_number(world, element) for element in elements))
        for record, number in zip(nameless, numbers, strict=True):
            record["backend"] = number
        await introduce(world, numbers, elements)
    return [loose(origin, record) for record in records]


def loose(origin: str, record: dict[str, Any]) -> Loose:
    own, near, role, name, text, states = (
        record.pop(key) for key in ("own", "near", "role", "name", "text", "states")
    )
    return Loose(
        ref=f"{UNSPOKEN}{record['backend']}",
        near=near,
        own=own,
        role=role or CLICKABLE,
        name=name,
        text=text,
        states=states,
        details=Details(origin=origin, **record),
    )


async def resolve(world: World, number: int) -> str:
    """One element as an object of this world; empty where it belongs to another frame, or is gone."""
    try:
        sent = {"backendNodeId": number, "executionContextId": world.number, "objectGroup": GROUP}
        answer = await world.session.send("DOM.resolveNode", sent)
    except Exception:  # noqa: BLE001 -- Playwright's own error class, for whatever Chromium says
        return ""
    return str(answer["object"].get("objectId") or "")


async def find_number(world: World, element: str) -> int:
    answer = await world.session.send("DOM.describeNode", {"objectId": element})
    return int(answer["node"]["backendNodeId"])
