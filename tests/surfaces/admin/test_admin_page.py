import json
import re
import shutil
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
        "/@0",
        "/@0/",
        "/@0/index.html",
        "/@0/../pyproject.toml",
        "/@0/@0/app.js",
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


def announced(page=None):
    """The modules that the head of the page names, by the version and the path of each."""
    link = dict(get("/", page).headers)[b"link"].decode()
    return re.findall(r"<(/@\w+)(/[^>]+\.js)>; rel=modulepreload", link)


def imported(path):
    text = (folder() / path.removeprefix("/")).read_text()
    names = re.findall(r'^(?:import|export)\b.*?"(\.[^"]+)"', text, re.MULTILINE)
    return {
        "/" + str((folder() / path[1:]).parent.joinpath(name).resolve().relative_to(folder()))
        for name in names
    }


def test_every_module_that_has_to_be_there_before_the_page_runs_is_named_in_its_head():
    named = {path for _, path in announced()}
    assert {"/app.js", "/api.js", "/dom.js"} <= named
    assert set().union(*map(imported, named)) <= named
    assert [path for path in named if path.startswith("/pages/")] == []


def test_the_page_knows_what_each_of_its_pages_needs_beside_the_frame():
    named = {path for _, path in announced()}
    needs = json.loads(re.search(r"data-needs='([^']+)'", get("/").body.decode())[1])
    assert needs.keys() == {path.stem for path in (folder() / "pages").glob("*.js")}
    for page, modules in needs.items():
        own = {module.removeprefix(".") for module in modules}
        assert f"/pages/{page}.js" in own
        assert own.isdisjoint(named)
        assert set().union(*map(imported, own)) <= own | named


def test_every_module_that_another_imports_is_there():
    there = {f"/{path.relative_to(folder())}" for path in SOURCES}
    assert {(path, name) for path in there for name in imported(path) - there} == set()


def test_what_a_document_names_is_kept_for_good_and_the_document_is_asked_for_each_time():
    for document in ("/", "/login"):
        page = get(document)
        assert dict(page.headers)[b"cache-control"] == b"no-cache"
        named = re.findall(r'(?:href|src)="(/[^"]+\.(?:css|js))"', page.body.decode())
        assert {path.rpartition("/")[2] for path in named} > {"tokens.css", "style.css"}
        for path in named:
            answer = get(path)
            assert (answer.status, dict(answer.headers)[b"cache-control"]) == (
                200,
                b"max-age=31536000, immutable",
            )
            assert answer.body == (folder() / path.split("/", 2)[2]).read_bytes()


def test_after_a_change_of_any_file_all_are_asked_for_again(tmp_path):
    shutil.copytree(folder(), tmp_path / "ui")
    before = PageFiles(tmp_path / "ui")
    with (tmp_path / "ui" / "pages" / "now.js").open("a") as file:
        file.write("// one word more\n")
    after = PageFiles(tmp_path / "ui")
    assert set(announced(before)).isdisjoint(announced(after))
    tag = dict(get("/", before).headers)[b"etag"].decode()
    assert get("/", after, **{"if-none-match": tag}).status == 200


def test_a_version_that_is_not_here_gets_what_is_here_and_does_not_keep_it():
    answer = get("/@0/app.js")
    assert (answer.status, answer.body) == (200, get("/app.js").body)
    assert dict(answer.headers)[b"cache-control"] == b"no-store"


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
