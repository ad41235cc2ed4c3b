"""Tools for files: download and upload. A file travels inside the result or the arguments, never by a path."""

import asyncio
import base64
import binascii
import contextlib
import mimetypes
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_gate.errors import InvalidArgs, UpstreamError
from agent_gate.sources.browser.act import Act, Block, text
from agent_gate.sources.browser.aiming import ACTION_MS, do, guarded, locate, locator
from agent_gate.sources.browser.browsing import Browsing
from agent_gate.sources.browser.engine import first_line, page_errors
from agent_gate.sources.browser.facts import about_click, about_element
from agent_gate.sources.browser.tool import ELEMENT, REF, define
from agent_gate.sources.browser.tools.acting import ABOUT, page_in, press, submitted
from agent_gate.sources.browser.tree import described

if TYPE_CHECKING:
    from playwright.async_api import Download

UNSAFE = re.compile(r"[^\w.() -]")
MOST_UPLOAD = 20 << 20
TEXTUAL = re.compile(r"text/|application/(json|xml|csv|javascript)|.*\+(json|xml)$")


def download_facts(browsing: Browsing | None, arguments: Mapping[str, Any]) -> dict[str, str]:
    facts = about_click(page_in(browsing), arguments["ref"])
    return facts | {"downloads": facts.get("leads_to", "a file")}


async def download(act: Act) -> Sequence[Block]:
    await act.aim()
    tab, node = act.tab, act.node()
    place = await locate(tab, node)
    tab.wants_download = True
    try:
        waiting = tab.page.expect_download(timeout=max(1.0, act.seconds - 2) * 1000)
        async with waiting as offered, guarded(tab, place, submitted(act), scripts=True):
            await press(act, place)
        taken = await offered.value
        body = await read_download(taken, act.settings.max_download)
    except page_errors() as error:
        raise UpstreamError(f"{described(node)} did not lead to a file: {first_line(error)}") from None
    finally:
        tab.wants_download = False
    return file_blocks(act, safe_name(taken.suggested_filename), body)


async def read_download(taken: "Download", most: int) -> bytes:
    """The whole file, or `UpstreamError` where it failed or is larger than it may be."""
    getting = asyncio.ensure_future(taken.path())
    try:
        return await asyncio.to_thread(read_bounded, Path(await getting), most)
    finally:
        getting.cancel()
        with contextlib.suppress(Exception):
            await taken.delete()


def read_bounded(path: Path, most: int) -> bytes:
    size = path.stat().st_size
    if size > most:
        raise UpstreamError(f"The file has {size} bytes; at most {most} are taken (browser.max_download)")
    return path.read_bytes()


def safe_name(name: str) -> str:
    return UNSAFE.sub("_", name.replace("\\", "/").rpartition("/")[2])[:100].strip(". ") or "file"


def file_blocks(act: Act, name: str, body: bytes) -> list[Block]:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    resource: dict[str, Any] = {"uri": f"browser://{act.browsing.id}/{name}", "mimeType": kind}
    try:
        if not TEXTUAL.match(kind):
            raise ValueError(kind)
        resource["text"] = body.decode("utf-8")
    except ValueError:
        resource["blob"] = base64.b64encode(body).decode()
    return [
        *text(f"Downloaded {name}, {len(body)} bytes, {kind}"),
        {"type": "resource", "resource": resource},
    ]


def upload_facts(browsing: Browsing | None, arguments: Mapping[str, Any]) -> dict[str, str]:
    facts = about_element(page_in(browsing), arguments["ref"])
    return facts | {"uploads": ", ".join(str(file["name"]) for file in arguments["files"])[:200]}


async def upload(act: Act) -> Sequence[Block]:
    await act.aim()
    tab, node = act.tab, act.node()
    payloads = [payload(file) for file in act.arguments["files"]]
    if sum(len(one["buffer"]) for one in payloads) > MOST_UPLOAD:
        raise InvalidArgs(f"The files are larger than {MOST_UPLOAD >> 20} MB together")
    place = await locate(tab, node)
    try:
        async with guarded(tab, place, ""):
            if node.details.type == "file":
                await do(locator(tab, node).set_input_files(payloads, timeout=ACTION_MS), tab)
            else:
                async with tab.page.expect_file_chooser(timeout=ACTION_MS) as chosen:
                    await press(act, place)
                await (await chosen.value).set_files(payloads)
    except page_errors() as error:
        raise UpstreamError(f"{described(node)} takes no files: {first_line(error)}") from None
    act.browsing.notes.clear()
    return await act.report(f"Gave {', '.join(one['name'] for one in payloads)} to {described(node)}.")


def payload(file: Mapping[str, Any]) -> Any:
    name = safe_name(str(file["name"]))
    if ("text" in file) == ("base64" in file):
        raise InvalidArgs(f"Give either text or base64 for {name}")
    try:
        body = file["text"].encode() if "text" in file else base64.b64decode(file["base64"], validate=True)
    except binascii.Error:
        raise InvalidArgs(f"base64 of {name} is not base64") from None
    return {
        "name": name,
        "mimeType": mimetypes.guess_type(name)[0] or "application/octet-stream",
        "buffer": body,
    }


TOOLS = (
    define(
        "download",
        "Click something that leads to a file, and get the file",
        {"ref": REF, "element": ELEMENT},
        required=["ref"],
        template=ABOUT,
        ask="Download the file behind “{facts.element}” on {facts.origin}?",
        consequences=["downloads", "submits"],
        kept=True,
        facts=download_facts,
        perform=download,
    ),
    define(
        "upload",
        "Give files to a file field or to a button that opens a file chooser",
        {
            "ref": REF,
            "element": ELEMENT,
            "files": {
                "type": "array",
                "minItems": 1,
                "maxItems": 10,
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "minLength": 1, "maxLength": 200},
                        "text": {"type": "string"},
                        "base64": {"type": "string"},
                    },
                    "required": ["name"],
                    "additionalProperties": False,
                },
            },
        },
        required=["ref", "files"],
        template=ABOUT,
        ask="Upload {facts.uploads} to {facts.origin}?",
        consequences=["uploads"],
        facts=upload_facts,
        perform=upload,
    ),
)
