"""The browse operation: a query or a path in, cards and their prompt form out; order kept stable on request.

A `Browser` is made once per catalog and set of visible tools and never changes. A `SeenTools` remembers which
cards one run of an agent has seen, so that their bytes stay the same in its prompt.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from agent_gate.core.ids import fold_namespace
from agent_gate.core.tool import Tool
from agent_gate.discovery.cards import MARKER, ChoiceCard, Deck, one_line, render, shorten
from agent_gate.discovery.rank import Index
from agent_gate.discovery.semantic import Semantic
from agent_gate.discovery.tree import Branch, find, grow
from agent_gate.errors import InvalidArgs

TOP_K, MOST = 8, 50
LONGEST_QUERY = 2000
MAX_SESSIONS = 1000


@dataclass(frozen=True, slots=True)
class Browsed:
    """What a browse answers: the cards for programs, the text for the prompt."""

    cards: tuple[ChoiceCard, ...]
    text: str


@dataclass(slots=True)
class SeenTools:
    """The tool ids one run of an agent has seen. Emitted cards are frozen; a changed definition thaws its card."""

    seen: dict[str, ChoiceCard | None] = field(default_factory=dict)
    bases: dict[str, ChoiceCard] = field(default_factory=dict)

    def record(self, tool_id: str) -> None:
        """A tool was hydrated or executed with success."""
        self.seen.setdefault(tool_id, None)

    def arrange(self, cards: Sequence[ChoiceCard], bases: Mapping[str, ChoiceCard]) -> list[ChoiceCard]:
        """Seen cards first, as they were first shown, then the marker, then new ones; both parts by id."""
        old = sorted((card for card in cards if card.id in self.seen), key=lambda card: card.id)
        new = sorted((card for card in cards if card.id not in self.seen), key=lambda card: card.id)
        shown = [self._freeze(card, bases.get(card.id, card)) for card in [*old, *new]]
        if old and new:
            shown.insert(len(old), MARKER)
        return shown

    def _freeze(self, card: ChoiceCard, base: ChoiceCard) -> ChoiceCard:
        frozen = self.seen.get(card.id)
        if frozen is None or self.bases.get(card.id) != base:
            frozen = self.seen[card.id] = card
            self.bases[card.id] = base
        return frozen


class SeenBySession:
    """The sessions of all callers, by caller and session key; the longest unused are forgotten."""

    def __init__(self, most: int = MAX_SESSIONS) -> None:
        self._sessions: OrderedDict[tuple[str, str], SeenTools] = OrderedDict()
        self._most = most

    def get(self, caller: str, key: str) -> SeenTools:
        session = self._sessions.setdefault((caller, key), SeenTools())
        self._sessions.move_to_end((caller, key))
        while len(self._sessions) > self._most:
            self._sessions.popitem(last=False)
        return session


class Browser:
    """Cards, tree and index of the tools that a caller may see."""

    def __init__(
        self,
        tools: Iterable[Tool],
        titles: Mapping[str, str],
        previous: "Browser | None" = None,
        semantic: Semantic | None = None,
    ) -> None:
        self.deck: Deck = Deck.build(tools, previous.deck if previous else None)
        shown = [self.deck.sources[id_] for id_ in self.deck.cards]
        self.titles = titles
        self.tree = grow(shown)
        self.index: Index = Index(shown, titles, previous.index if previous else None, semantic)

    def query(self, text: str, top_k: int = TOP_K, path: str = "/") -> list[ChoiceCard]:
        """The best cards for a request, by falling score and then by id; only what lies below `path`."""
        if path == "/":
            hits = self.index.search(text, top_k)
        else:
            below = tools_below(self._place(path))
            found = self.index.search(text, len(self.index.documents))
            hits = [hit for hit in found if hit.tool.id in below][:top_k]
        return [msgspec.structs.replace(self.deck.cards[hit.tool.id], score=hit.score) for hit in hits]

    def path(self, path: str) -> list[ChoiceCard]:
        """The children at a path, or the one card of a leaf."""
        place = self._place(path)
        if isinstance(place, Tool):
            return [self.deck.cards[place.id]]
        inner = [self._node_card(node) for node in place.nodes.values()]
        return inner + [self.deck.cards[tool.id] for tool in place.leaves.values()]

    def leaf(self, path: str) -> Tool | None:
        """The tool whose own path, or id, this is."""
        place = self._place(path)
        return place if isinstance(place, Tool) else None

    def _place(self, path: str) -> Branch | Tool:
        """What is at a path. A tool's id is one too, since that is what its card shows, with its hash or without."""
        if path.startswith("/"):
            return find(self.tree, path)
        wanted = path.partition("#")[0]
        named = (tool for tool in self.index.documents if tool.tool.id.partition("#")[0] == wanted)
        found = next(named, None)
        return found.tool if found is not None else find(self.tree, path)

    def _title(self, node: Branch) -> str:
        """What a namespace says of itself, where that is more than its name."""
        title = one_line(self.titles.get(node.namespace, "")) if node.path == f"/{node.namespace}" else ""
        return "" if fold_namespace(title) == node.namespace else title

    def _node_card(self, node: Branch) -> ChoiceCard:
        label = node.path.rpartition("/")[2]
        title = self._title(node)
        children = [*node.nodes, *node.leaves]
        inside = ", ".join(children[:6]) + (", …" if len(children) > 6 else "")
        counted = f"{node.size} tool{'s' if node.size != 1 else ''}: {inside}"
        return shorten(
            ChoiceCard(
                id=node.path,
                name=label[:64],
                description=f"{counted}. {title}" if title else counted,
                kind="internal",
                namespace=node.namespace,
            )
        )


def browse(
    browser: Browser,
    *,
    query: str | None = None,
    path: str | None = None,
    top_k: int = TOP_K,
    session: SeenTools | None = None,
) -> Browsed:
    """A query, a path, or a query for what lies below a path. With a session, the order is stable for prompt caches."""
    if query is not None:
        cards = browser.query(query[:LONGEST_QUERY], min(max(top_k, 1), MOST), path or "/")
    elif path is not None:
        cards = browser.path(path)
    else:
        raise InvalidArgs("Pass `query` (what you want to do) or `path` (such as / or /namespace).")
    if session is not None:
        cards = session.arrange(cards, browser.deck.cards)
    return Browsed(tuple(cards), prompt(cards))


def tools_below(place: Branch | Tool) -> set[str]:
    """The ids of the tools at and below a place of the tree."""
    if isinstance(place, Tool):
        return {place.id}
    leaves = {tool.id for tool in place.leaves.values()}
    return leaves.union(*map(tools_below, place.nodes.values()))


def prompt(cards: Sequence[ChoiceCard]) -> str:
    """One line per card; where there is none, that there is none."""
    return (
        "\n".join(map(render, cards))
        or "No good match: no tool here is clearly for that. Use other words, or browse the path / for all there is."
    )
