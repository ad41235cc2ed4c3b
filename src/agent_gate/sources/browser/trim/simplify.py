"""From a page's tree to items: separators and wrappers go, labels are said once, short rows stand on one line."""

import re
from collections import Counter

from agent_gate.sources.browser.tree import CLICKABLE, EDITABLE, PageNode
from agent_gate.sources.browser.trim.item import AS_TEXT, CONTAINERS, LONGEST_NAME, LONGEST_TEXT, Item, clip

WORD = re.compile(r"\w")
ONE_LINE = 160
SHOWN_OPTIONS = 5
ROWS = frozenset({"row", "listitem", "cell", "gridcell", "columnheader", "rowheader", "article", "item"})
SILENT = frozenset({"page", "generic", "none", "presentation", "rowgroup", "paragraph", "strong", "emphasis"})
WEIGHTS = {
    "dialog": 6,
    "alertdialog": 6,
    "main": 4,
    "form": 2,
    "contentinfo": 1,
    "navigation": 1,
    "complementary": 1,
}
CHOICES = frozenset({"combobox", "listbox"})


def squeezed(text: str) -> str:
    return "".join(text.split()).lower()


def simplify(root: PageNode) -> list[Item]:
    """The items of a page. Everything that can be acted on is in them with its reference."""
    return Simplifier().below(root, pointed=False)


class Simplifier:
    """Bottom-up, without recursion on wide levels; depth is bounded by what a page can nest."""

    def below(self, node: PageNode, *, pointed: bool) -> list[Item]:
        """The items that a node's children become, wrappers of one thing unwrapped."""
        if len(node.children) < 2:
            return self.items(node.children[0], pointed=pointed) if node.children else []
        made: list[tuple[PageNode, list[Item]]] = []
        for child in node.children:
            items = self.items(child, pointed=pointed)
            if items:
                made.append((child, items))
        repeated = Counter(shape(items) for child, items in made if is_wrapper(child) and len(items) > 1)
        out: list[Item] = []
        for child, items in made:
            if is_wrapper(child) and len(items) > 1 and repeated[shape(items)] > 1:
                out.append(on_one_line(Item("item", children=items)))
            else:
                out.extend(items)
        return without_labels(out)

    def items(self, node: PageNode, *, pointed: bool) -> list[Item]:
        if node.role == "text":
            return [Item("text", clip(node.text, LONGEST_TEXT))] if WORD.search(node.text) else []
        acts = bool(node.ref) and (node.acts or (node.pointer and not pointed))
        inner = self.below(node, pointed=pointed or node.pointer)
        if acts:
            return [self.control(node, inner)]
        if node.role == "heading":
            return self.heading(node, inner)
        if node.role == "img":
            return [Item("img", clip(node.name, LONGEST_NAME))] if node.name and not inner else inner
        if node.role in CHOICES:
            return [self.control(node, inner)]
        return self.structure(node, inner)

    def control(self, node: PageNode, inner: list[Item]) -> Item:
        """Something to act on: its name, state and value; text that only repeats the name is left out."""
        if node.role in CHOICES and any(child.role == "option" for child in node.walk()):
            return self.choice(node, inner)
        name = node.name or first_words(inner)
        said = squeezed(name)
        kept = [item for item in inner if item.ref or not is_said(item, said)]
        role = node.role if node.role in CONTAINERS or node.acts else CLICKABLE
        note = " ".join(part for part in (*states(node), value(node)) if part)
        made = Item(role, clip(name, LONGEST_NAME), node.ref, note, kept)
        return on_one_line(made) if kept else made

    def choice(self, node: PageNode, inner: list[Item]) -> Item:
        """A list to choose from: what is chosen, and the first of the others; those with references stay reachable."""
        options = [child for child in node.walk() if child.role == "option"]
        chosen = [child.name for child in options if child.states.get("selected")]
        shown = ", ".join(f'"{clip(one.name, 40).translate(AS_TEXT)}"' for one in options[:SHOWN_OPTIONS])
        more = f", … {len(options)} in all" if len(options) > SHOWN_OPTIONS else ""
        at = (
            f'= "{clip(", ".join(chosen), 60).translate(AS_TEXT)}" '
            if chosen
            else f"{value(node)} "
            if value(node)
            else ""
        )
        kept = [item for item in inner if any(item.refs())]
        note = " ".join([*states(node), f"{at}of {shown}{more}"])
        return Item(node.role, clip(node.name, LONGEST_NAME), node.ref, note, kept)

    def heading(self, node: PageNode, inner: list[Item]) -> list[Item]:
        name = node.name or first_words(inner)
        kept = [item for item in inner if any(item.refs())]
        if (
            len(kept) == 1
            and kept[0].ref
            and not kept[0].children
            and squeezed(kept[0].name) == squeezed(name)
        ):
            only = kept[0]
            return [
                Item("heading", f"{only.role} {clip(name, LONGEST_NAME)}", only.ref, "#" * (node.level or 2))
            ]
        if not name and not kept:
            return []
        return [Item("heading", clip(name, LONGEST_NAME), "", "#" * (node.level or 2)), *kept]

    def structure(self, node: PageNode, inner: list[Item]) -> list[Item]:
        """What only arranges: landmarks, tables and lists keep a line where they have more than one thing in them."""
        if not inner:
            said = node.text or node.name
            return [Item("text", clip(said, LONGEST_TEXT))] if WORD.search(said) else []
        if node.role in ROWS:
            return [on_one_line(Item(node.role, children=inner))] if len(inner) > 1 else inner
        if node.role in SILENT or (node.role not in CONTAINERS and not node.name):
            return inner
        if len(inner) == 1 and node.role in ("list", "region", "article", "group") and not node.name:
            return inner
        named = clip(node.name, LONGEST_NAME) if node.role not in ROWS else ""
        return [Item(node.role, named, "", "", inner, weight=WEIGHTS.get(node.role, 1))]


def is_wrapper(node: PageNode) -> bool:
    return node.role in SILENT


def shape(items: list[Item]) -> str:
    return "+".join(sorted({item.shape for item in items}))


def states(node: PageNode) -> list[str]:
    found = [name for name, value in node.states.items() if value is True and name != "active"]
    found += [f"{name}={value}" for name, value in node.states.items() if value is not True]
    return found + (["secret"] if node.details.secret else []) + (["submits"] if node.details.submits else [])


def value(node: PageNode) -> str:
    if node.text:
        return f'= "{clip(node.text, LONGEST_NAME).translate(AS_TEXT)}"'
    if node.role in EDITABLE and node.placeholder and node.placeholder != node.name:
        return f'placeholder "{clip(node.placeholder, 40).translate(AS_TEXT)}"'
    return ""


def first_words(items: list[Item]) -> str:
    """The text of items without a name of their own, for what contains them."""
    words: list[str] = []
    for item in items:
        words += [part.name for part in (item, *item.inline) if part.name]
        if sum(map(len, words)) > LONGEST_NAME:
            break
    return " ".join(words)


def is_said(item: Item, said: str) -> bool:
    """Whether a text, or a picture's, is part of what its control is called already."""
    if item.children or any(item.refs()):
        return False
    return (
        squeezed(item.name.rstrip("…")) in said
        if item.name
        else all(is_said(part, said) for part in item.inline)
    )


def without_labels(items: list[Item]) -> list[Item]:
    """Text that a control next to it repeats as its name."""
    names = {squeezed(item.name) for item in items if item.ref and item.name}
    return [item for item in items if item.role != "text" or squeezed(item.name) not in names]


def on_one_line(item: Item) -> Item:
    """The item with its children beside it, where that makes a short line and hides no structure."""
    parts = [part for child in item.children for part in (child.inline if is_plain(child) else [child])]
    short = all(not part.children and part.role != "heading" for part in parts)
    if not parts or not short or sum(len(part.line()) + 1 for part in parts) > ONE_LINE:
        return item
    return Item(item.role, item.name, item.ref, item.note, (), parts, item.weight)


def is_plain(item: Item) -> bool:
    return bool(item.inline) and not (item.name or item.ref or item.note or item.children)
