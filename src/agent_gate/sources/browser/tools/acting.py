"""Tools that act on an element: click, type, fill_form, select_option, hover, press_key, dialog."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from agent_gate.errors import GatewayError, InvalidArgs
from agent_gate.sources.browser.act import Act, Block, text
from agent_gate.sources.browser.aiming import ACTION_MS, Place, do, find_middle, guarded, locate, locator
from agent_gate.sources.browser.browsing import NO_PAGE, Browsing
from agent_gate.sources.browser.facts import (
    about_choice,
    about_click,
    about_element,
    about_key,
    about_page,
    find,
)
from agent_gate.sources.browser.tab import KEY, Tab, answer_dialog
from agent_gate.sources.browser.tool import ELEMENT, REF, define
from agent_gate.sources.browser.tree import PageNode, described

MODIFIERS = ["Alt", "Control", "ControlOrMeta", "Meta", "Shift"]


def page_in(browsing: Browsing | None) -> Tab:
    if browsing is None or browsing.tab is None:
        raise InvalidArgs(NO_PAGE)
    return browsing.tab


def click_facts(browsing: Browsing | None, arguments: Mapping[str, Any]) -> dict[str, str]:
    return about_click(page_in(browsing), arguments["ref"])


def element_facts(browsing: Browsing | None, arguments: Mapping[str, Any]) -> dict[str, str]:
    return about_element(page_in(browsing), arguments["ref"])


def submitted(act: Act) -> str:
    """Where the call may submit a form to, as it was decided."""
    return (act.facts or {}).get("submits", "")


async def click(act: Act) -> Sequence[Block]:
    await act.aim()
    node = act.node()
    place = await locate(act.tab, node)
    async with guarded(act.tab, place, submitted(act), scripts=True):
        await press(act, place)
    return await act.report(f"Clicked {described(node)}.")


async def press(act: Act, place: Place) -> None:
    tab, given = act.tab, act.arguments
    button: Any = given.get("button") or "left"
    twice = bool(given.get("doubleClick"))
    modifiers = given.get("modifiers") or []
    if place.node.details.backend:
        x, y = await find_middle(place)
        await do(tab.page.mouse.click(x, y, button=button, click_count=2 if twice else 1), tab)
        return
    where = locator(tab, place.node)
    options: dict[str, Any] = {"button": button, "modifiers": modifiers, "timeout": ACTION_MS}
    await do(where.dblclick(**options) if twice else where.click(**options), tab)


async def hover(act: Act) -> Sequence[Block]:
    await act.aim()
    node = act.node()
    if node.details.backend:
        x, y = await find_middle(await locate(act.tab, node))
        await act.tab.page.mouse.move(x, y)
    else:
        await do(locator(act.tab, node).hover(timeout=ACTION_MS), act.tab)
    return await act.report(f"Pointed at {described(node)}.")


def type_facts(browsing: Browsing | None, arguments: Mapping[str, Any]) -> dict[str, str]:
    tab, ref = page_in(browsing), arguments["ref"]
    facts, details = about_choice(tab, ref), find(tab, ref).details
    if arguments.get("submit"):
        submits = details.submits or details.form or facts.get("submits") or tab.learned.get(KEY, "")
        if submits:
            facts["submits"] = submits
    return facts


async def type_text(act: Act) -> Sequence[Block]:
    await act.aim()
    node, sends = act.node(), bool(act.arguments.get("submit"))
    place = await locate(act.tab, node)
    async with guarded(act.tab, place, submitted(act), scripts=sends):
        await write(act.tab, place, act.arguments["text"], slowly=bool(act.arguments.get("slowly")))
        if sends:
            await do(act.tab.page.keyboard.press("Enter"), act.tab)
    return await act.report(f"Typed into {described(node)}.")


async def write(tab: Tab, place: Place, words: str, *, slowly: bool = False) -> None:
    node = place.node
    if node.details.backend:
        await place.guard.session.send("DOM.focus", {"backendNodeId": place.number})
        await do(tab.page.keyboard.insert_text(words), tab)
        return
    where = locator(tab, node)
    if slowly:
        await do(where.press_sequentially(words, delay=30, timeout=ACTION_MS + 40 * len(words)), tab)
    else:
        await do(where.fill(words, timeout=ACTION_MS), tab)


def form_facts(browsing: Browsing | None, arguments: Mapping[str, Any]) -> dict[str, str]:
    tab = page_in(browsing)
    found = [about_element(tab, field["ref"]) for field in arguments["fields"]]
    origins = sorted({facts["origin"] for facts in found})
    names = ", ".join(facts["element"] for facts in found)
    return {"origin": " ".join(origins), "page": found[0]["page"], "element": names}


async def fill_form(act: Act) -> Sequence[Block]:
    """Each field on its own: one that fails does not keep the others from being filled."""
    await act.aim()
    lines = []
    for field in act.arguments["fields"]:
        node = find(act.tab, field["ref"])
        try:
            place = await locate(act.tab, node)
            async with guarded(act.tab, place, ""):
                await fill_field(act.tab, place, field)
            lines.append(f"ok: {described(node)}")
        except GatewayError as error:
            lines.append(f"failed: {described(node)}: {error.message}")
    done = await act.report("\n".join(lines))
    if all(line.startswith("failed") for line in lines):
        return [{**done[0], "isError": True}, *done[1:]]
    return done


async def fill_field(tab: Tab, place: Place, field: Mapping[str, Any]) -> None:
    kind, value = field.get("type") or usual_type(place.node), str(field["value"])
    where = locator(tab, place.node)
    if kind in ("checkbox", "radio"):
        wanted = value.strip().lower() not in ("", "false", "off", "no", "0")
        await do(where.set_checked(wanted, timeout=ACTION_MS), tab)
    elif kind == "combobox" and any(child.role == "option" for child in place.node.walk()):
        await do(where.select_option(value, timeout=ACTION_MS), tab)
    else:
        await write(tab, place, value)


def usual_type(node: PageNode) -> str:
    return node.role if node.role in ("checkbox", "radio", "combobox") else "textbox"


async def select_option(act: Act) -> Sequence[Block]:
    await act.aim()
    node = act.node()
    place = await locate(act.tab, node)
    async with guarded(act.tab, place, submitted(act), scripts=True):
        await do(locator(act.tab, node).select_option(act.arguments["values"], timeout=ACTION_MS), act.tab)
    return await act.report(f"Selected {', '.join(act.arguments['values'])} in {described(node)}.")


def choice_facts(browsing: Browsing | None, arguments: Mapping[str, Any]) -> dict[str, str]:
    return about_choice(page_in(browsing), arguments["ref"])


def key_facts(browsing: Browsing | None, arguments: Mapping[str, Any]) -> dict[str, str]:
    return about_key(page_in(browsing), arguments["key"])


async def press_key(act: Act) -> Sequence[Block]:
    await act.aim()
    async with guarded(act.tab, None, submitted(act), scripts=True):
        await do(act.tab.page.keyboard.press(act.arguments["key"]), act.tab)
    return await act.report(f"Pressed {act.arguments['key']}.")


def dialog_facts(browsing: Browsing | None, _: Mapping[str, Any]) -> dict[str, str]:
    tab = page_in(browsing)
    if tab.dialog is None:
        raise InvalidArgs("No dialog is open")
    return about_page(tab) | {"dialog": tab.dialog.type, "message": tab.dialog.message[:200]}


async def answer(act: Act) -> Sequence[Block]:
    tab = act.tab
    dialog, accept = tab.dialog, bool(act.arguments["accept"])
    if dialog is None:
        raise InvalidArgs("No dialog is open")
    tab.forget_dialog()
    await answer_dialog(dialog, accept=accept, text=act.arguments.get("text"))
    if tab.unfinished is not None:
        unfinished, tab.unfinished = tab.unfinished, None
        with contextlib.suppress(Exception):
            await unfinished
    act.before, act.before_url = (), ""
    said = "Accepted" if accept else "Dismissed"
    if tab.dialog is not None:
        return await act.report(f"{said} the dialog.")
    await tab.settle()
    return text(f"{said} the dialog.\n{await act.see()}")


TARGET = {"ref": REF, "element": ELEMENT}
ABOUT = "{facts.origin}, {facts.element}"
TOOLS = (
    define(
        "click",
        "Click an element of the page",
        {
            **TARGET,
            "button": {"enum": ["left", "right", "middle"]},
            "doubleClick": {"type": "boolean"},
            "modifiers": {"type": "array", "items": {"enum": MODIFIERS}, "maxItems": 4},
        },
        required=["ref"],
        template=ABOUT,
        ask="Click “{facts.element}” on {facts.origin}?",
        consequences=["submits", "downloads"],
        facts=click_facts,
        perform=click,
    ),
    define(
        "type",
        "Type text into a field; `submit` presses Enter after it",
        {
            **TARGET,
            "text": {"type": "string", "maxLength": 20_000},
            "submit": {"type": "boolean"},
            "slowly": {"type": "boolean", "description": "Key by key, for pages that listen to each"},
        },
        required=["ref", "text"],
        template=ABOUT,
        ask="Type into “{facts.element}” on {facts.origin}?",
        consequences=["submits"],
        facts=type_facts,
        perform=type_text,
    ),
    define(
        "fill_form",
        "Fill several fields of a form at once, without sending it",
        {
            "fields": {
                "type": "array",
                "minItems": 1,
                "maxItems": 50,
                "items": {
                    "type": "object",
                    "properties": {
                        "ref": REF,
                        "name": {"type": "string", "maxLength": 200},
                        "type": {"enum": ["textbox", "checkbox", "radio", "combobox"]},
                        "value": {"type": "string", "maxLength": 20_000},
                    },
                    "required": ["ref", "value"],
                    "additionalProperties": False,
                },
            }
        },
        required=["fields"],
        template=ABOUT,
        ask="Fill in {facts.element} on {facts.origin}?",
        facts=form_facts,
        perform=fill_form,
    ),
    define(
        "select_option",
        "Choose from a list, by label or value",
        {
            **TARGET,
            "values": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 50},
        },
        required=["ref", "values"],
        template=ABOUT,
        consequences=["submits"],
        facts=choice_facts,
        perform=select_option,
    ),
    define(
        "hover",
        "Point at an element",
        TARGET,
        required=["ref"],
        template=ABOUT,
        facts=element_facts,
        perform=hover,
    ),
    define(
        "press_key",
        "Press a key, such as Enter, Tab, ArrowDown or Control+A",
        {"key": {"type": "string", "minLength": 1, "maxLength": 40}},
        required=["key"],
        template="{facts.origin}, {facts.key}",
        ask="Press {facts.key} on {facts.origin}?",
        consequences=["submits"],
        facts=key_facts,
        perform=press_key,
    ),
    define(
        "dialog",
        "Answer the dialog that a page opened (alert, confirm, prompt)",
        {"accept": {"type": "boolean"}, "text": {"type": "string", "maxLength": 2_000}},
        required=["accept"],
        template="{facts.origin}, {facts.message}",
        ask="Answer the dialog “{facts.message}” on {facts.origin}?",
        facts=dialog_facts,
        perform=answer,
    ),
)
