"""What operators see of results, under `results.keep`, and the calls they export."""

import csv
import io
import json
import sys
from pathlib import Path

import pytest
from tests.gateway import Api, in_front_of
from tests.surfaces.admin.admin_gate import CONFIG, TOOLS, browser
from tests.waiting import wait_until

ALLOW = 'defaults: [{pattern: "*", action: allow}]\n'
MASKED = "•••"


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    with Api() as api, in_front_of(api, folder, CONFIG, TOOLS, ALLOW, more="results: {keep: all}") as gateway:
        yield gateway, browser(gateway), api


def told(person, reply):
    return person.get(f"/api/calls/{reply.json['call']}/timeline")


def test_a_result_is_shown_beside_its_call_without_what_was_secret(kept):
    gateway, person, _api = kept
    reply = gateway.call("light_set", {"room": "hall", "pin": "4711-very-secret"})
    story = told(person, reply)
    assert (story["keep"], story["result"]["cut"]) == ("all", False)
    assert '"room' in story["result"]["text"] or "hall" in story["result"]["text"]
    assert "4711-very-secret" not in json.dumps(story)
    assert MASKED in story["result"]["text"]
    assert story["result"]["kept_until"] > story["at"] + 6 * 86_400


def test_a_long_result_is_kept_in_part(kept):
    gateway, person, api = kept
    api.replies["*"] = (200, {}, json.dumps({"text": "x" * 200_000}).encode())
    try:
        story = told(person, gateway.call("light_get", {"room": "hall"}))
    finally:
        api.replies.clear()
    assert len(story["result"]["text"]) == 64 * 1024
    assert (story["result"]["cut"], story["result"]["size"] > 200_000) == (True, True)


def test_what_is_kept_follows_the_settings_without_a_restart(tmp_path):
    with Api() as api, in_front_of(api, tmp_path, CONFIG, TOOLS, ALLOW, more="") as gateway:
        person = browser(gateway)
        story = told(person, gateway.call("light_get", {"room": "hall"}))
        assert (story["keep"], story["result"]) == ("none", None)
        with (tmp_path / "config.yaml").open("a") as file:
            file.write("\nresults: {keep: all}\n")
        assert person.send("POST", "/api/reload", {}).status == 200
        story = told(person, gateway.call("light_get", {"room": "hall"}))
        assert "/light/hall" in story["result"]["text"]


SERVER = Path(__file__).parents[2] / "sources" / "mcp" / "sdk_server.py"
FAILED = f"""\
results: {{keep: failed}}
servers:
  zoo: {{command: {sys.executable}, args: [{SERVER}, stdio]}}
"""


def test_only_results_of_calls_that_failed_are_kept_where_the_settings_say_so(tmp_path):
    with Api() as api, in_front_of(api, tmp_path, CONFIG, TOOLS, ALLOW, more=FAILED) as gateway:
        person = browser(gateway)
        wait_until(lambda: gateway.call("zoo__era", {}).status == 200, "the server")
        well = told(person, gateway.call("zoo__era", {}))
        assert (well["state"], well["keep"], well["result"]) == ("completed", "failed", None)
        failed = gateway.call("zoo__fail", {}).headers["agent-gate-call"]
        ended = person.get(f"/api/calls/{failed}/timeline")
        assert (ended["state"], ended["keep"]) == ("failed", "failed")
        assert '"no"' in ended["result"]["text"]


def test_what_is_shown_can_be_exported(kept):
    gateway, person, _api = kept
    gateway.call("light_get", {"room": "=cmd()"})
    gateway.call("light_get", {"room": "attic"})
    text = person.send("GET", "/api/calls/export?format=csv&tool=light_get&source=house").body.decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["tool"] for row in rows} == {"light_get"}
    assert json.loads(rows[0]["arguments"]) == {"room": "attic"}
    lines = person.send("GET", "/api/calls/export?format=jsonl&text=attic").body.splitlines()
    assert [json.loads(line)["arguments"] for line in lines] == [{"room": "attic"}]
    assert person.send("GET", "/api/calls/export?format=xml").status == 400


def test_calls_that_took_long_are_found(kept):
    gateway, person, api = kept
    gateway.call("light_get", {"room": "quick"})
    assert person.get("/api/calls?by=call&longer=30")["calls"] == []
    assert person.get("/api/calls?by=call&longer=0.000001&text=quick")["calls"][0]["seconds"] > 0
    assert api.requests
