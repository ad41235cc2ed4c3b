"""An agent that sees a saved page only through the tools' text, and the truth about what it could reach there."""

import re
from contextlib import asynccontextmanager

from agent_gate.core.ports import SystemClock
from agent_gate.sources.browser.act import Act
from agent_gate.sources.browser.browsing import Browsing
from agent_gate.sources.browser.engine import BrowserEngine
from agent_gate.sources.browser.looking import resolve
from agent_gate.sources.browser.settings import BrowserSettings
from agent_gate.sources.browser.tools import TOOLS

REFERENCE = re.compile(r"\[((?:f\d+)?[ex]\d+)\]")
GROUP = re.compile(r"\[(g\d+)\]")
CLOSEST = """(node) => { for (let at = node; at; at = at.parentNode || at.host || null)
  if (at.dataset && at.dataset.mark) return at.dataset.mark; return ""; }"""
MARKS = f"""(() => {{ const closest = {CLOSEST}, found = {{}};
  const walk = (root) => {{ for (const one of root.querySelectorAll("*")) {{
    if (one._ariaRef) found[one._ariaRef.ref] = closest(one); if (one.shadowRoot) walk(one.shadowRoot); }} }};
  walk(document); return found; }})()"""
MOST_OPENED = 500


class Reader:
    """One session. `seen` is everything that was shown of the page in front, by the reference of the group it was in."""

    def __init__(self, browsing, settings):
        self.browsing, self.settings, self.seen = browsing, settings, {}

    async def use(self, tool, **arguments):
        chosen = TOOLS[f"browser_{tool}"]
        act = Act(
            browsing=self.browsing,
            settings=self.settings,
            arguments=arguments,
            facts=chosen.facts(self.browsing, arguments),
            tool=chosen,
            caller="reader",
            seconds=20.0,
            logins=None,
        )
        return (await chosen.perform(act))[0]["text"]

    async def open(self, url):
        await self.use("navigate", url=url)
        await self.page.wait_for_load_state("load")
        return await self.look()

    @property
    def page(self):
        return self.browsing.page().page

    async def look(self):
        """The default snapshot, from which everything else has to be found."""
        self.seen = {"": await self.use("snapshot")}
        return self.seen[""]

    async def open_groups(self):
        """Open every group that was named, those inside of groups too; everything that was shown."""
        waiting = GROUP.findall(self.seen[""])
        while waiting:
            ref = waiting.pop()
            if ref in self.seen:
                continue
            assert len(self.seen) < MOST_OPENED, "groups without an end"
            self.seen[ref] = await self.use("snapshot", ref=ref)
            waiting += GROUP.findall(self.seen[ref])
        return "\n".join(self.seen.values())

    async def marks(self, text):
        """For each reference in a text the number that the page itself gave to what is behind it."""
        worlds = list(self.browsing.page().worlds.references())
        known = {}
        for world in worlds:
            known |= await world.run(MARKS)
        found = {}
        for ref in dict.fromkeys(REFERENCE.findall(text)):
            found[ref] = known.get(ref) or (await mark_by_number(worlds, ref) if ref[0] == "x" else "")
        return {ref: mark for ref, mark in found.items() if mark}

    async def truth(self):
        """What can be acted on, as the page itself says."""
        return await self.page.evaluate("window.truth()")


async def mark_by_number(worlds, ref):
    for world in worlds:
        if element := await resolve(world, int(ref[1:])):
            return await world.call(CLOSEST, {"objectId": element})
    return ""


@asynccontextmanager
async def reader(folder, **given):
    """A session in a real browser that may reach this machine."""
    settings = BrowserSettings(allow_private=("127.0.0.1",), **given)
    engine = BrowserEngine(settings, folder, lambda why: None)
    try:
        async with Browsing("pages", "reader", engine, settings, SystemClock()) as browsing:
            yield Reader(browsing, settings)
    finally:
        await engine.stop()
