"""`browser_fetch`, `browser_search` and `weather_get` as a source of tools."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from agent_gate.core.call import Result
from agent_gate.core.ports import Job, Plan
from agent_gate.core.tool import Definition
from agent_gate.core.traits import Traits
from agent_gate.errors import ConfigError, UpstreamError
from agent_gate.net.addresses import PrivateHosts
from agent_gate.sources.base import SourceBase
from agent_gate.sources.toolbox import Toolbox
from agent_gate.sources.web.extract import Readable, outline
from agent_gate.sources.web.fetching import Fetched, WebClient
from agent_gate.sources.web.reading import make_readable
from agent_gate.sources.web.search import MOST_RESULTS, PROVIDERS, render_hits
from agent_gate.sources.web.settings import KEY, WebSettings
from agent_gate.sources.web.weather import get_weather

READS = Traits(read_only=True, open_world=True, trusted=True)
LONG = 8_000
MOST_LINKS = 200

TOOLS = (
    Definition(
        name="browser_fetch",
        description="Read a web page, a PDF or a text file as Markdown, with its links numbered",
        input_schema={
            "type": "object",
            "properties": {
                "url": {"type": "string", "description": "The address, such as https://example.com/page"},
                "raw": {"type": "boolean", "description": "The source text as it is, not made readable"},
            },
            "required": ["url"],
            "additionalProperties": False,
        },
        traits=READS,
        flat=True,
    ),
    Definition(
        name="browser_search",
        description="Search the web; a numbered list of titles, addresses and snippets",
        input_schema={
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 500},
                "max_results": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MOST_RESULTS,
                    "description": "8 if left out",
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        traits=READS,
        flat=True,
    ),
    Definition(
        name="weather_get",
        description="The weather now and on the coming days, for a place by name or by position",
        input_schema={
            "type": "object",
            "properties": {
                "location": {"type": "string", "maxLength": 200, "description": "A town, such as Berlin"},
                "latitude": {"type": "number", "minimum": -90, "maximum": 90},
                "longitude": {"type": "number", "minimum": -180, "maximum": 180},
                "days": {"type": "integer", "description": "1 to 7; 3 if left out"},
            },
            "additionalProperties": False,
        },
        traits=READS,
        flat=True,
    ),
)


class WebSource(SourceBase):
    """Answers each call by one or a few GET requests."""

    kind = "web"
    about = "Pages, search and weather"

    def __init__(self, settings: WebSettings, toolbox: Toolbox) -> None:
        self.key = self.namespace = self.title = KEY
        self._settings, self._clock = settings, toolbox.clock
        toolbox.learn([settings.search.token] if settings.search.token else [])
        self._web = WebClient(PrivateHosts(settings.allow_private), settings.max_bytes)
        self._answers: dict[str, Callable[[dict[str, Any], float], Awaitable[str]]] = {
            "browser_fetch": self._fetch,
            "browser_search": self._search,
            "weather_get": self._fetch_weather,
        }

    async def __aexit__(self, *_: object) -> None:
        await self._web.aclose()

    async def connect(self) -> Sequence[Definition]:
        return TOOLS

    async def answer(self, job: Job) -> Result:
        deadline = min(job.deadline, self._clock.monotonic() + self._settings.timeout)
        text = await self._answers[job.case.tool.upstream](dict(job.arguments), deadline)
        return Result(msgspec.json.encode({"content": [{"type": "text", "text": text}]}), kind="mcp")

    async def _fetch(self, arguments: dict[str, Any], deadline: float) -> str:
        raw = bool(arguments.get("raw"))
        fetched = await self._web.read(arguments["url"], deadline)
        left = max(0.1, deadline - self._clock.monotonic())
        page = await make_readable(fetched, raw=raw, seconds=left)
        if page.fault and not page.text:
            raise UpstreamError(f"{page.fault} ({fetched.url}, status {fetched.status})")
        return render_page(fetched, page, raw=raw)

    async def _search(self, arguments: dict[str, Any], deadline: float) -> str:
        settings = self._settings.search
        most = arguments.get("max_results") or 8
        found = await PROVIDERS[settings.provider].search(
            self._web, settings, arguments["query"], most, deadline
        )
        return render_hits(arguments["query"], found)

    async def _fetch_weather(self, arguments: dict[str, Any], deadline: float) -> str:
        return await get_weather(self._web, self._settings.weather, arguments, deadline)


def render_page(fetched: Fetched, page: Readable, *, raw: bool) -> str:
    """Where it came from, what it says, where it leads; a long one begins with its outline."""
    status = f" (status {fetched.status})" if fetched.status >= 400 else ""
    if raw:
        return f"{fetched.url}{status}\nContent-Type: {fetched.content_type}\n\n{page.text}"
    about = " · ".join(part for part in (page.author, page.date) if part)
    head = [f"# {page.title}" if page.title else "", f"{fetched.url}{status}", about]
    parts = ["\n".join(line for line in head if line)]
    if len(page.text) > LONG and (headings := outline(page.text)):
        parts.append("\n".join(["Outline:", *headings]))
    parts.append(page.text)
    if page.links:
        shown = [f"[{number}] {link}" for number, link in enumerate(page.links[:MOST_LINKS], 1)]
        parts.append("\n".join(["Links:", *shown]))
    return "\n\n".join(parts)


def make_plan(web: WebSettings, toolbox: Toolbox) -> Plan:
    check_search(web)
    return Plan(source=WebSource(web, toolbox), settings=web, known=TOOLS, enabled=web.enabled)


def check_search(web: WebSettings) -> None:
    """What a provider cannot do without is said when the file is read, not when somebody searches."""
    for name in PROVIDERS[web.search.provider].needs:
        if not getattr(web.search, name):
            raise ConfigError(
                f"web.search: the provider {web.search.provider} needs `{name}`", where=web.where
            )
