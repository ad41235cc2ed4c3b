"""Takes a snapshot: Playwright's tree, what else is known of its elements, and what reacts to clicks without a role."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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
from agent_gate.sources.browser.worlds import GROUP, World, Worlds, script

if TYPE_CHECKING:
    from playwright.async_api import Page

log = logging.getLogger("agent_gate.sources.browser")
SNAPSHOT_MS = 10_000
MOST_LISTENERS = 1_500
HEARD = frozenset({"click", "mousedown", "mouseup", "pointerdown", "pointerup", "dblclick", "contextmenu"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a page showed at one moment. `known` finds its nodes by reference."""

    url: str
    title: str
    root: PageNode
    known: Mapping[str, PageNode] = field(repr=False)

    @property
    def actionable(self) -> list[PageNode]:
        return actionable(self.root)


async def look(page: "Page", worlds: Worlds) -> Sight:
    """A fresh snapshot of the whole page, its frames included."""
    await worlds.follow_frames()
    channel = page.main_frame._impl_obj._channel
    answer = await channel.ariaSnapshotJSON(
        mode="ai", selector=None, depth=None, boxes=None, timeout=SNAPSHOT_MS
    )
    details: dict[str, Details] = {}
    origins: dict[str, Details] = {}
    loose: list[Loose] = []
    for world in worlds.references():
        try:
            await describe(world, worlds.main_of(world.frame), details, origins, loose)
        except Exception as error:
            log.debug("A frame could not be described", exc_info=error)
    root = build(answer["snapshot"], details, origins, page.url)
    add_loose(root, loose)
    known = {node.ref: node for node in root.walk() if node.ref}
    return Sight(url=page.url, title=await page.title(), root=root, known=known)


async def describe(
    world: World,
    main: World | None,
    details: dict[str, Details],
    origins: dict[str, Details],
    loose: list[Loose],
) -> None:
    """What one frame knows of its elements."""
    said = await world.run(f"({script('describe.js')})()")
    origin = str(said["origin"])
    for ref, found in said["refs"].items():
        details[ref] = Details(origin=origin, **found)
    for ref in said["some"]:
        origins[frame_of(ref)] = Details(origin=origin)
    hidden = await closed_roots(world) if said["hosts"] else []
    heard = await listeners(main)
    if heard or hidden or said["quiet"]:
        loose.extend(await unspoken(world, origin, heard, hidden))
    await world.session.send("Runtime.releaseObjectGroup", {"objectGroup": GROUP})


async def listeners(main: World | None) -> list[int]:
    """The elements with a listener for clicks, by Chromium's numbers.

    Asked of the page's own world, whose `document` no script can replace: asked of another one, the renderer of
    Chromium 150 breaks at its next collection of garbage.
    """
    if main is None:
        return []
    sent = {"objectId": await main.object("document"), "depth": -1, "pierce": True}
    answer = await main.session.send("DOMDebugger.getEventListeners", sent)
    heard = (one.get("backendNodeId") for one in answer["listeners"] if one["type"] in HEARD)
    return list(dict.fromkeys(int(number) for number in heard if number))[:MOST_LISTENERS]


async def members(world: World, array: str) -> list[str]:
    """The objects in an array of objects."""
    answer = await world.session.send("Runtime.getProperties", {"objectId": array, "ownProperties": True})
    return [one["value"]["objectId"] for one in answer["result"] if one["name"].isdigit()]


async def closed_roots(world: World) -> list[int]:
    """The closed shadow roots below elements that look as if they had one."""
    found: list[int] = []
    for host in await members(world, await world.object("agentGateHosts")):
        sent = {"objectId": host, "depth": 1, "pierce": True}
        node = (await world.session.send("DOM.describeNode", sent))["node"]
        roots = node.get("shadowRoots") or ()
        found += [int(root["backendNodeId"]) for root in roots if root.get("shadowRootType") == "closed"]
    return found


async def unspoken(world: World, origin: str, heard: list[int], hidden: list[int]) -> list[Loose]:
    """Elements that react to clicks, or stand in closed shadow roots, with what can be said of them."""
    numbers = [*heard, *hidden]
    objects = await asyncio.gather(*(resolve(world, number) for number in numbers))
    given = [{"objectId": one} for one in objects if one]
    kept = [number for number, one in zip(numbers, objects, strict=True) if one]
    answer = await world.call(script("unspoken.js"), *given, by_value=False)
    records: list[dict[str, Any]] = await world.call("(all) => all.records", {"objectId": answer})
    elements = await members(
        world, await world.call("(all) => all.elements", {"objectId": answer}, by_value=False)
    )
    found: list[Loose] = []
    for index, record in enumerate(records):
        source = record.pop("source")
        number = kept[source] if source >= 0 else await number_of(world, elements[index])
        own, near, role, name, text, states = (
            record.pop(key) for key in ("own", "near", "role", "name", "text", "states")
        )
        found.append(
            Loose(
                ref=f"x{number}",
                near=near,
                own=own,
                role=role or CLICKABLE,
                name=name,
                text=text,
                states=states,
                details=Details(origin=origin, backend=number, **record),
            )
        )
    return found


async def resolve(world: World, number: int) -> str:
    """One element as an object of this world; empty where it belongs to another frame, or is gone."""
    try:
        sent = {"backendNodeId": number, "executionContextId": world.number, "objectGroup": GROUP}
        answer = await world.session.send("DOM.resolveNode", sent)
    except Exception:  # noqa: BLE001 -- Playwright's own error class, for whatever Chromium says
        return ""
    return str(answer["object"].get("objectId") or "")


async def number_of(world: World, element: str) -> int:
    answer = await world.session.send("DOM.describeNode", {"objectId": element})
    return int(answer["node"]["backendNodeId"])
