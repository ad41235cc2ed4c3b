import re
from pathlib import Path

import pytest
from tests.surfaces.admin.admin_gate import Browser, browser, gate

from agent_gate.net.http import Request
from agent_gate.surfaces.admin.doors.page import PageFiles, folder

SOURCES = sorted(folder().rglob("*.js"))
STYLES = [*folder().rglob("*.css"), *folder().rglob("*.html")]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with gate(tmp_path_factory.mktemp("gate")) as gateway:
        yield gateway


def get(path, page=None, **headers):
    given = [(name.encode(), value.encode()) for name, value in headers.items()]
    return (page or PageFiles(folder())).serve(Request("GET", path.encode(), dict(given)), welcome=True)


def test_a_stranger_is_told_how_to_log_in_and_a_person_gets_the_page(gateway):
    stranger = Browser(gateway.announced["admin"]).send("GET", "/")
    assert stranger.status == 401
    assert b"agent-gate login" in stranger.body
    page = browser(gateway).send("GET", "/")
    assert page.status == 200
    assert b"/app.js" in page.body


def test_the_page_can_load_nothing_foreign_and_be_framed_by_nobody(gateway):
    person = browser(gateway)
    for path in ("/", "/login", "/app.js", "/api/status", "/api/nothing"):
        headers = person.send("GET", path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
    assert person.send("GET", "/api/status").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/%2e%2e/pyproject.toml",
        "/pages/../../src/agent_gate/errors.py",
        "/pages/..%2f..%2fpyproject.toml",
        "//etc/passwd",
        "/index.html",
        "/pages",
        "/pages/",
        "/.git/config",
    ],
)
def test_only_the_pages_own_files_are_served(path):
    assert get(path).status == 404


def test_a_file_beside_a_link_out_of_the_folder_is_not_followed_at_request_time(tmp_path):
    (tmp_path / "index.html").write_text("<!doctype html>")
    page = PageFiles(tmp_path)
    (tmp_path / "late.js").write_text("1")
    assert get("/late.js", page).status == 404
    assert page.paths() == ["/index.html"]


def test_an_unchanged_file_is_not_sent_again():
    first = get("/app.js")
    tag = dict(first.headers)[b"etag"].decode()
    again = get("/app.js", **{"if-none-match": tag})
    assert (first.status, again.status, again.body) == (200, 304, b"")
    assert get("/app.js", **{"if-none-match": '"other"'}).status == 200


def test_no_script_of_the_page_makes_markup_or_code_from_text():
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|\beval\(|new Function"
    )
    assert [
        (path.name, forbidden.findall(path.read_text()))
        for path in SOURCES
        if forbidden.search(path.read_text())
    ] == []


def test_no_file_of_the_page_names_a_foreign_address():
    foreign = re.compile(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}")
    namespace = "http://www.w3.org/2000/svg"
    for path in (*SOURCES, *STYLES):
        assert foreign.findall(path.read_text().replace(namespace, "")) == [], path.name


def test_everything_the_page_asks_for_is_in_the_openapi_document(gateway):
    documented = [
        re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
        for path in browser(gateway).get("/openapi.json")["paths"]
    ]
    own = {"/api/session"}
    asked = set()
    for path in SOURCES:
        for found in re.findall(r"[\"`](/api/[^\"`?\s]*)", path.read_text()):
            asked.add(
                re.sub(
                    r"\$\{(?:query\(|.*?\})?.*$",
                    "",
                    re.sub(r"\$\{segment\([^)]*\)\}|\$\{value\.call\}", "x", found),
                )
            )
    assert len(asked) > 20
    missing = [path for path in asked - own if not any(one.fullmatch(path) for one in documented)]
    assert missing == []


def test_the_page_is_packaged_and_found_in_a_checkout():
    assert folder() == Path(__file__).resolve().parents[3] / "ui"
    assert {"/index.html", "/login.html", "/style.css", "/app.js", "/pages/approvals.js"} <= set(
        PageFiles(folder()).paths()
    )
