"""A path argument stays in its place, whatever reads the path on its way to the service."""

import posixpath
import re
import unicodedata
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_gate.errors import InvalidArgs
from agent_gate.sources.http.request import path_of

LEAVES = [
    "..",
    ".",
    "../secret",
    "..\\secret",
    "a/../../b",
    "%2e%2e",
    "%252e%252e",
    "%25252e%2e/x",
    "%2e%2e%2fsecret",
    "．．",
    "．．／secret",
    "‥",
    "․․",
    "..∕secret",
    " ..",
    ".. ",
    "\t..",
    "%20..",
    "\u00a0..",
    ".\u200b.",
    "..;/secret",
    "..;a=b",
    "..%3b/secret",
    "..\x00.txt",
    "..%00.txt",
    "..?x",
    "..#x",
    ". .",
    ".. .",
    "%c0%ae%c0%ae",
    "%ff",
    " ",
    "\u200b",
    ";",
    "/",
    "%" + "25" * 12 + "2e",
]
STAYS = [
    "light.kitchen",
    "a b",
    "50%",
    "100%25",
    "v1..v2",
    "…a",
    "...",
    "a/b",
    "Ünïcödé",
    "a;b=c",
    "ﬁle",
    "日本",
    "a.",
    ".env",
]


@pytest.mark.parametrize("value", LEAVES)
@pytest.mark.parametrize("template", ["/files/{name}", "/files/{name}/meta"])
def test_a_path_argument_that_somebody_could_read_as_a_step_up_is_refused(template, value):
    with pytest.raises(InvalidArgs, match="Invalid value for name"):
        path_of(template, {"name": value})


@pytest.mark.parametrize("value", STAYS)
def test_an_ordinary_name_is_one_segment(value):
    path = path_of("/files/{name}", {"name": value})
    assert unquote(path) == f"/files/{value}"
    assert path.count("/") == 2


def test_dots_that_a_template_and_an_argument_make_together_are_refused():
    with pytest.raises(InvalidArgs):
        path_of("/files/.{name}", {"name": "."})


def readings(path: str) -> list[str]:
    """What proxies and servers that are too obliging make of a path; each does one more than the one before."""
    found = [path]
    for _ in range(4):
        for change in (
            unquote,
            lambda text: unicodedata.normalize("NFKC", text),
            lambda text: text.replace("\\", "/"),
            lambda text: re.sub("[\u2044\u2215]", "/", text),
            lambda text: re.sub(r"[;\x00?#][^/]*", "", text),
            lambda text: "/".join(part.strip() for part in text.split("/")),
        ):
            found.append(change(found[-1]))
    return found


DOTS = [".", "..", "%2e", "%252e", "．", "․", "‥", "b.c"]
SLASHES = ["/", "\\", "%2f", "%5c", "／", "⁄"]
OTHERS = [";", "%3b", " ", "%20", "\u00a0", "\x00", "%00", "%25", "%", "2e", "2f", "25", "a", "é", "?", "#"]
PIECES = st.sampled_from([*DOTS, *SLASHES, *OTHERS])


@given(st.lists(PIECES, min_size=1, max_size=8).map("".join) | st.text(max_size=20))
@example("..;/..;/x")
@example("%25" * 3 + "2e.")
def test_no_reading_of_an_accepted_path_leaves_its_folder(value):
    try:
        path = path_of("/files/{name}", {"name": value})
    except InvalidArgs:
        return
    for read in readings(path):
        assert posixpath.normpath(read).startswith("/files/"), read
