"""A page's bytes into readable text, in a process of its own: what strangers wrote meets native parsers there alone.

`python -m agent_gate.sources.web.extract` reads one line of JSON and the bytes, and writes one `Readable` as JSON.
"""

import re
import resource
import sys
from typing import BinaryIO

import msgspec

MOST_CHARACTERS = 400_000
MEMORY = 1 << 30
CPU_SECONDS = 20
LINK = re.compile(r"(!?)\[([^\]\n]*)\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)")
HEADING = re.compile(r"^(#{1,4}) (.+)$", re.MULTILINE)
CHARSET = re.compile(r"charset=[\"']?([A-Za-z0-9_.:-]+)", re.IGNORECASE)
META_CHARSET = re.compile(rb"<meta[^>]+charset=[\"']?([A-Za-z0-9_.:-]+)", re.IGNORECASE)


class ReadOrder(msgspec.Struct, frozen=True):
    """What to make of the bytes that follow. `raw`: the text as it is."""

    url: str
    content_type: str
    size: int
    raw: bool = False


class Readable(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader gets. `links` are numbered in the text as [1], [2] and so on."""

    text: str
    title: str = ""
    author: str = ""
    date: str = ""
    links: tuple[str, ...] = ()
    fault: str = ""


def read_page(order: ReadOrder, body: bytes) -> Readable:
    kind = order.content_type.partition(";")[0].strip().lower()
    if kind == "application/pdf" or body[:5] == b"%PDF-":
        return read_pdf(body)
    text = decode(body, order.content_type)
    looks_like_html = kind in ("text/html", "application/xhtml+xml") or (
        not kind and "<html" in text[:1000].lower()
    )
    if order.raw or not looks_like_html:
        if not order.raw and not is_text(kind, body):
            return Readable(text="", fault=f"This is {kind or 'of an unknown type'}, not text")
        return Readable(text=text[:MOST_CHARACTERS])
    return read_html(text, order.url)


def is_text(kind: str, body: bytes) -> bool:
    if kind.startswith("text/") or kind.endswith(("json", "xml", "javascript", "yaml")):
        return True
    return not kind and b"\0" not in body[:4096]


def decode(body: bytes, content_type: str) -> str:
    """By its byte-order mark, its header, its own words, else UTF-8."""
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if body.startswith(mark):
            return body.decode(name, errors="replace")
    said = CHARSET.search(content_type)
    meta = META_CHARSET.search(body[:4096])
    for name in (said[1] if said else "", meta[1].decode() if meta else "", "utf-8"):
        try:
            if name:
                return body.decode(name, errors="replace")
        except LookupError:
            continue
    return body.decode("utf-8", errors="replace")


def read_html(text: str, url: str) -> Readable:
    import trafilatura
    from trafilatura.metadata import extract_metadata

    body = trafilatura.extract(
        text,
        url=url,
        include_links=True,
        include_tables=True,
        include_formatting=True,
        output_format="markdown",
    )
    if not body:
        return Readable(text="", title=page_title(text), fault="There is no readable text on this page")
    numbered, links = number_links(body[:MOST_CHARACTERS])
    about = extract_metadata(text, default_url=url)
    return Readable(
        text=numbered,
        title=about.title or page_title(text),
        author=about.author or "",
        date=about.date or "",
        links=links,
    )


def page_title(text: str) -> str:
    found = re.search(r"<title[^>]*>(.*?)</title>", text, re.DOTALL | re.IGNORECASE)
    return " ".join(found[1].split())[:300] if found else ""


def number_links(markdown: str) -> tuple[str, tuple[str, ...]]:
    """`[words](address)` as `words [3]`, the addresses once each in a list."""
    numbers: dict[str, int] = {}

    def numbered(found: re.Match[str]) -> str:
        if found[1]:
            return f"(image: {found[2]})" if found[2] else ""
        if not found[3] or found[3].startswith("#"):
            return found[2]
        return f"{found[2]} [{numbers.setdefault(found[3], len(numbers) + 1)}]"

    text = LINK.sub(numbered, markdown)
    return text, tuple(numbers)


def read_pdf(body: bytes) -> Readable:
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        return Readable(text="", fault=f"This PDF cannot be read: {error}")
    title = str(document.get_metadata_dict().get("Title") or "")
    pages: list[str] = []
    size = 0
    for number in range(len(document)):
        text = document[number].get_textpage().get_text_range()
        pages.append(f"## Page {number + 1}\n\n{text.strip()}")
        size += len(text)
        if size > MOST_CHARACTERS:
            break
    return Readable(text="\n\n".join(pages)[:MOST_CHARACTERS], title=title)


def outline(text: str) -> list[str]:
    """The headings of a text, indented by their level, with the line at which each stands."""
    return [
        f"{'  ' * (len(found[1]) - 1)}{found[2].strip()} (line {text.count(chr(10), 0, found.start()) + 1})"
        for found in HEADING.finditer(text)
    ]


def confine() -> None:
    """Nothing a page says may take more than this."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    order = msgspec.json.decode(incoming.readline(), type=ReadOrder)
    body = incoming.read(order.size)
    confine()
    outgoing.write(msgspec.json.encode(read_page(order, body)))


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
