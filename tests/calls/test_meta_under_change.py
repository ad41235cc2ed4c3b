"""The catalog changes while agents browse it, and while its tools are still being placed by meaning."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any, cast

import pytest

from agent_gate.access.view import View
from agent_gate.calls.admit import Draft, resolve
from agent_gate.calls.meta import MetaTools
from agent_gate.core.call import Call, Caller
from agent_gate.core.catalog import Catalog, Listing, Shelf, build
from agent_gate.core.tool import Definition
from agent_gate.discovery.cards import ChoiceCard
from agent_gate.discovery.meta import BrowseArgs, HydrateArgs
from agent_gate.discovery.tokens import fits
from agent_gate.errors import ToolNotFound
from agent_gate.policy import Policy

ROUNDS = 60
SERVERS = ("alpha", "beta")
TOOLS = 40


class Overlap:
    """Places texts by the words they share with a request: enough to rank by, and it runs in the real thread."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [set(text.lower().split()) for text in texts]

    def similarities(self, query: str) -> Sequence[float]:
        wanted = set(query.lower().split())
        return [len(wanted & text) / (len(wanted) or 1) for text in self._texts]


class Placing:
    def place(self, texts: Sequence[str]) -> Overlap:
        return Overlap(texts)


def catalog_of(server: str, before: Catalog | None = None) -> Catalog:
    tools = [
        Definition(name=f"read_{server}_{n}", description=f"Read record {n} of {server}.")
        for n in range(TOOLS)
    ]
    return build([Listing(key=server, namespace=server, title=server, definitions=tools)], before)


async def test_browsers_never_see_a_catalog_that_was_replaced() -> None:
    shelf, callers = Shelf(), [Caller(name="anna"), Caller(name="bert", cache_stable=True)]
    view = View(shelf, Policy)
    meta = MetaTools(cast(Any, None), shelf, view.tools, cast(Any, None), fits, Placing)
    every = {tool.id for server in SERVERS for tool in catalog_of(server).tools}

    async def browse(caller: Caller) -> None:
        for _ in range(ROUNDS):
            page = meta.browse(caller, BrowseArgs(query="read record 7", top_k=5), "s")
            ids = {card.id for card in page.cards if isinstance(card, ChoiceCard)}
            now = {tool.id for tool in shelf.catalog.tools}
            assert ids
            assert ids <= now
            assert meta.hydrate(caller, HydrateArgs(tool_id=min(ids)), "s")["tool_id"] == min(ids)
            with pytest.raises(ToolNotFound):
                meta.hydrate(caller, HydrateArgs(tool_id=min(every - now)), "s")
            await asyncio.sleep(0)

    async def change() -> None:
        for number in range(ROUNDS):
            shelf.swap(catalog_of(SERVERS[number % 2], shelf.catalog))
            await asyncio.sleep(0)

    shelf.swap(catalog_of(SERVERS[0], shelf.catalog))
    await asyncio.gather(change(), *map(browse, callers))


def test_the_id_of_an_earlier_definition_is_answered_with_the_one_of_today() -> None:
    def defined(*arguments: str) -> Catalog:
        schema = {"type": "object", "properties": {name: {"type": "string"} for name in arguments}}
        tool = Definition(name="read", description="Read a record.", input_schema=schema)
        return build([Listing(key="alpha", namespace="alpha", definitions=[tool])], None)

    shelf = Shelf()
    shelf.catalog = defined("a")
    before = shelf.catalog.tools[0].id
    shelf.catalog = defined("a", "b")
    now = shelf.catalog.tools[0].id
    view = View(shelf, Policy)
    meta = MetaTools(cast(Any, None), shelf, view.tools, cast(Any, None), fits, Placing)
    told = f"Unknown tool: {before}. The definition of alpha:read changed: its id is {now} now"
    admitted = Draft(Call(tool=before, arguments={}, caller=Caller(name="anna")))
    with pytest.raises(ToolNotFound, match=re.escape(told)):
        meta.tool(Caller(name="anna"), before)
    with pytest.raises(ToolNotFound, match=re.escape(told)):
        resolve(shelf)(admitted)
    assert view.unknown(Caller(name="anna"), before).message.startswith(told)
    blind = Caller(name="anna", namespaces=frozenset({"beta"}))
    assert now not in view.unknown(blind, before).message
    with pytest.raises(ToolNotFound) as caught:
        resolve(shelf)(Draft(Call(tool=before, arguments={}, caller=blind)))
    assert caught.value.message == f"Unknown tool: {before}"
