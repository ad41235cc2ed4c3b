"""How much an agent has to read to act on a page, and what an act costs: `python -m bench.browser`.

The pages of tests/browser/pages, each seen through this gateway's browser, `@playwright/mcp` and `chrome-devtools-mcp`
over MCP. The pages say themselves what can be acted on; an element counts as reachable where a reference that is shown,
or that a group shows when it is opened, is its own or of something in it. Costs are of the whole process tree, the
browser's processes too. Names of pages may be given; peers that do not install are left out, with the reason. It ends
by itself: what is behind the references of one page is looked up for so many seconds, and a page that takes longer
than it may is left; the table says both.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import httpx2
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.browser.pages import PAGES, TEXTS, served
from tests.browser.pages.reach import CLOSEST, reader

from agent_gate.errors import DependencyUnavailable
from agent_gate.sources.browser.finding import find_browser
from bench.catalogs import LeftOut, Server, command, install, npm
from bench.load import TOKEN
from bench.machine import CACHE, cpu_us, free_port
from bench.subjects import AGENT_GATE

PLAYWRIGHT = npm("playwright", "@playwright/mcp", "0.0.83")
DEVTOOLS = npm("devtools", "chrome-devtools-mcp", "1.11.0")
CLICKS, AT_ONCE = 3, 100
LOOKUP_SECONDS, PAGE_SECONDS = 60, 120
RULES = 'rules: [{pattern: "*", action: allow, extra: [facts.submits]}]\n'
LINKS = {
    "agent-gate": re.compile(r'link "[^"\n]*" \[(\w+)\]'),
    PLAYWRIGHT.package: re.compile(r"- link [^\n]*\[ref=(\w+)\]"),
    DEVTOOLS.package: re.compile(r"uid=(\S+) link"),
}
REFERENCES = {
    PLAYWRIGHT.package: re.compile(r"\[ref=(\w+)\]"),
    DEVTOOLS.package: re.compile(r"uid=(\S+)"),
}
LIKELY = re.compile(
    r"cursor=pointer|\b(button|link|checkbox|radio|combobox|textbox|searchbox|option|tab|switch)\b"
)


class Seat(Protocol):
    """An agent before a browser: opens a page, looks, clicks."""

    async def open(self, url: str) -> str: ...
    async def look(self) -> str: ...
    async def click(self, ref: str) -> str: ...
    async def marks(self, refs: Sequence[str]) -> set[str]: ...


@dataclass(slots=True)
class Found:
    """What one program showed of one page. `marks` are the page's own numbers of what could be reached; of some
    references nothing is known where the time for looking them up was over."""

    characters: int
    marks: set[str]
    cut: bool = False


@dataclass(slots=True)
class Costs:
    """Milliseconds of time and of CPU of each look and of each click."""

    looks: list[tuple[float, float]] = field(default_factory=list)
    clicks: list[tuple[float, float]] = field(default_factory=list)

    @staticmethod
    def middle(spent: Sequence[tuple[float, float]]) -> str:
        return f"{median(each[0] for each in spent):.0f} | {median(each[1] for each in spent):.0f}"


def text_of(result: Any) -> str:
    said = "\n".join(block.text for block in result.content if block.type == "text")
    if result.is_error:
        raise RuntimeError(said[:300])
    return said


class Gate:
    """This gateway, in a process of its own; what its groups hold is found by the tests' reader."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def use(self, tool: str, **arguments: Any) -> str:
        return text_of(await self._client.call_tool(f"browser_{tool}", arguments))

    async def open(self, url: str) -> str:
        return await self.use("navigate", url=url)

    async def look(self) -> str:
        return await self.use("snapshot")

    async def click(self, ref: str) -> str:
        return await self.use("click", ref=ref)

    async def marks(self, refs: Sequence[str]) -> set[str]:
        raise NotImplementedError


class PlaywrightSeat:
    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def use(self, tool: str, **arguments: Any) -> str:
        return text_of(await self._session.call_tool(f"browser_{tool}", arguments))

    async def open(self, url: str) -> str:
        return await self.use("navigate", url=url)

    async def look(self) -> str:
        return await self.use("snapshot")

    async def click(self, ref: str) -> str:
        return await self.use("click", target=ref, element="a link")

    async def marks(self, refs: Sequence[str]) -> set[str]:
        """The page's numbers behind references, read by Playwright itself."""
        code = f"""async (page) => (await Promise.all({json.dumps(refs)}.map((ref) => page.locator('aria-ref=' + ref)
          .evaluate({CLOSEST}, undefined, {{ timeout: 2000 }}).catch(() => '')))).join(' ')"""
        said = await self.use("run_code_unsafe", code=code)
        return set(re.findall(r"[\w-]*:?\d+", said.split("###")[1]))


class DevtoolsSeat:
    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def use(self, tool: str, **arguments: Any) -> str:
        return text_of(await self._session.call_tool(tool, {"pageId": 1, **arguments}))

    async def open(self, url: str) -> str:
        return await self.use("navigate_page", type="url", url=url)

    async def look(self) -> str:
        return await self.use("take_snapshot")

    async def click(self, ref: str) -> str:
        return await self.use("click", uid=ref)

    async def marks(self, refs: Sequence[str]) -> set[str]:
        """Elements of different frames cannot be asked about at once: halves, until they can."""
        function = f"(...all) => all.map({CLOSEST}).join(' ')"
        try:
            said = await self.use("evaluate_script", function=function, args=list(refs))
        except RuntimeError:
            if len(refs) < 2:
                return set()
            half = len(refs) // 2
            return await self.marks(refs[:half]) | await self.marks(refs[half:])
        return set(re.findall(r"[\w-]*:?\d+", said.partition("```json")[2]))


@contextmanager
def spent(into: list[tuple[float, float]]) -> Iterator[None]:
    """The time that this takes, and the CPU of everything that this process started."""

    def children() -> float:
        return cpu_us(os.getpid()) / 1e3 - time.process_time() * 1e3

    began, used = time.monotonic(), children()
    yield
    into.append(((time.monotonic() - began) * 1e3, children() - used))


@asynccontextmanager
async def gate() -> AsyncIterator[Gate]:
    folder, port = Path(tempfile.mkdtemp(dir=CACHE)), free_port()
    config = {
        "gateway": {"id": "bench", "port": port},
        "admin": {"socket": "./data/admin.sock", "port": 0},
        "agents": {"bench": {"token": TOKEN, "rate_limit": {"max_requests_per_minute": 0}}},
        "permissions": "permissions.yaml",
        "browser": {"allow_private": ["127.0.0.1"]},
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    (folder / "permissions.yaml").write_text(RULES)
    serve = [str(AGENT_GATE), "serve", "--config", str(folder / "config.yaml"), "--insecure"]
    with (folder / "log").open("wb") as log:
        child = await asyncio.create_subprocess_exec(*serve, stdout=subprocess.PIPE, stderr=log)
    try:
        assert child.stdout is not None
        await child.stdout.readline()
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http:
            address = f"http://127.0.0.1:{port}/mcp/full"
            async with Client(streamable_http_client(address, http_client=http), mode="legacy") as client:
                yield Gate(client)
    finally:
        child.terminate()
        await child.wait()


@asynccontextmanager
async def peer(
    server: Server, arguments: Sequence[str], seat: Callable[[ClientSession], Seat]
) -> AsyncIterator[Seat]:
    install(server)
    argv, work = [*command(server), *arguments], server.folder / "work"
    env = {"HOME": str(work), "CI": "1", "PATH": os.environ["PATH"]}
    parameters = StdioServerParameters(command=argv[0], args=argv[1:], env=env, cwd=work)
    with (server.folder / "log").open("w") as log:
        async with stdio_client(parameters, errlog=log) as streams, ClientSession(*streams) as session:
            await session.initialize()
            yield seat(session)


def playwright(browser: str) -> Any:
    return peer(
        PLAYWRIGHT, ["--headless", "--isolated", "--no-sandbox", "--executable-path", browser], PlaywrightSeat
    )


def devtools(browser: str) -> Any:
    flags = ["--headless", "--isolated", "--no-usage-statistics", "--chromeArg=--no-sandbox"]
    return peer(DEVTOOLS, [*flags, "--executablePath", browser], DevtoolsSeat)


def references(name: str, text: str) -> list[str]:
    """The references in a snapshot, first of what is likely to be acted on."""
    lines = sorted(text.splitlines(), key=lambda line: LIKELY.search(line) is None)
    return list(dict.fromkeys(ref for line in lines for ref in REFERENCES[name].findall(line)))


async def look_up(name: str, seat: Seat, text: str, wanted: set[str]) -> Found:
    """What is behind the references of a snapshot, until everything was found or the time for it is over."""
    found, ends = Found(len(text), set()), time.monotonic() + LOOKUP_SECONDS
    refs = references(name, text)
    for start in range(0, len(refs), AT_ONCE):
        if wanted <= found.marks:
            break
        if time.monotonic() > ends:
            found.cut = True
            break
        found.marks |= await seat.marks(refs[start : start + AT_ONCE])
    return found


async def measured(
    name: str, seat: Seat, truth: Mapping[str, set[str]], url: str
) -> tuple[dict[str, Found], Costs]:
    """Each page opened, looked at and clicked on; the first look of all warms up."""
    found: dict[str, Found] = {}
    costs = Costs()
    await seat.open(f"{url}/login")
    await seat.look()
    for page, wanted in truth.items():
        began = time.monotonic()
        try:
            async with asyncio.timeout(PAGE_SECONDS):
                found[page] = await visited(name, seat, f"{url}/{page}", wanted, costs)
        except TimeoutError:
            print(f"{name}: {page} took more than {PAGE_SECONDS} s and was left", file=sys.stderr)
        print(f"{name}: {page}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return found, costs


async def visited(name: str, seat: Seat, url: str, wanted: set[str], costs: Costs) -> Found:
    await seat.open(url)
    with spent(costs.looks):
        text = await seat.look()
    for ref in LINKS[name].findall(text)[:CLICKS]:
        with spent(costs.clicks):
            await seat.click(ref)
    if isinstance(seat, Gate):
        return Found(len(text), set())
    await seat.open(url)
    return await look_up(name, seat, await seat.look(), wanted)


async def reached(pages: Sequence[str], url: str) -> dict[str, tuple[set[str], set[str]]]:
    """For each page what can be acted on, and what of it an agent of ours reaches, groups opened."""
    found = {}
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        async with reader(Path(folder)) as agent:
            for page in pages:
                await agent.open(f"{url}/{page}")
                marks = set((await agent.marks(await agent.open_groups())).values())
                found[page] = {one["mark"] for one in await agent.truth()}, marks
    return found


def share(found: Found | None, truth: set[str]) -> str:
    if found is None:
        return f"over {PAGE_SECONDS} s | "
    least = "at least " if found.cut else ""
    return f"{found.characters:,} | {least}{len(found.marks & truth) / len(truth):.0%}"


def table(
    pages: Sequence[str], truth: Mapping[str, set[str]], all_found: Mapping[str, Mapping[str, Found]]
) -> None:
    names = list(all_found)
    print(f"| page | to act on | {' | '.join(f'{name} | reached' for name in names)} | of Playwright's |")
    print("|" + "---|" * (3 + 2 * len(names)))
    for page in pages:
        cells = [share(all_found[name].get(page), truth[page]) for name in names]
        rival = all_found.get(PLAYWRIGHT.package, {}).get(page)
        ours = all_found["agent-gate"].get(page)
        part = f"{ours.characters / rival.characters:.0%}" if ours and rival else ""
        print(f"| {page} | {len(truth[page])} | {' | '.join(cells)} | {part} |")


async def compare(pages: Sequence[str]) -> None:
    browser = find_browser(None)
    CACHE.mkdir(parents=True, exist_ok=True)
    with served(TEXTS) as url:
        ours = await reached(pages, url)
        truth = {page: found for page, (found, _) in ours.items()}
        seats = {
            "agent-gate": gate(),
            PLAYWRIGHT.package: playwright(browser),
            DEVTOOLS.package: devtools(browser),
        }
        all_found: dict[str, Mapping[str, Found]] = {}
        all_costs: dict[str, Costs] = {}
        for name, opening in seats.items():
            try:
                async with opening as seat:
                    all_found[name], all_costs[name] = await measured(name, seat, truth, url)
            except LeftOut as reason:
                print(f"{name} is left out: {reason}")
    for page, found in all_found["agent-gate"].items():
        found.marks = ours[page][1]
    table(pages, truth, all_found)
    print("\n| program | look, ms | look, CPU ms | click, ms | click, CPU ms |\n|---|---|---|---|---|")
    for name, costs in all_costs.items():
        print(f"| {name} | {costs.middle(costs.looks)} | {costs.middle(costs.clicks)} |")


def main() -> None:
    try:
        asyncio.run(compare(sys.argv[1:] or list(PAGES)))
    except DependencyUnavailable as missing:
        sys.exit(f"The browser's pages are not measured: {missing.message}")


if __name__ == "__main__":
    main()
