"""`browser_login`: fills the operator's login for the page's own origin, which the agent never sees."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_gate.errors import InvalidArgs
from agent_gate.sources.browser.act import Act, Block
from agent_gate.sources.browser.aiming import do, guarded, locate
from agent_gate.sources.browser.browsing import Browsing
from agent_gate.sources.browser.logins import no_login, origins
from agent_gate.sources.browser.tab import Tab
from agent_gate.sources.browser.tool import define
from agent_gate.sources.browser.tools.acting import page_in, submitted, write
from agent_gate.sources.browser.tree import PageNode

NO_FIELD = "This page has no password field of its own origin. Open the page with the login form"
USER_TYPES = frozenset({"text", "email", "tel", "", "search"})


def fields(tab: Tab) -> tuple[PageNode | None, PageNode]:
    """The field for the user, which stands before that of the password, and the latter; both of the page's origin."""
    before: PageNode | None = None
    for node in tab.sight.root.walk() if tab.sight else ():
        if node.details.origin != tab.origin or not node.ref:
            continue
        if node.details.secret and node.details.type == "password":
            return before, node
        if node.role in ("textbox", "searchbox", "combobox") and node.details.type in USER_TYPES:
            before = node
    raise InvalidArgs(NO_FIELD)


def login_facts(browsing: Browsing | None, arguments: Mapping[str, Any]) -> dict[str, str]:
    tab = page_in(browsing)
    assert browsing is not None
    if tab.origin not in origins(browsing.settings.logins):
        raise InvalidArgs(no_login(tab.origin))
    _, password = fields(tab)
    facts = {"origin": tab.origin, "signs_in": tab.origin}
    if arguments.get("submit"):
        facts["submits"] = password.details.form or password.details.submits or tab.origin
    return facts


async def login(act: Act) -> Sequence[Block]:
    await act.aim()
    tab = act.tab
    user, password = await act.find_login(tab.origin)
    where, secret = fields(tab)
    if user and where is not None:
        place = await locate(tab, where)
        async with guarded(tab, place, ""):
            await write(tab, place, user)
    place = await locate(tab, secret)
    async with guarded(tab, place, submitted(act)):
        await write(tab, place, password)
        if act.arguments.get("submit"):
            await do(tab.page.keyboard.press("Enter"), tab)
    return await act.report("Filled in the login.")


TOOLS = (
    define(
        "login",
        "Fill the login that is kept for this page's origin; `submit` sends it",
        {"submit": {"type": "boolean", "description": "Press Enter after it"}},
        template="{facts.origin}",
        ask="Sign in on {facts.origin}?",
        consequences=["signs_in", "submits"],
        facts=login_facts,
        perform=login,
    ),
)
