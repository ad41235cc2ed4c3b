"""`Act`: one call while it is carried out, and how its answer is put together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_gate.errors import InvalidArgs
from agent_gate.sources.browser.aiming import check_posts, check_same
from agent_gate.sources.browser.browsing import Browsing
from agent_gate.sources.browser.changes import changes
from agent_gate.sources.browser.facts import find
from agent_gate.sources.browser.logins import KeptLogins, no_login
from agent_gate.sources.browser.looking import UNSPOKEN, Sight
from agent_gate.sources.browser.settings import BrowserSettings
from agent_gate.sources.browser.tab import Tab
from agent_gate.sources.browser.tree import PageNode
from agent_gate.sources.browser.trim import Item, budget_for, open_items

if TYPE_CHECKING:
    from agent_gate.sources.browser.tool import BrowserTool

Block = Mapping[str, Any]
"""One block of an MCP result."""


def text(said: str) -> list[Block]:
    return [{"type": "text", "text": said}]


@dataclass(slots=True, eq=False)
class Act:
    """`facts` are what was decided on."""

    browsing: Browsing
    settings: BrowserSettings
    arguments: Mapping[str, Any]
    facts: Mapping[str, str] | None
    tool: "BrowserTool"
    caller: str
    seconds: float
    logins: KeptLogins | None = None
    before: Sequence[Item] = ()
    before_url: str = ""

    @property
    def tab(self) -> Tab:
        return self.browsing.page()

    async def find_login(self, origin: str) -> tuple[str, str]:
        if self.logins is None:
            raise InvalidArgs(no_login(origin))
        return await self.logins.find(origin, self.caller)

    async def aim(self) -> Sight:
        """A fresh snapshot in which the call still means what was decided on; raises where it does not."""
        sight = await self.tab.look(listeners_too=not self.has_roles())
        check_same(self.facts, self.tool.facts(self.browsing, self.arguments))
        self.before, self.before_url = sight.items, sight.url
        return sight

    def has_roles(self) -> bool:
        """Whether the call names elements, and only such as Playwright knows."""
        fields = self.arguments.get("fields") or ()
        refs = [str(one["ref"]) for one in (self.arguments, *fields) if "ref" in one]
        return bool(refs) and not any(ref.startswith(UNSPOKEN) for ref in refs)

    def node(self, name: str = "ref") -> PageNode:
        return find(self.tab, self.arguments[name])

    async def see(self) -> str:
        """The page as it is now, trimmed."""
        tab = self.tab
        sight = await tab.look()
        tab.groups.forget()
        view = open_items(sight.items, tab.groups, budget_for(sight.characters))
        return f"{heading(sight)}\n{view}"

    async def report(self, did: str) -> list[Block]:
        """What was done, and what it changed."""
        tab = self.browsing.tab
        if tab is None:
            return text(f"{did}\nThe page closed itself.")
        if tab.dialog is not None:
            return text(f"{did}\n{dialog_words(tab)}")
        await tab.settle()
        check_posts(tab)
        if tab.dialog_opened.is_set():
            return text(f"{did}\n{dialog_words(tab)}")
        before_url = self.before_url
        sight = await tab.look()
        items = sight.items
        changed = changes(self.before, items) if before_url == sight.url and self.before else None
        if changed is None:
            tab.groups.forget()
            view = open_items(items, tab.groups, budget_for(sight.characters))
            return text(f"{did}\n{heading(sight)}\n{view}")
        return text(f"{did}\n{changed or 'Nothing visible changed.'}")


def heading(sight: Sight) -> str:
    return f"Page: {sight.title[:120]} ({sight.url[:300]})"


def dialog_words(tab: Tab) -> str:
    dialog = tab.dialog
    assert dialog is not None
    return f'A dialog is open: {dialog.type} "{dialog.message[:300]}". Answer it with browser_dialog'
