"""The web tools through a running gateway, against local servers that answer as the real ones do."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest
from tests.gateway import TOKEN, Api, running

from agent_gate.config.settings import Settings
from agent_gate.errors import CallTimeout
from agent_gate.sources.web.fetching import Fetched
from agent_gate.sources.web.reading import make_readable
from agent_gate.sources.web.settings import known_tools

ARTICLE = """<!doctype html><html lang=en><head><title>Tides | The Almanac</title>
<meta name=author content="Ada Brook"><meta property="article:published_time" content="2026-03-04">
</head><body><nav><a href=/home>Home</a><a href=/about>About us</a></nav><article><h1>How tides work</h1>
<p>The sea rises and falls twice a day because the Moon pulls at it, as <a href="/moon">the page about the Moon</a>
explains in all the detail that anybody could wish for.</p><h2>Spring tides</h2>
<p>When Sun and Moon pull together, the water rises higher than usual; sailors have known this for as long as there
were harbours, and <a href="https://example.org/tables">tables</a> are printed every year.</p></article>
<footer>Copyright, cookies, and much more that nobody reads</footer><script>alert(1)</script></body></html>"""
PERMISSIONS = 'defaults: [{pattern: "*", action: allow}]\nrules: []\n'
RESULTS = """<div class="result"><h2><a rel="nofollow" class="result__a"
href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.org%2Ftides&amp;rut=x">Tides <b>explained</b></a></h2>
<a class="result__snippet" href="x">The <b>sea</b> rises &amp; falls.</a></div>
<div class="result result--ad"><a class="result__a" href="https://duckduckgo.com/y.js?ad=1">Buy boats</a></div>
<div class="result"><a class="result__a" href="https://example.com/moon">The Moon</a></div>"""
FORECAST = {
    "current": {
        "temperature_2m": 11.6,
        "apparent_temperature": 9.2,
        "relative_humidity_2m": 71,
        "weather_code": 61,
        "wind_speed_10m": 14.8,
    },
    "daily": {
        "time": ["2026-11-17", "2026-11-18"],
        "weather_code": [61, 0],
        "temperature_2m_max": [12.1, 9.0],
        "temperature_2m_min": [5.6, -1.4],
        "precipitation_sum": [4.2, 0.0],
        "precipitation_probability_max": [80, 5],
        "wind_speed_10m_max": [44.0, 12.0],
    },
}


def pdf(words: str) -> bytes:
    """The smallest PDF that says something."""
    stream = f"BT /F1 24 Tf 72 700 Td ({words}) Tj ET".encode()
    resources = b"/Resources << /Font << /F1 5 0 R >> >>"
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R %b >>" % resources,
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(out)
    return out + b"xref\n0 6\n0000000000 65535 f \n" + table + end


def page(body: str | bytes, kind: str = "text/html; charset=utf-8", status: int = 200, **headers: str):
    data = body.encode() if isinstance(body, str) else body
    return (status, {"Content-Type": kind, **headers}, data)


@pytest.fixture(scope="module")
def site():
    with Api() as made:
        yield made


def settings_with(web: dict[str, object]) -> dict[str, str]:
    settings = {
        "gateway": {"port": 0},
        "admin": {"port": 0},
        "agent": {"token": TOKEN},
        "permissions": "permissions.yaml",
        "rate_limit": {"max_requests_per_minute": 0},
        "web": web,
    }
    return {"config.yaml": json.dumps(settings), "permissions.yaml": PERMISSIONS}


@pytest.fixture(scope="module")
def gateway(site, tmp_path_factory):
    web = {
        "allow_private": ["127.0.0.1"],
        "max_bytes": 300_000,
        "search": {"url": f"{site.url}/ddg"},
        "weather": {"url": f"{site.url}/forecast", "places_url": f"{site.url}/places"},
    }
    with running(tmp_path_factory.mktemp("web"), settings_with(web), "--insecure") as made:
        yield made


@pytest.fixture(autouse=True)
def fresh(site):
    site.reset()


def text_of(reply) -> str:
    assert reply.status == 200, reply.body
    return reply.json["content"][0]["text"] if "content" in reply.json else reply.json["data"]


def fault_of(reply) -> str:
    assert reply.status >= 400, reply.body
    return reply.json["error"]["message"]


def test_a_page_is_readable_text_with_its_links_numbered(site, gateway):
    site.replies["/tides"] = page(ARTICLE)
    text = text_of(gateway.call("browser_fetch", {"url": f"{site.url}/tides"}))
    assert text.startswith("# ")
    assert "Ada Brook · 2026-03-04" in text
    assert "the page about the Moon [1]" in " ".join(text.split())
    assert f"[1] {site.url}/moon" in text
    assert "[2] https://example.org/tables" in text
    assert "## Spring tides" in text
    for noise in ("cookies", "alert(1)", "About us"):
        assert noise not in text


def test_the_source_of_a_page_comes_as_it_is(site, gateway):
    site.replies["/tides"] = page(ARTICLE)
    text = text_of(gateway.call("browser_fetch", {"url": f"{site.url}/tides", "raw": True}))
    assert "<nav>" in text
    assert "Content-Type: text/html" in text


def test_a_pdf_and_plain_text_are_read_too(site, gateway):
    site.replies["/report"] = page(pdf("Quarterly figures"), "application/pdf")
    assert "Quarterly figures" in text_of(gateway.call("browser_fetch", {"url": f"{site.url}/report"}))
    site.replies["/plain"] = page("Grüße".encode("latin-1"), "text/plain; charset=iso-8859-1")
    assert "Grüße" in text_of(gateway.call("browser_fetch", {"url": f"{site.url}/plain"}))


def test_a_long_page_begins_with_its_outline(site, gateway):
    def paragraph(part: int) -> str:
        told = (
            f"Harbour {part * 40 + n} lies {n} miles to the {'north' if n % 2 else 'south'}."
            for n in range(40)
        )
        return f"<h2>Part {part}</h2><p>{' '.join(told)}</p>"

    sections = "".join(map(paragraph, range(8)))
    site.replies["/long"] = page(
        f"<html><head><title>Long</title></head><body><article><h1>Long</h1>{sections}</article></body></html>"
    )
    whole = gateway.call("browser_fetch", {"url": f"{site.url}/long"}).body.decode()
    assert "Outline:" in whole
    assert "Part 7 (line " in whole


def test_redirects_are_followed_each_hop_checked_like_the_first(site, gateway):
    site.replies["/old"] = page("", status=301, Location="/new")
    site.replies["/new"] = page(ARTICLE)
    assert f"{site.url}/new" in text_of(gateway.call("browser_fetch", {"url": f"{site.url}/old"}))
    inside = f"http://127.0.0.2:{urlsplit(site.url).port}/secret"
    for location, said in (
        (inside, "127.0.0.2 is not a public address"),
        ("/round", "more than 10 times"),
        ("file:///etc/passwd", "Only http and https"),
    ):
        site.replies["/round"] = page("", status=302, Location=location)
        site.requests.clear()
        assert said in fault_of(gateway.call("browser_fetch", {"url": f"{site.url}/round"}))
        assert {request["path"] for request in site.requests} == {"/round"}


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.2/",
        "http://[::1]/",
        "http://169.254.169.254/latest",
        "http://10.0.0.1",
        "http://2130706434/",
        "http://0x7f.2/",
        "http://[::ffff:10.0.0.1]/",
        "http://①②⑦.⓪.⓪.②/",
    ],
)
def test_t29_private_and_disguised_addresses_are_refused(gateway, url):
    assert "public address" in fault_of(gateway.call("browser_fetch", {"url": url}))


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "ftp://a.example/"]
)
def test_other_schemes_are_refused(gateway, url):
    assert gateway.call("browser_fetch", {"url": url}).status == 403


def test_what_is_too_large_or_no_text_or_empty_is_said(site, gateway):
    for body, kind, said in (
        ("x" * 400_000, "text/html", "larger than"),
        (b"\x89PNG\r\n\x1a\n\0\0", "image/png", "not text"),
        ("<html><body></body></html>", "text/html", "no readable text"),
        (b"%PDF-1.4 broken", "application/pdf", "cannot be read"),
    ):
        site.replies["/odd"] = page(body, kind)
        assert said in fault_of(gateway.call("browser_fetch", {"url": f"{site.url}/odd"}))


def test_a_search_is_a_numbered_list_without_advertisements(site, gateway):
    site.replies["/ddg"] = page(RESULTS)
    text = text_of(gateway.call("browser_search", {"query": "how do tides work?"}))
    assert text.splitlines() == [
        "1. Tides explained",
        "   https://example.org/tides",
        "   The sea rises & falls.",
        "2. The Moon",
        "   https://example.com/moon",
    ]
    [asked] = site.requests
    assert parse_qs(urlsplit(asked["path"]).query)["q"] == ["how do tides work?"]
    site.replies["/ddg"] = page("slow down", status=429)
    assert "fewer searches" in fault_of(gateway.call("browser_search", {"query": "x"}))


def test_the_weather_of_a_place_is_a_few_lines(site, gateway):
    berlin = {"name": "Berlin", "country": "Germany", "latitude": 52.5, "longitude": 13.4}
    site.replies["/places"] = page(json.dumps({"results": [berlin]}), "application/json")
    site.replies["/forecast"] = page(json.dumps(FORECAST), "application/json")
    text = text_of(gateway.call("weather_get", {"location": "Berlin", "days": 99}))
    assert text.splitlines() == [
        "Berlin, Germany",
        "Now: light rain, 12 °C (feels like 9), humidity 71 %, wind 15 km/h",
        "2026-11-17: light rain, 6 to 12 °C, 4.2 mm (80 %), wind up to 44 km/h",
        "2026-11-18: clear, -1 to 9 °C",
    ]
    asked = parse_qs(urlsplit(site.requests[-1]["path"]).query)
    assert (asked["latitude"], asked["forecast_days"]) == (["52.5"], ["7"])
    site.replies["/places"] = page('{"generationtime_ms": 1}', "application/json")
    assert "No place is called" in fault_of(gateway.call("weather_get", {"location": "Nowhereville"}))
    assert "Give a location" in fault_of(gateway.call("weather_get", {}))
    site.replies["/forecast"] = page('{"daily": {"time": ["x"]}}', "application/json")
    assert "form that is not known" in fault_of(gateway.call("weather_get", {"latitude": 1, "longitude": 2}))


def search_with(folder: Path, search: dict[str, object]):
    folder.mkdir(exist_ok=True)
    return running(folder, settings_with({"search": search}), "--insecure")


def test_searxng_is_asked_for_json(site, tmp_path):
    found = [
        {"title": "Tides", "url": "https://example.org/t", "content": "The <b>sea</b>"},
        {"url": "ftp://x"},
    ]
    site.replies["/searx/search"] = page(json.dumps({"results": found}), "application/json")
    with search_with(tmp_path, {"provider": "searxng", "url": f"{site.url}/searx"}) as gateway:
        text = text_of(gateway.call("browser_search", {"query": "tides"}))
        assert text == "1. Tides\n   https://example.org/t\n   The sea"
        assert "format=json" in site.requests[-1]["path"]
        site.replies["/searx/search"] = page("", status=403)
        assert "search.formats" in fault_of(gateway.call("browser_search", {"query": "tides"}))


def test_brave_gets_its_key_and_nobody_else_sees_it(site, tmp_path):
    token = "a-key-that-brave-gave-to-somebody"
    found = {"web": {"results": [{"title": "Tides", "url": "https://example.org/t", "description": "x"}]}}
    site.replies["/brave"] = page(json.dumps(found), "application/json")
    with search_with(tmp_path, {"provider": "brave", "url": f"{site.url}/brave", "token": token}) as gateway:
        assert text_of(gateway.call("browser_search", {"query": "tides"})).startswith("1. Tides")
        assert site.requests[-1]["headers"]["x-subscription-token"] == token
        site.replies["/brave"] = page("{}", "application/json", status=401)
        assert "does not take the key" in fault_of(gateway.call("browser_search", {"query": "tides"}))
        assert token not in gateway.stderr


def test_a_folder_of_files_can_be_searched(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "tides.md").write_text("# Tides\nThe sea rises twice a day.\n")
    (tmp_path / "notes" / "bread.html").write_text("<title>Bread</title><p>Flour and water rise.</p>")
    with search_with(tmp_path, {"provider": "local", "folder": "notes"}) as gateway:
        text = text_of(gateway.call("browser_search", {"query": 'rising sea" OR *'}))
        assert text.startswith("1. Tides\n   file://")
        assert "Nothing was found" in text_of(gateway.call("browser_search", {"query": "quantum"}))


def test_a_provider_without_what_it_needs_is_said_with_its_place(tmp_path):
    with pytest.raises(AssertionError, match="needs `url`"), search_with(tmp_path, {"provider": "searxng"}):
        pass


async def test_a_page_that_takes_too_long_to_read_ends_and_leaves_no_process():
    before = psutil.Process().children()
    fetched = Fetched(url="https://a.example/", status=200, content_type="text/html", body=b"<p>hello")
    with pytest.raises(CallTimeout, match="took too long"):
        await make_readable(fetched, raw=True, seconds=0.001)
    assert psutil.Process().children() == before


def test_the_process_that_reads_a_page_gets_no_more_memory_than_there_is_for_it():
    greedy = "from agent_gate.sources.web.extract import MEMORY, confine; confine(); bytearray(MEMORY)"
    ended = subprocess.run([sys.executable, "-c", greedy], capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert "MemoryError" in ended.stderr


def test_a_gateway_without_web_tools_imports_nothing_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agent_gate.sources.web.source", None)
    assert known_tools(Settings()) == {}
