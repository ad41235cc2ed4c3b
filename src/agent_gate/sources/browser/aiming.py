"""Acts on what was decided on and on nothing else: a fresh snapshot before, a guard in front of the events meanwhile."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_gate.core.facts import CHANGED
from agent_gate.errors import Forbidden, InvalidArgs, UpstreamError
from agent_gate.sources.browser.engine import first_line, page_errors
from agent_gate.sources.browser.facts import stale
from agent_gate.sources.browser.looking import find_number, look, resolve
from agent_gate.sources.browser.tab import KEY, Tab, origin_of
from agent_gate.sources.browser.tree import PageNode, described
from agent_gate.sources.browser.worlds import World

if TYPE_CHECKING:
    from playwright.async_api import Locator

ACTION_MS = 5_000
DISARM_SECONDS = 2.0
SECOND_LOOKS = 2
NOBODY = "() => agentGate.arm(document.createElement('i'), '', '')"
ARM = "(element, name, submits) => agentGate.arm(element, name, submits)"
ARM_FOCUS = "(submits) => agentGate.arm(null, '', submits)"


@dataclass(frozen=True, slots=True)
class Place:
    """An element where it is: its number, and itself as an object of its frame's guard."""

    node: PageNode
    guard: World
    element: str
    number: int


def check_same(then: Mapping[str, str] | None, now: Mapping[str, str]) -> None:
    """Raise where what an act is about is not what was decided on."""
    before = then or {}
    changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    if changed:
        raise Forbidden(CHANGED.format(names=", ".join(changed)[:200]))


async def locate(tab: Tab, node: PageNode) -> Place:
    """Find an element of the last snapshot. Raises where it is gone."""
    for world in tab.worlds.references():
        guard = tab.worlds.guard_of(world.frame)
        if guard is None:
            continue
        number = node.details.backend or await find_number_by_ref(world, node.ref)
        element = await resolve(guard, number) if number else ""
        if element and await is_inside(guard, element):
            return Place(node, guard, element, number)
    raise InvalidArgs(
        stale(tab, node.ref) if node.ref not in (tab.sight.known if tab.sight else {}) else gone(node)
    )


async def is_inside(guard: World, element: str) -> bool:
    """Whether an element stands in this frame: one of another frame of the same process can be resolved here too."""
    try:
        return bool(
            await guard.call("(element) => element.ownerDocument === document", {"objectId": element})
        )
    except Exception:  # noqa: BLE001 -- a frame that is going away, or of another origin
        return False


def gone(node: PageNode) -> str:
    return f"{described(node)} [{node.ref}] has just gone from the page. Look with browser_snapshot"


async def find_number_by_ref(world: World, ref: str) -> int:
    try:
        element = await world.find_object(f"agentGateSight.find({ref!r})")
        return await find_number(world, element) if element else 0
    except Exception:  # noqa: BLE001 -- a frame that is going away
        return 0


@asynccontextmanager
async def guarded(
    tab: Tab, place: Place | None, submits: str, *, scripts: bool = False
) -> AsyncIterator[None]:
    """While this lasts, events of ours reach that element as it was decided on, and nothing else.

    What the page sends meanwhile, and until the act is over, is held back where no submission was decided on: forms,
    and with `scripts` what scripts send by themselves.
    """
    await (tab.posts.release() if submits else tab.posts.hold(scripts=scripts))
    tab.acted_on = place.node.ref if place else KEY
    if place is None:
        for world in tab.worlds.guards():
            with contextlib.suppress(Exception):
                await world.call(ARM_FOCUS, submits)
    else:
        await arm(tab, place, submits)
    try:
        yield
    finally:
        report = await disarm(tab)
    blame(tab, place, report)


async def arm(tab: Tab, place: Place, submits: str) -> None:
    for world in tab.worlds.guards():
        if world.id != place.guard.id:
            with contextlib.suppress(Exception):
                await world.call(NOBODY)
    armed = await place.guard.call(ARM, {"objectId": place.element}, place.node.name, submits)
    if armed["known"]:
        return
    # Its name is put together in a way that the guard does not follow, so that further snapshots have to tell.
    for _ in range(SECOND_LOOKS):
        again = None if armed["other"] else (await look(tab.page, tab.worlds)).known.get(place.node.ref)
        same = again is not None and (again.role, again.name) == (place.node.role, place.node.name)
        element = await resolve(place.guard, place.number)
        now = await place.guard.call(ARM, {"objectId": element}, place.node.name, submits) if element else {}
        if not same or now.get("print") != armed["print"]:
            await disarm(tab)
            raise Forbidden(CHANGED.format(names="element"))


async def disarm(tab: Tab) -> Mapping[str, Any]:
    """What the guards saw; a frame that is gone has nothing to tell."""
    found: dict[str, Any] = {}

    async def one(world: World) -> None:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(DISARM_SECONDS):
                said = await world.run("agentGate.disarm()")
                if said and said.get("blocked"):
                    found.update(said)

    if tab.dialog is None:
        await asyncio.gather(*map(one, tab.worlds.guards()))
    return found


def blame(tab: Tab, place: Place | None, report: Mapping[str, Any]) -> None:
    """Say why an act did not go through."""
    why = report.get("blocked")
    if not why:
        return
    if why in ("submits", "elsewhere"):
        tab.learned[place.node.ref if place else KEY] = str(report.get("submission") or "")
        raise Forbidden(
            f"This would submit a form ({report.get('submission')}), which was not decided on, so it was kept from it. "
            "Call again: now it counts as a submission"
        )
    name = described(place.node) if place else "what has the focus"
    raise Forbidden(f"The page changed {name} while the call was on its way, so nothing was done. Look again")


def check_posts(tab: Tab) -> None:
    """Say that a script of the page wanted to send something, which was held back."""
    if tab.posts.held:
        method, url = tab.posts.held
        where = f"{method} {origin_of(url)}"
        tab.learned[tab.acted_on] = where
        tab.posts.held = None
        raise Forbidden(
            f"This would submit something ({where}), which was not decided on, so it was kept from it. "
            "Call again: now it counts as a submission"
        )


def locator(tab: Tab, node: PageNode) -> "Locator":
    return tab.page.locator(f"aria-ref={node.ref}")


async def do(work: Awaitable[Any], tab: Tab) -> None:
    """Let Playwright act. A dialog that opens meanwhile ends the waiting: the act goes on once it is answered."""
    task = asyncio.ensure_future(work)
    opened = asyncio.ensure_future(tab.dialog_opened.wait())
    try:
        await asyncio.wait({task, opened}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        opened.cancel()
        if not task.done() and tab.dialog is None:
            task.cancel()
    if not task.done():
        tab.unfinished = task
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return
    try:
        task.result()
    except page_errors() as error:
        if "Timeout" in str(error) and not await tab.answers():
            raise TimeoutError from None
        raise UpstreamError(explain(error)) from None


def explain(error: Exception) -> str:
    """What kept an act from happening, in the words of a person."""
    text = str(error)
    if "intercepts pointer events" in text:
        line = next(line for line in text.splitlines() if "intercepts pointer events" in line)
        return f"Something lies over it: {line.strip(' -')[:200]}. Close that first, or scroll"
    if "Timeout" in text:
        reasons = [line.strip(" -") for line in text.splitlines() if "element is" in line or "not" in line]
        return f"It could not be acted on in time: {reasons[-1][:200] if reasons else first_line(error)}"
    return first_line(error)


async def find_middle(place: Place) -> tuple[float, float]:
    """Where an element is on the page, scrolled into sight, for those that only Chromium knows."""
    session = place.guard.session
    with contextlib.suppress(Exception):
        await session.send("DOM.scrollIntoViewIfNeeded", {"backendNodeId": place.number})
    try:
        quads = (await session.send("DOM.getContentQuads", {"backendNodeId": place.number}))["quads"]
    except Exception:  # noqa: BLE001 -- whatever Chromium says of an element without a box
        quads = []
    if not quads:
        raise UpstreamError(f"{described(place.node)} cannot be seen, so it cannot be acted on")
    xs, ys = quads[0][0::2], quads[0][1::2]
    return sum(xs) / 4, sum(ys) / 4
