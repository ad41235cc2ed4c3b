"""The meta-tools at work: browse, hydrate, execute and view, for every surface.

`tool_execute` is an ordinary call: it passes the same `Calls.run` as a direct one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace as replace_page
from threading import Thread
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_gate.access.view import MadeFor
from agent_gate.calls.calls import Calls
from agent_gate.core.call import Call, Caller, Mode, Outcome, Pending, Result, State
from agent_gate.core.catalog import Catalog, Shelf, unknown_tool
from agent_gate.core.tool import Json, Tool
from agent_gate.discovery.browse import Browsed, Browser, SeenBySession, SeenTools, browse
from agent_gate.discovery.meta import (
    BrowseArgs,
    ExecuteArgs,
    HydrateArgs,
    ViewArgs,
    hydrated,
    meta_tools,
    parse,
    stripped,
)
from agent_gate.discovery.near import near_tools
from agent_gate.discovery.semantic import Semantic
from agent_gate.discovery.usage import usage, with_usage
from agent_gate.errors import DependencyUnavailable, GatewayError, InvalidArgs, ToolNotFound, ViewFailed
from agent_gate.results.artifacts import Artifacts, handle_of
from agent_gate.results.budget import Fits
from agent_gate.results.handles import HANDLE, find_handles
from agent_gate.results.jobs import FillJob, ViewJob
from agent_gate.results.readers import SMALL, Readers
from agent_gate.results.reading import MEDIA_TYPES, InStore, Stored
from agent_gate.results.views import VIEW_BUDGET, ResultView

log = logging.getLogger("agent_gate.calls")
Visible = Callable[[Caller], Sequence[Tool]]
HoldCall = Callable[[Callable[[float | None], Awaitable[Outcome | Pending]]], Awaitable[Outcome | Pending]]
LOOKS = frozenset({"tool_browse", "tool_hydrate", "tool_view"})
encode = msgspec.json.encode


class MetaTools:
    """What agents do with a catalog they never see whole."""

    def __init__(
        self,
        calls: Calls,
        shelf: Shelf,
        visible: Visible,
        artifacts: Artifacts,
        fits: Fits,
        semantic: Callable[[], Semantic | None] = lambda: None,
        count: Callable[[Caller], None] = lambda _caller: None,
        readers: Readers | None = None,
    ) -> None:
        self._calls, self._shelf, self._visible = calls, shelf, visible
        self._artifacts, self._fits, self._semantic, self._count = artifacts, fits, semantic, count
        self._readers = readers or Readers(fits)
        self._browsers = MadeFor[Browser]()
        self._sessions = SeenBySession()

    @property
    def catalog(self) -> Catalog:
        return self._shelf.catalog

    def browser(self, caller: Caller) -> Browser:
        """Cards, tree and index of what the caller sees; made anew only where that changed."""
        tools = self._visible(caller)
        made = self._browsers.get(caller.name, tools)
        if made is None:
            before = self._browsers.outdated(caller.name)
            made = self._browsers.put(
                caller.name, tools, Browser(tools, self._shelf.catalog.titles(), before)
            )
            # A thread of its own, because nobody waits for it, not even who stops the gateway.
            loop = asyncio.get_running_loop()
            Thread(target=self._add_meaning, args=(loop, caller.name, tools, made), daemon=True).start()
        return made

    def _add_meaning(
        self, loop: asyncio.AbstractEventLoop, name: str, tools: Sequence[Tool], lexical: Browser
    ) -> None:
        """Rank by meaning too, once the tools are placed; until then, by words alone."""
        try:
            semantic = self._semantic()
            made = Browser(tools, lexical.titles, lexical, semantic) if semantic is not None else None
        except Exception:  # the boundary of the thread
            log.exception("Tools are ranked by their words alone")
            return
        if made is not None and not loop.is_closed():
            with suppress(RuntimeError):  # the loop ended just now
                loop.call_soon_threadsafe(self._take, name, tools, made)

    def _take(self, name: str, tools: Sequence[Tool], made: Browser) -> None:
        if self._browsers.get(name, tools) is not None:
            self._browsers.put(name, tools, made)

    def keep(self, names: Collection[str]) -> None:
        """Forget what was made for callers of other names."""
        self._browsers.keep(names)

    def listing(self, mode: Mode, caller: Caller) -> list[Mapping[str, Any]]:
        """What `tools/list` shows in this mode."""
        shown: list[Mapping[str, Any]] = []
        if mode == "proxy":
            shown.extend(stripped(self._visible(caller), self.browser(caller).deck, caller.names))
        return [*shown, *meta_tools(mode)]

    def _session(self, caller: Caller, key: str | None) -> SeenTools | None:
        return self._sessions.get(caller.name, key or "") if caller.cache_stable else None

    def browse(self, caller: Caller, args: BrowseArgs, session: str | None = None) -> Browsed:
        self._count(caller)
        browser = self.browser(caller)
        page = browse(
            browser,
            query=args.query,
            path=args.path,
            top_k=args.top_k,
            session=self._session(caller, session),
        )
        leaf = browser.leaf(args.path) if args.path is not None and args.query is None else None
        return page if leaf is None else replace_page(page, text=f"{page.text}\n{self._schema(caller, leaf)}")

    def _schema(self, caller: Caller, tool: Tool) -> str:
        """A tool's whole input schema; a large one is kept as an artifact, and this says where."""
        text = encode({"inputSchema": tool.input_schema}).decode()
        if self._fits(text, VIEW_BUDGET):
            return text
        call = Call(tool="tool_browse", arguments={}, caller=caller)
        artifact = self._artifacts.post(call, Result(text.encode()))
        takes = encode({"takes": usage(tool.input_schema)}).decode()
        return f"{takes}\nThe whole input schema: tool_view {artifact.handle}, such as jsonpath $.inputSchema"

    def tool(self, caller: Caller, name: str) -> Tool:
        """The visible tool of that name or id."""
        tool = self._shelf.catalog.find(name)
        if tool is None or tool not in self._visible(caller):
            raise self._unknown(caller, name)
        return tool

    def _unknown(self, caller: Caller, name: str) -> ToolNotFound:
        visible, renewed = self._visible(caller), self._shelf.catalog.renewed(name)
        near = near_tools(name[:120], visible)
        hint = f"Did you mean {' or '.join(near)}?" if near else "Find tools with tool_browse or in the list"
        return unknown_tool(name, renewed if renewed in visible else None, hint)

    def hydrate(self, caller: Caller, args: HydrateArgs, session: str | None = None) -> dict[str, Any]:
        self._count(caller)
        tool = self.tool(caller, args.tool_id)
        self._note_seen(caller, tool, session)
        return hydrated(tool)

    def _note_seen(self, caller: Caller, tool: Tool, session: str | None) -> None:
        kept = self._session(caller, session)
        if kept is not None:
            kept.record(tool.id)

    async def execute(self, call: Call, args: ExecuteArgs, held: HoldCall) -> Outcome | Pending:
        """Run the tool that `args` names as `call`; handles among its arguments stand for what they hold."""
        call = replace(call, tool=args.tool_id, arguments=args.args)
        try:
            call = replace(call, arguments=await self._fill(call.caller, args))
        except GatewayError as error:
            return self._calls.refuse(call, error)
        outcome = await held(lambda seconds: self._calls.run(call, wait=seconds))
        tool = self._shelf.catalog.find(args.tool_id)
        if isinstance(outcome, Outcome) and tool is not None:
            if outcome.state is State.COMPLETED:
                self._note_seen(call.caller, tool, call.session)
            elif isinstance(outcome.error, InvalidArgs):
                return replace(outcome, error=with_usage(outcome.error, tool))
        elif isinstance(outcome, Outcome) and isinstance(outcome.error, ToolNotFound):
            return replace(outcome, error=self._unknown(call.caller, args.tool_id))
        return outcome

    def record_refusal(self, call: Call, error: GatewayError) -> GatewayError:
        """What to answer to a call that came to nothing: it goes on record, unless it only wanted to look."""
        return error if call.tool in LOOKS else self._calls.refuse(call, error).error or error

    async def _fill(self, caller: Caller, args: ExecuteArgs) -> Mapping[str, Json]:
        handles = find_handles(args.args)
        tool = self._shelf.catalog.find(args.tool_id)
        if not handles or tool is None:
            return args.args

        async def find() -> Sequence[Stored | InStore]:
            found = await self._artifacts.find_all(handles, caller, SMALL)
            return [found[handle] for handle in job.handles]

        job = FillJob(args.args, tool.input_schema, tuple(sorted(handles)))
        return await self._readers.work(("views", caller.name), job, find)

    async def answer(
        self, name: str, arguments: Mapping[str, Json], call: Call, *, wait: float | None
    ) -> bytes | Pending:
        """A meta-tool's answer as plain JSON, for surfaces without content blocks; errors are raised."""
        try:
            args = parse(name, arguments)
        except GatewayError as error:
            raise self.record_refusal(call, error) from None
        if isinstance(args, BrowseArgs):
            page = self.browse(call.caller, args, call.session)
            return encode({"cards": page.cards, "text": page.text})
        if isinstance(args, HydrateArgs):
            return encode(self.hydrate(call.caller, args, call.session))
        if isinstance(args, ViewArgs):
            return encode(await self.view(call.caller, args, wait=wait or 0))
        outcome = await self.execute(replace(call, mode="gateway"), args, lambda run: run(wait))
        if isinstance(outcome, Pending):
            return outcome
        if outcome.result is None or outcome.error is not None:
            raise outcome.error or ViewFailed("The call ended without a result")
        return outcome.result.body

    async def view(self, caller: Caller, args: ViewArgs, *, wait: float = 0) -> ResultView:
        """A bounded look into a stored result; also the way to read a call that waited for a person."""
        self._count(caller)
        try:
            stored = await self._artifacts.load_small(args.handle, caller, SMALL)
        except ViewFailed:
            stored = await self._wait_for(caller, args.handle, wait)

        async def find() -> Sequence[Stored | InStore]:
            return [stored or await self._artifacts.find(args.handle, caller, SMALL)]

        job = ViewJob(args.selector)
        if stored is not None and len(stored.body) <= SMALL:
            return self._readers.now(job, [stored])
        return await self._readers.work(("views", caller.name), job, find)

    async def _wait_for(self, caller: Caller, handle: str, wait: float) -> Stored:
        if not HANDLE.fullmatch(handle):
            raise ViewFailed("This is not a handle. Use one from the `artifacts` of a result.")
        outcome = await self._calls.await_outcome(handle.removeprefix(handle_of("")), caller, wait=wait)
        if isinstance(outcome, Pending):
            raise DependencyUnavailable(
                "The call still waits for a person. View it again later", retry_after=10
            )
        if outcome.result is None:
            raise outcome.error or ViewFailed(
                "There is no such artifact, or it has expired. Call the tool again."
            )
        return Stored(MEDIA_TYPES[outcome.result.kind], outcome.result.body)
