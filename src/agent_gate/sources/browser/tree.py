"""`PageNode`: what a page shows, as a tree of roles, names and states; pure, made of Playwright's snapshot and our details.

Nothing here asks the page: what a node says was read in a world that the page's scripts cannot reach.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

UNSEEN = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
HIDDEN = "•••"
STATES = ("checked", "disabled", "expanded", "pressed", "selected", "invalid", "active")
ROLES = frozenset(
    [
        "button",
        "checkbox",
        "combobox",
        "gridcell",
        "link",
        "listbox",
        "menuitem",
        "menuitemcheckbox",
        "menuitemradio",
        "option",
        "radio",
        "scrollbar",
        "searchbox",
        "slider",
        "spinbutton",
        "switch",
        "tab",
        "textbox",
        "treeitem",
    ]
)
"""Roles that people act on."""
EDITABLE = frozenset({"textbox", "searchbox", "combobox", "spinbutton", "slider"})
CLICKABLE = "clickable"
"""The role of what reacts to clicks without having said so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What an element is beyond its role and name. `submits` and `form` are a method and the origin it goes to."""

    origin: str = ""
    submits: str = ""
    form: str = ""
    href: str = ""
    download: bool = False
    secret: bool = False
    type: str = ""
    backend: int = 0
    """Chromium's own number, for elements that Playwright has no reference for."""


NO_DETAILS = Details()


@dataclass(slots=True, eq=False)
class PageNode:
    """An element, or a run of text (role `text`). Compared by identity."""

    role: str
    name: str = ""
    text: str = ""
    ref: str = ""
    children: "list[PageNode]" = field(default_factory=list)
    states: Mapping[str, Any] = field(default_factory=dict)
    level: int = 0
    pointer: bool = False
    placeholder: str = ""
    url: str = ""
    """Where a link leads, as the page wrote it."""
    details: Details = NO_DETAILS

    @property
    def acts(self) -> bool:
        """Whether a person would act on it, by what it says it is; what is only inside such a thing is not asked here."""
        return bool(self.ref) and (self.role in ROLES or self.role == CLICKABLE)

    def walk(self) -> "Iterator[PageNode]":
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))


def cleaned(text: str) -> str:
    """Text without what cannot be seen, such as marks that turn its direction, on one line."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split()) if "  " in text or text[:1] == " " or text[-1:] == " " else text
    return " ".join(UNSEEN.sub("", text).split())


def text_node(text: str) -> PageNode:
    return PageNode("text", text=cleaned(text))


def frame_of(ref: str) -> str:
    """The part of a reference that is the same for a whole frame: `f3` of `f3e12`."""
    return ref.rpartition("e")[0]


def build(raw: Sequence[Any], details: Mapping[str, Details], origins: Mapping[str, Details]) -> PageNode:
    """The tree of one snapshot below a root of its own. Values of secret fields are left behind here.

    `origins` is what is known of every element of a frame.
    """
    root = PageNode("page")
    waiting: list[tuple[Any, PageNode]] = [(one, root) for one in reversed(raw)]
    while waiting:
        one, parent = waiting.pop()
        if isinstance(one, str):
            if text := cleaned(one):
                parent.children.append(PageNode("text", text=text))
            continue
        node = make_node(one, details, origins)
        parent.children.append(node)
        children = one.get("children")
        if children and not node.details.secret:
            waiting.extend((child, node) for child in reversed(children))
    return root


def make_node(
    one: Mapping[str, Any], details: Mapping[str, Details], origins: Mapping[str, Details]
) -> PageNode:
    ref = one.get("ref") or ""
    found = details.get(ref) or origins.get(frame_of(ref), NO_DETAILS)
    text = one.get("text")
    shown = cleaned(str(text)) if text else ""
    return PageNode(
        role=one.get("role") or "generic",
        name=cleaned(str(one["name"])) if one.get("name") else "",
        text=(HIDDEN if shown else "") if found.secret else shown,
        ref=ref,
        states={name: one[name] for name in STATES if one.get(name)},
        level=one.get("level") or 0,
        pointer=one.get("cursor") == "pointer",
        placeholder=cleaned(str(one["placeholder"])) if one.get("placeholder") else "",
        url=one.get("url") or "",
        details=found,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Loose:
    """An element that reacts to clicks and that the snapshot does not know, or only as text or as a wrapper.

    `near` is the reference of the closest element around it that has one.
    """

    ref: str
    near: str
    own: str
    role: str
    name: str
    text: str = ""
    states: Mapping[str, Any] = field(default_factory=dict)
    details: Details


def add_loose(root: PageNode, found: Sequence[Loose]) -> None:
    """Put what reacts to clicks where its text stands; below its closest known element where that is not seen."""
    by_ref = {node.ref: node for node in root.walk() if node.ref}
    for loose in found:
        known = by_ref.get(loose.own) if loose.own else None
        if known is not None:
            if not known.acts:
                known.role = CLICKABLE if known.role in ("generic", "none", "text") else known.role
                known.pointer = True
            continue
        parent = by_ref.get(loose.near, root)
        text = (HIDDEN if loose.text else "") if loose.details.secret else loose.text
        node = PageNode(
            loose.role,
            name=loose.name,
            text=text,
            ref=loose.ref,
            states=loose.states,
            details=loose.details,
            pointer=True,
        )
        place(parent, node)
        by_ref[node.ref] = node


def place(parent: PageNode, node: PageNode) -> None:
    """In the place of the text that it is, or of the part of a text; at the end where there is none."""
    for index, child in enumerate(parent.children):
        if child.role != "text" or not node.name or node.name not in child.text:
            continue
        before, _, after = child.text.partition(node.name)
        parts = [text_node(before), node, text_node(after)]
        parent.children[index : index + 1] = [part for part in parts if part.role != "text" or part.text]
        return
    parent.children.append(node)


def actionable(root: PageNode) -> list[PageNode]:
    """Everything that can be acted on: by its role, because it reacts, or the topmost of what has a pointer."""
    found: list[PageNode] = []
    waiting = [(root, False)]
    while waiting:
        node, pointed = waiting.pop()
        if node.ref and (node.acts or (node.pointer and not pointed)):
            found.append(node)
        below = pointed or node.pointer
        waiting.extend((child, below) for child in reversed(node.children))
    return found


def described(node: PageNode) -> str:
    """A node in a few words, for sentences."""
    return f"{node.role} “{node.name}”" if node.name else node.role
