"""`Item`: one line of a snapshot with what is below it."""

from collections.abc import Iterator, Sequence

LONGEST_NAME = 100
LONGEST_TEXT = 180
INDENT = 1
AS_TEXT = str.maketrans('"[]', "'()")
"""A page's own words cannot look like a reference, or like the end of a name."""
CONTAINERS = frozenset(
    [
        "article",
        "banner",
        "complementary",
        "contentinfo",
        "dialog",
        "alertdialog",
        "form",
        "grid",
        "iframe",
        "list",
        "listbox",
        "main",
        "menu",
        "menubar",
        "navigation",
        "radiogroup",
        "region",
        "search",
        "table",
        "tablist",
        "toolbar",
        "tree",
        "treegrid",
    ]
)
"""Roles whose line says something even where they have no name."""


class Item:
    """A role, what it is called, its reference, and what else is said of it.

    `inline` are items that stand on the same line, as the cells of a row do; `size` counts everything below too.
    """

    __slots__ = ("children", "inline", "lines", "name", "note", "ref", "role", "shape", "size", "weight")

    def __init__(
        self,
        role: str,
        name: str = "",
        ref: str = "",
        note: str = "",
        children: "Sequence[Item]" = (),
        inline: "Sequence[Item]" = (),
        weight: int = 1,
    ) -> None:
        self.role, self.name, self.ref, self.note = role, name.translate(AS_TEXT), ref, note
        self.children, self.inline, self.weight = list(children), list(inline), weight
        self.shape = shape_of(self)
        self.lines: int = 1
        self.size: int = len(self.line()) + 1
        for child in self.children:
            self.lines += child.lines
            self.size += child.size + INDENT * child.lines

    def line(self) -> str:
        """The item without what is below it."""
        if self.inline:
            joined = " ".join(part.line() for part in self.inline)
            return f"{self.head()}: {joined}" if self.head() else joined
        return self.head()

    def head(self) -> str:
        if self.role == "text":
            return self.name
        if self.role == "heading":
            return f"{self.note} {self.name}{f' [{self.ref}]' if self.ref else ''}"
        role = "" if self.role in ("item", "row", "listitem", "cell") else self.role
        parts = [role, f'"{self.name}"' if self.name else "", f"[{self.ref}]" if self.ref else "", self.note]
        return " ".join(part for part in parts if part)

    def packs(self) -> bool:
        """Whether it can share a line, and its role, with neighbours of its kind."""
        return bool(self.ref and self.name and not (self.note or self.children or self.inline))

    def refs(self) -> Iterator[str]:
        """Every reference that is seen in it, or below it."""
        waiting = [self]
        while waiting:
            item = waiting.pop()
            if item.ref:
                yield item.ref
            waiting += item.inline
            waiting += item.children

    def first_name(self) -> str:
        """What it is called, or the first thing in it that is called something."""
        waiting = [self]
        while waiting:
            item = waiting.pop(0)
            if item.name:
                return item.name
            waiting = [*item.inline, *item.children, *waiting]
        return ""


def shape_of(item: Item) -> str:
    """What items of one kind have in common: their role, and the roles on their first level."""
    if not (item.inline or item.children):
        return item.role
    inner = sorted({part.role for part in (*item.inline, *item.children)})
    return f"{item.role}({','.join(inner)})"


def clip(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
