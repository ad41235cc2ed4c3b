"""The catalog changes while agents browse it, and while its tools are still being placed by meaning."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from agent_gate.access.view import View
from agent_gate.calls.meta import MetaTools
from agent_gate.core.call import Caller
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


def test_browsers_never_see_a_catalog_that_was_replaced() -> None:
    async def story() -> None:
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

    asyncio.run(story())
