"""Searching the web: one function a provider, and one line of `PROVIDERS`."""

import re
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qs, quote_plus, urlencode, urlsplit

from agent_gate.core.strict import MalformedJson, strict_json
from agent_gate.core.tool import Json
from agent_gate.errors import DependencyUnavailable, InvalidArgs, UpstreamError
from agent_gate.sources.web.fetching import Fetched, WebClient
from agent_gate.sources.web.settings import SearchSettings

DUCKDUCKGO = "https://html.duckduckgo.com/html/"
BRAVE = "https://api.search.brave.com/res/v1/web/search"
MOST_RESULTS = 20
LONGEST_SNIPPET = 300
LONGEST_FILE = 1 << 20
READABLE = {".md", ".txt", ".html", ".htm"}


@dataclass(frozen=True, slots=True)
class WebHit:
    """One result of a search."""

    title: str
    url: str
    snippet: str = ""


Search = Callable[[WebClient, SearchSettings, str, int, float], Awaitable[list[WebHit]]]


@dataclass(frozen=True, slots=True)
class SearchProvider:
    """`needs` are the settings without which it cannot be asked."""

    search: Search
    needs: tuple[str, ...] = ()


class ResultPage(HTMLParser):
    """DuckDuckGo's page without scripts: links of class `result__a`, snippets of class `result__snippet`."""

    def __init__(self) -> None:
        super().__init__()
        self.hits: list[WebHit] = []
        self._field: str | None = None
        self._url, self._words = "", {"title": "", "snippet": ""}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        classes = (given.get("class") or "").split()
        if tag == "a" and "result__a" in classes:
            self.flush()
            self._url, self._field = unwrapped(given.get("href") or ""), "title"
        elif "result__snippet" in classes:
            self._field = "snippet"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("a", "td", "div"):
            self._field = None

    def handle_data(self, data: str) -> None:
        if self._field is not None:
            self._words[self._field] += data

    def flush(self) -> None:
        """Keep the result that was being read; advertisements lead elsewhere and are left out."""
        title = " ".join(self._words["title"].split())
        if self._url.startswith(("http://", "https://")) and title:
            self.hits.append(WebHit(title, self._url, " ".join(self._words["snippet"].split())))
        self._url, self._words = "", {"title": "", "snippet": ""}


def unwrapped(href: str) -> str:
    """The address behind DuckDuckGo's own redirect (`/l/?uddg=…`); empty for an advertisement."""
    address = f"https:{href}" if href.startswith("//") else href
    parts = urlsplit(address)
    if parts.path == "/y.js":
        return ""
    wanted = parse_qs(parts.query).get("uddg")
    return wanted[0] if wanted else address


async def search_duckduckgo(
    web: WebClient, settings: SearchSettings, query: str, most: int, deadline: float
) -> list[WebHit]:
    reply = await web.ask(f"{settings.url or DUCKDUCKGO}?q={quote_plus(query)}", deadline)
    check_status(reply, "DuckDuckGo")
    page = ResultPage()
    page.feed(reply.body.decode("utf-8", errors="replace"))
    page.close()
    page.flush()
    if not page.hits and b"anomaly" in reply.body:
        raise DependencyUnavailable(
            "DuckDuckGo takes this gateway for a robot and shows nothing. Try later, or set web.search.provider"
        )
    return page.hits[:most]


async def search_searxng(
    web: WebClient, settings: SearchSettings, query: str, most: int, deadline: float
) -> list[WebHit]:
    asked = urlencode({"q": query, "format": "json"})
    reply = await web.ask(f"{settings.url.rstrip('/')}/search?{asked}", deadline)
    if reply.status == 403:
        raise DependencyUnavailable(
            "SearXNG answers no JSON. Add `json` to search.formats in its settings.yml"
        )
    found = check_json(reply, "SearXNG").get("results")
    return hits(found, "title", "url", "content")[:most]


async def search_brave(
    web: WebClient, settings: SearchSettings, query: str, most: int, deadline: float
) -> list[WebHit]:
    asked = urlencode({"q": query, "count": most})
    token = (b"x-subscription-token", settings.token.encode())
    reply = await web.ask(f"{settings.url or BRAVE}?{asked}", deadline, [token])
    if reply.status in (401, 403, 422):
        raise DependencyUnavailable("Brave does not take the key in web.search.token")
    found = check_json(reply, "Brave").get("web")
    return hits(found.get("results") if isinstance(found, dict) else None, "title", "url", "description")[
        :most
    ]


async def search_folder(
    _web: WebClient, settings: SearchSettings, query: str, most: int, _deadline: float
) -> list[WebHit]:
    """Files of a folder, by their words; read anew each time, since such a folder is small and changes."""
    assert settings.folder is not None
    if not settings.folder.is_dir():
        raise DependencyUnavailable(f"The folder {settings.folder} of web.search is not there")
    terms = re.findall(r"\w+", query)
    if not terms:
        raise InvalidArgs("query must have a word in it")
    return look_up(folder_texts(settings.folder), terms, most)


def folder_texts(folder: Path) -> list[tuple[str, str, str]]:
    """Title, address and words of each file."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in READABLE and path.is_file() and path.stat().st_size <= LONGEST_FILE:
            text = path.read_text(errors="replace")
            plain = re.sub(r"<[^>]+>", " ", text) if path.suffix.lower().startswith(".htm") else text
            heading = re.search(r"^#\s+(.+)$|<title>([^<]+)", text, re.MULTILINE)
            title = next((words for words in heading.groups() if words), "") if heading else ""
            found.append((title.strip() or path.stem, path.absolute().as_uri(), plain))
    return found


def look_up(texts: Sequence[tuple[str, str, str]], terms: Sequence[str], most: int) -> list[WebHit]:
    """The best first, by the full-text index of SQLite."""
    index = sqlite3.connect(":memory:")
    try:
        index.execute(
            "CREATE VIRTUAL TABLE texts USING fts5(title, url UNINDEXED, words, tokenize = 'porter unicode61')"
        )
        index.executemany("INSERT INTO texts VALUES (?, ?, ?)", texts)
        wanted = " OR ".join(f'"{term}"' for term in terms)
        rows = index.execute(
            "SELECT title, url, snippet(texts, 2, '', '', '…', 32) FROM texts WHERE texts MATCH ? "
            "ORDER BY bm25(texts, 5.0, 0.0, 1.0) LIMIT ?",
            (wanted, most),
        ).fetchall()
    finally:
        index.close()
    return [WebHit(title, url, " ".join(snippet.split())) for title, url, snippet in rows]


PROVIDERS: Mapping[str, SearchProvider] = {
    "duckduckgo": SearchProvider(search_duckduckgo),
    "searxng": SearchProvider(search_searxng, ("url",)),
    "brave": SearchProvider(search_brave, ("token",)),
    "local": SearchProvider(search_folder, ("folder",)),
}


def check_status(reply: Fetched, name: str) -> None:
    if reply.status == 429:
        raise DependencyUnavailable(f"{name} wants fewer searches. Try again in a while")
    if reply.status != 200:
        raise UpstreamError(f"{name} answered with status {reply.status}")


def check_json(reply: Fetched, name: str) -> dict[str, Json]:
    check_status(reply, name)
    try:
        found = strict_json(reply.body)
    except MalformedJson:
        found = None
    if not isinstance(found, dict):
        raise UpstreamError(f"{name} did not answer with JSON")
    return found


def hits(found: Json, title: str, url: str, snippet: str) -> list[WebHit]:
    """The entries that are results; a provider's markup is taken out of its words."""
    entries = [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
    return [
        WebHit(plain(entry.get(title)), str(entry[url]), plain(entry.get(snippet)))
        for entry in entries
        if str(entry.get(url, "")).startswith(("http://", "https://"))
    ]


def plain(words: Json) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", words if isinstance(words, str) else "").split())


def render_hits(query: str, found: Sequence[WebHit]) -> str:
    """A numbered list, as short as it can be."""
    if not found:
        return f"Nothing was found for: {query}"
    lines = []
    for number, hit in enumerate(found, 1):
        lines += [f"{number}. {hit.title}", f"   {hit.url}"]
        if hit.snippet:
            cut = hit.snippet if len(hit.snippet) <= LONGEST_SNIPPET else f"{hit.snippet[:LONGEST_SNIPPET]}…"
            lines.append(f"   {cut}")
    return "\n".join(lines)
