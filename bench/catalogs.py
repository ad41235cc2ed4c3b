"""Turns a table of public MCP servers into catalogs of their tools: `python -m bench.catalogs`.

Each server is installed at a fixed version into `.cache/bench/servers`, listed through the official client without
network, credentials or the caller's environment, and removed again; the lists stay in `.cache/bench/catalogs`, a
folder for each set of requests that is judged on them. What does not install or list here is left out, with the reason.
"""

import asyncio
import json
import logging
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mcp import ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import PaginatedRequestParams

from bench.machine import CACHE

SERVERS_FOLDER, CATALOGS = CACHE / "servers", CACHE / "catalogs"
INSTALL_SECONDS, LIST_SECONDS, PATIENCE = 600, 90, 3
"""The longest that one server may take, and after how many failures in a row a registry is not asked again."""

NOWHERE = "http://127.0.0.1:9"
FIRST, SECOND, UNSEEN = "first", "second", "unseen"
OFFICIAL = "@modelcontextprotocol/server-"


class LeftOut(Exception):
    """A server that cannot be installed or listed here; the text says why."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server of a package registry. `needs` is installed beside it, `program` is its command where that is not
    the package's name, and `{work}` in its arguments is an empty folder."""

    name: str
    kind: Literal["npm", "pypi"]
    package: str
    version: str
    sets: Sequence[str]
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    program: str = ""
    needs: Sequence[str] = ()

    @property
    def pin(self) -> str:
        return f"{self.kind}:{self.package}@{self.version}"

    @property
    def folder(self) -> Path:
        return SERVERS_FOLDER / self.name

    @property
    def files(self) -> list[Path]:
        return [CATALOGS / each / f"{self.name}.json" for each in self.sets]


def npm(
    name: str,
    package: str,
    version: str,
    *sets: str,
    args: Sequence[str] = (),
    needs: Sequence[str] = (),
    **env: str,
) -> Server:
    return Server(name, "npm", package, version, sets, args, env, needs=needs)


def pypi(
    name: str,
    package: str,
    version: str,
    *sets: str,
    args: Sequence[str] = (),
    program: str = "",
    needs: Sequence[str] = (),
    **env: str,
) -> Server:
    return Server(name, "pypi", package, version, sets, args, env, program, needs)


JIRA = {"JIRA_URL": NOWHERE, "JIRA_USERNAME": "x", "JIRA_API_TOKEN": "x"}
CONFLUENCE = {"CONFLUENCE_URL": NOWHERE, "CONFLUENCE_USERNAME": "x", "CONFLUENCE_API_TOKEN": "x"}
BROWSERBASE = {"BROWSERBASE_API_KEY": "x", "BROWSERBASE_PROJECT_ID": "x"}
TRELLO = {"TRELLO_API_KEY": "x", "TRELLO_TOKEN": "x", "TRELLO_BOARD_ID": "x"}
MONGODB = {"MDB_MCP_API_CLIENT_ID": "x", "MDB_MCP_API_CLIENT_SECRET": "x"}
GOOGLE = {"GOOGLE_OAUTH_CLIENT_ID": "x", "GOOGLE_OAUTH_CLIENT_SECRET": "x"}

SERVERS = (
    npm("brave", f"{OFFICIAL}brave-search", "0.6.2", FIRST, BRAVE_API_KEY="x"),
    npm("devtools", "chrome-devtools-mcp", "1.11.0", FIRST),
    npm("playwright", "@playwright/mcp", "0.0.83", FIRST),
    npm("puppeteer", f"{OFFICIAL}puppeteer", "2025.5.12", FIRST),
    pypi("fetch", "mcp-server-fetch", "2026.10.24", FIRST),
    npm("context7", "@upstash/context7-mcp", "4.1.1", FIRST, SECOND),
    npm("everything", f"{OFFICIAL}everything", "2026.8.31", FIRST, SECOND),
    npm("filesystem", f"{OFFICIAL}filesystem", "2026.8.31", FIRST, SECOND, args=["{work}"]),
    npm("github", f"{OFFICIAL}github", "2025.4.8", FIRST, SECOND, GITHUB_PERSONAL_ACCESS_TOKEN="x"),
    npm(
        "gitlab",
        f"{OFFICIAL}gitlab",
        "2025.4.25",
        FIRST,
        SECOND,
        needs=["zod@3.25.76"],
        GITLAB_PERSONAL_ACCESS_TOKEN="x",
    ),
    npm("maps", f"{OFFICIAL}google-maps", "0.6.2", FIRST, SECOND, GOOGLE_MAPS_API_KEY="x"),
    npm("memory", f"{OFFICIAL}memory", "2026.8.31", FIRST, SECOND),
    npm("notion", "@notionhq/notion-mcp-server", "2.5.2", FIRST, SECOND, BASE_URL=NOWHERE, NOTION_TOKEN="x"),
    npm("postgres", f"{OFFICIAL}postgres", "0.6.2", FIRST, SECOND, args=["postgres://127.0.0.1:9/x"]),
    npm("slack", f"{OFFICIAL}slack", "2025.4.25", FIRST, SECOND, SLACK_BOT_TOKEN="x", SLACK_TEAM_ID="x"),
    npm("thinking", f"{OFFICIAL}sequential-thinking", "2026.8.31", FIRST, SECOND),
    pypi("atlassian", "mcp-atlassian", "0.23.1", FIRST, SECOND, **JIRA, **CONFLUENCE),
    pypi("calculator", "mcp-server-calculator", "0.2.1", FIRST, SECOND),
    pypi("excel", "excel-mcp-server", "2.2.2", FIRST, SECOND, args=["stdio"]),
    pypi("git", "mcp-server-git", "2026.10.19", FIRST, SECOND),
    pypi(
        "motherduck",
        "mcp-server-motherduck",
        "1.1.0",
        FIRST,
        SECOND,
        args=["--db-path", ":memory:", "--read-write"],
    ),
    pypi(
        "sqlite",
        "mcp-server-sqlite",
        "2025.4.25",
        FIRST,
        SECOND,
        args=["--db-path", "{work}/a.db"],
        needs=["mcp<2"],
    ),
    pypi("time", "mcp-server-time", "2026.10.19", FIRST, SECOND),
    pypi("wikipedia", "wikipedia-mcp", "2.0.1", FIRST, SECOND),
    pypi("word", "office-word-mcp-server", "1.1.11", FIRST, SECOND, program="word_mcp_server"),
    npm("browserbase", "@browserbasehq/mcp-server-browserbase", "2.4.3", SECOND, **BROWSERBASE),
    npm("exa", "exa-mcp-server", "3.4.1", SECOND, EXA_API_KEY="x"),
    npm("tavily", "tavily-mcp", "0.2.22", SECOND, TAVILY_API_KEY="x"),
    pypi("arxiv", "arxiv-mcp-server", "0.8.2", SECOND),
    npm("airtable", "airtable-mcp-server", "1.14.0", SECOND, UNSEEN, AIRTABLE_API_KEY="x.x"),
    npm("docker", "mcp-server-docker", "1.0.0", SECOND, UNSEEN),
    npm(
        "figma",
        "figma-developer-mcp",
        "0.13.2",
        SECOND,
        UNSEEN,
        args=["--stdio", "--image-dir=/", "--figma-api-key=x"],
    ),
    npm("kubernetes", "mcp-server-kubernetes", "4.1.7", SECOND, UNSEEN),
    npm("shopify", "@shopify/dev-mcp", "1.16.0", SECOND, UNSEEN),
    npm("trello", "@delorenj/mcp-server-trello", "1.8.1", SECOND, UNSEEN, **TRELLO),
    pypi("zotero", "zotero-mcp-server", "0.15.1", SECOND, UNSEEN, program="zotero-mcp", ZOTERO_LOCAL="true"),
    npm(
        "elasticsearch", "@elastic/mcp-server-elasticsearch", "0.3.1", UNSEEN, ES_URL=NOWHERE, ES_API_KEY="x"
    ),
    npm("firecrawl", "firecrawl-mcp", "3.22.2", UNSEEN, FIRECRAWL_API_KEY="x"),
    npm("hubspot", "@hubspot/mcp-server", "0.4.0", UNSEEN, PRIVATE_APP_ACCESS_TOKEN="x"),
    npm(
        "mongodb",
        "mongodb-mcp-server",
        "3.0.4",
        UNSEEN,
        args=["--connectionString", "mongodb://127.0.0.1:9/x"],
        **MONGODB,
    ),
    npm("n8n", "n8n-mcp", "2.87.0", UNSEEN, N8N_API_URL=NOWHERE, N8N_API_KEY="x", MCP_MODE="stdio"),
    npm("sentry", "@sentry/mcp-server", "0.36.0", UNSEEN, args=["--access-token=x"]),
    pypi("blender", "blender-mcp", "2.0.0", UNSEEN),
    pypi("obsidian", "mcp-obsidian", "0.2.3", UNSEEN, OBSIDIAN_API_KEY="x"),
    pypi("redis", "redis-mcp-server", "0.5.1", UNSEEN),
    pypi("workspace", "workspace-mcp", "2.2.1", UNSEEN, **GOOGLE),
)


def run(*command: str | Path) -> None:
    """Runs an installer; what it said last is the reason if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except FileNotFoundError:
        raise LeftOut(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise LeftOut(f"{command[0]} took more than {INSTALL_SECONDS} s") from None
    if done.returncode:
        raise LeftOut(f"not installed: {last_line(done.stderr)}")


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:160] if lines else "it said nothing"


def install(server: Server) -> None:
    folder, done = server.folder, server.folder / "installed"
    if done.exists() and done.read_text() == server.pin:
        return
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "work").mkdir(parents=True)
    if server.kind == "npm":
        flags = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1")
        run("npm", "install", *flags, "--prefix", folder, f"{server.package}@{server.version}", *server.needs)
    else:
        run(sys.executable, "-m", "venv", "--without-pip", folder)
        pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--quiet")
        run(*pip, "--disable-pip-version-check", f"{server.package}=={server.version}", *server.needs)
    done.write_text(server.pin)


def command(server: Server) -> list[str]:
    """The argv of an installed server."""
    args = [each.format(work=server.folder / "work") for each in server.args]
    if server.kind == "pypi":
        return [str(server.folder / "bin" / (server.program or server.package)), *args]
    home = server.folder / "node_modules" / server.package
    programs = json.loads((home / "package.json").read_text())["bin"]
    entry = programs if isinstance(programs, str) else next(iter(programs.values()))
    return ["node", str(home / entry), *args]


async def ask(name: str, argv: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path) -> dict[str, Any]:
    """What a server says of itself and its tools."""
    parameters = StdioServerParameters(command=argv[0], args=list(argv[1:]), env=dict(env), cwd=cwd)
    with log.open("w") as errors:
        async with stdio_client(parameters, errlog=errors) as streams, ClientSession(*streams) as session:
            hello = await session.initialize()
            page = await session.list_tools()
            tools = list(page.tools)
            while page.next_cursor:
                page = await session.list_tools(params=PaginatedRequestParams(cursor=page.next_cursor))
                tools += page.tools
    return {
        "server": name,
        "title": hello.server_info.name,
        "instructions": hello.instructions or "",
        "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools],
    }


def listed(server: Server) -> dict[str, Any]:
    """The catalog of an installed server, which sees an empty home and none of the caller's secrets."""
    work, log = server.folder / "work", SERVERS_FOLDER / f"{server.name}.log"
    env = {"HOME": str(work), "PYTHONHASHSEED": "0", **server.env}
    asking = ask(server.name, command(server), env, work, log)
    try:
        found = asyncio.run(asyncio.wait_for(asking, LIST_SECONDS))
    except TimeoutError:
        raise LeftOut(f"listed nothing in {LIST_SECONDS} s") from None
    except (OSError, MCPError, ExceptionGroup) as reason:
        said = last_line(log.read_text(errors="replace"))
        raise LeftOut(f"not listed ({cause(reason)}); it said last: {said}") from reason
    if not found["tools"]:
        raise LeftOut("has no tools here")
    return {"pin": server.pin, **found}


def cause(reason: BaseException) -> str:
    """The first line of the first error in a group of them."""
    while isinstance(reason, BaseExceptionGroup):
        reason = reason.exceptions[0]
    return f"{type(reason).__name__}: {reason}".splitlines()[0]


def cached(server: Server) -> bool:
    return all(path.exists() and json.loads(path.read_text())["pin"] == server.pin for path in server.files)


def save(server: Server, catalog: Mapping[str, Any]) -> None:
    for path in server.files:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(catalog))
        part.replace(path)


def gather() -> Iterator[tuple[Server, str]]:
    """Lists what is not listed yet; yields the servers that are left out, with the reason."""
    failures = Counter[str]()
    logging.getLogger(stdio_client.__module__).setLevel(logging.CRITICAL)
    for server in SERVERS:
        if cached(server):
            continue
        for path in server.files:
            path.unlink(missing_ok=True)
        if failures[server.kind] >= PATIENCE:
            yield server, f"not tried, because {PATIENCE} installs from {server.kind} in a row failed"
            continue
        print(f"listing the tools of {server.pin} …", file=sys.stderr)
        try:
            install(server)
            failures[server.kind] = 0
            save(server, listed(server))
        except LeftOut as reason:
            failures[server.kind] += not (server.folder / "installed").exists()
            yield server, str(reason)
        else:
            shutil.rmtree(server.folder, ignore_errors=True)


def main() -> None:
    for server, reason in gather():
        print(f"{server.name} ({server.pin}) is left out: {reason}")
    for each in (FIRST, SECOND, UNSEEN):
        found = [json.loads(path.read_text()) for path in sorted((CATALOGS / each).glob("*.json"))]
        print(f"{each}: {len(found)} servers, {sum(len(one['tools']) for one in found)} tools")


if __name__ == "__main__":
    main()
