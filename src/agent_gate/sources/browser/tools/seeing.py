"""Tools that look: snapshot, screenshot, console, network, eval, pdf."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent_gate.errors import InvalidArgs, UpstreamError
from agent_gate.sources.browser.act import Act, Block, heading, text
from agent_gate.sources.browser.engine import first_line, page_errors
from agent_gate.sources.browser.facts import about_page, stale
from agent_gate.sources.browser.pictures import take
from agent_gate.sources.browser.tool import ACTS, READS, REF, define
from agent_gate.sources.browser.tools.moving import page_facts
from agent_gate.sources.browser.tree import PageNode
from agent_gate.sources.browser.trim import BUDGET, open_items, simplify
from agent_gate.sources.browser.whole import whole

LONGEST_VALUE = 5_000
SHOWN_LINES = 50


async def snapshot(act: Act) -> Sequence[Block]:
    ref, full = act.arguments.get("ref"), bool(act.arguments.get("full"))
    tab = act.tab
    if ref and ref in tab.groups.items:
        view = open_items(tab.groups.items[ref], tab.groups, BUDGET)
        return text(f"In group {ref}:\n{view}")
    if not ref and not full:
        return text(await act.see())
    sight = await tab.look()
    if not ref:
        return text(f"{heading(sight)}\n{whole(sight.root)}")
    node = sight.known.get(ref)
    if node is None:
        raise InvalidArgs(stale(tab, ref))
    below = PageNode("page", children=node.children) if node.children else PageNode("page", children=[node])
    if full or any(child.role == "option" for child in node.children):
        return text(f"In {ref}:\n{whole(below)}")
    view = open_items(simplify(below), tab.groups, BUDGET)
    return text(f"In {ref}:\n{view or 'nothing'}")


async def screenshot(act: Act) -> Sequence[Block]:
    picture = await take(act.tab, full=bool(act.arguments.get("fullPage")))
    act.browsing.last_picture = picture
    image = {"type": "image", "data": base64.b64encode(picture).decode(), "mimeType": "image/jpeg"}
    return [*text(f"{act.tab.page.url[:300]}"), image]


async def console(act: Act) -> Sequence[Block]:
    return text("\n".join(list(act.tab.console)[-SHOWN_LINES:]) or "Nothing was written to the console.")


async def network(act: Act) -> Sequence[Block]:
    return text("\n".join(list(act.tab.network)[-SHOWN_LINES:]) or "Nothing was requested.")


def eval_facts(browsing: Any, arguments: Mapping[str, Any]) -> dict[str, str]:
    return about_page(browsing.tab if browsing else None) | {"runs": str(arguments["expression"])[:200]}


async def evaluate(act: Act) -> Sequence[Block]:
    await act.aim()
    try:
        value = await act.tab.page.evaluate(act.arguments["expression"])
    except page_errors() as error:
        raise UpstreamError(f"The script failed: {first_line(error)}") from None
    said = json.dumps(value, ensure_ascii=False, default=str)
    more = f"… {len(said)} characters in all" if len(said) > LONGEST_VALUE else ""
    return text(f"{said[:LONGEST_VALUE]}{more}")


async def pdf(act: Act) -> Sequence[Block]:
    body = await act.tab.page.pdf(print_background=True)
    resource = {
        "uri": f"browser://{act.browsing.id}/page.pdf",
        "mimeType": "application/pdf",
        "blob": base64.b64encode(body).decode(),
    }
    return [*text(f"The page as PDF, {len(body)} bytes"), {"type": "resource", "resource": resource}]


TOOLS = (
    define(
        "snapshot",
        "See the page as text with references; `ref` opens a group or an element, `full` shows everything",
        {"full": {"type": "boolean"}, "ref": {**REF, "description": "A group such as g3, or an element"}},
        template="{facts.origin}",
        traits=READS,
        facts=page_facts,
        perform=snapshot,
    ),
    define(
        "screenshot",
        "See the page as a picture",
        {"fullPage": {"type": "boolean", "description": "All of it, not only what is in sight"}},
        template="{facts.origin}",
        traits=READS,
        kept=True,
        facts=page_facts,
        perform=screenshot,
    ),
    define(
        "console",
        "What the page wrote to its console",
        template="{facts.origin}",
        traits=READS,
        facts=page_facts,
        perform=console,
    ),
    define(
        "network",
        "The latest requests of the page",
        template="{facts.origin}",
        traits=READS,
        facts=page_facts,
        perform=network,
    ),
    define(
        "eval",
        "Run JavaScript in the page and see its value",
        {"expression": {"type": "string", "minLength": 1, "maxLength": 20_000}},
        required=["expression"],
        template="{facts.origin}",
        traits=ACTS,
        ask="Run a script on {facts.origin}?",
        consequences=["runs"],
        facts=eval_facts,
        perform=evaluate,
    ),
    define(
        "pdf",
        "The page as a PDF file",
        template="{facts.origin}",
        traits=READS,
        kept=True,
        facts=page_facts,
        perform=pdf,
    ),
)
