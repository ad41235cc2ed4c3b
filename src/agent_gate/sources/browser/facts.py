"""What a call is about, from the last snapshot: the facts that signatures and questions are made of. Pure.

Agents say which reference they mean and never what it is: that is read here.
"""

from difflib import SequenceMatcher
from urllib.parse import quote, urlsplit, urlunsplit

from agent_gate.errors import Forbidden, InvalidArgs
from agent_gate.sources.browser.looking import Sight
from agent_gate.sources.browser.tab import KEY, Tab, origin_of
from agent_gate.sources.browser.tree import PageNode, described

LOCAL = ("localhost", "127.", "[::1]", "0.0.0.0")  # noqa: S104 -- told from others, not bound to
LONGEST_URL = 8192
SAFE = "!#$%&'()*+,/:;=?@[]~"
SUBMITTING_KEYS = frozenset({"Enter", "NumpadEnter"})


def complete(text: str) -> str:
    """What an agent would type, as an address; only `http` and `https`, and no password in it."""
    text = text.strip()
    if not text or len(text) > LONGEST_URL:
        raise InvalidArgs("url must be an address such as https://example.com/page")
    if text == "about:blank":
        return text
    head = text.partition("/")[0].partition("?")[0]
    if "://" not in text and (":" not in head or head.rpartition(":")[2].isdigit()):
        text = f"{'http' if text.startswith(LOCAL) else 'https'}://{text}"
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        raise InvalidArgs("url must be an address such as https://example.com/page") from None
    if parts.scheme.lower() not in ("http", "https"):
        raise Forbidden(f"Only http and https pages are opened, not {parts.scheme[:20]}:")
    if not host or "@" in parts.netloc:
        raise InvalidArgs("url must name a host, and no user or password")
    try:
        named = host if ":" in host or host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        raise InvalidArgs("url must name a host") from None
    place = f"[{named}]" if ":" in named else named
    netloc = place.lower() if port is None else f"{place.lower()}:{port}"
    return urlunsplit(
        (
            parts.scheme.lower(),
            netloc,
            quote(parts.path or "/", safe=SAFE),
            quote(parts.query, safe=SAFE),
            parts.fragment,
        )
    )


def page_of(url: str) -> str:
    """An address without what changes while one stays on a page."""
    parts = urlsplit(url)
    return f"{origin_of(url)}{parts.path}" if parts.netloc else origin_of(url)


def about_page(tab: Tab | None) -> dict[str, str]:
    return {"origin": tab.origin if tab else ""}


def about_element(tab: Tab, ref: str) -> dict[str, str]:
    """The element behind a reference: whose it is, what it is called, and what acting on it does by itself."""
    node = find(tab, ref)
    details = node.details
    facts = {
        "origin": details.origin or tab.origin,
        "page": page_of(tab.page.url),
        "element": node.name or node.text or node.role,
        "role": node.role,
    }
    if details.href:
        facts["leads_to"] = page_of(details.href)
    return facts


def about_choice(tab: Tab, ref: str) -> dict[str, str]:
    """An element that sends something when it changes is known to only once it tried."""
    facts = about_element(tab, ref)
    if ref in tab.learned:
        facts["submits"] = tab.learned[ref]
    return facts


def about_click(tab: Tab, ref: str) -> dict[str, str]:
    facts, details = about_choice(tab, ref), find(tab, ref).details
    if details.submits:
        facts["submits"] = details.submits
    if details.download:
        facts["downloads"] = facts.get("leads_to", "a file")
    return facts


def about_key(tab: Tab, key: str) -> dict[str, str]:
    """A key goes to what has the focus."""
    facts = {"origin": tab.origin, "key": key}
    focus = focused(tab.sight) if tab.sight else None
    if focus is not None:
        facts["element"] = focus.name or focus.role
        facts["origin"] = focus.details.origin or tab.origin
    submits = tab.learned.get(KEY, "")
    if focus is not None and (key in SUBMITTING_KEYS or (key in ("Space", " ") and focus.details.submits)):
        submits = submits or focus.details.submits or focus.details.form
    if submits:
        facts["submits"] = submits
    return facts


def focused(sight: Sight) -> PageNode | None:
    """What has the focus, below the page itself."""
    active = [node for node in sight.root.walk() if node.states.get("active") and node.acts]
    return active[-1] if active else None


def find(tab: Tab, ref: str) -> PageNode:
    """The element that a reference means now. Raises with the nearest match where it means none."""
    if tab.sight is None:
        raise InvalidArgs("Nothing was seen of this page yet. Look with browser_snapshot")
    node = tab.sight.known.get(ref)
    if node is not None:
        return node
    raise InvalidArgs(stale(tab, ref))


def stale(tab: Tab, ref: str) -> str:
    """What became of a reference that means nothing on the page as it is."""
    assert tab.sight is not None
    if ref in tab.groups.items:
        return f"{ref} is a group: open it with browser_snapshot(ref={ref!r}), and act on what is in it"
    before = tab.earlier.get(ref)
    if before is None:
        return f"There is no {ref[:32]} on this page. Look with browser_snapshot"
    near = nearest(tab.sight, before)
    offer = f" The nearest now is {described(near)} [{near.ref}]." if near else ""
    return f"{ref} is stale: it was {described(before)}, which is not on the page any more.{offer} Nothing was done"


def nearest(sight: Sight, before: PageNode) -> PageNode | None:
    """The element that is most like one that is gone, by role and name."""
    best, score = None, 0.5
    for node in sight.actionable:
        alike = SequenceMatcher(None, node.name.lower(), before.name.lower()).ratio()
        alike += 0.3 if node.role == before.role else 0.0
        if alike > score:
            best, score = node, alike
    return best
