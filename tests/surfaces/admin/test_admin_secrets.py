"""Secrets by name over the admin API: who uses each, what is missing, and the passphrase before one changes."""

import pytest
from tests.gateway import Api, in_front_of
from tests.surfaces.admin.admin_gate import CONFIG, PERMISSIONS, TOOLS, browser

MORE = """\
servers: more/servers.yaml
"""
SERVERS = """\
servers:
  # Anna's notes
  notes:
    url: http://127.0.0.1:9/mcp
    auth: {type: bearer, token: "vault:notes-token"}
"""


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "more").mkdir()
    (folder / "more" / "servers.yaml").write_text(SERVERS)
    with Api() as api, in_front_of(api, folder, CONFIG, TOOLS, PERMISSIONS, more=MORE) as gateway:
        yield gateway, browser(gateway), folder / "more" / "servers.yaml"


def listed(person):
    return {one["name"]: one for one in person.get("/api/secrets")}


def test_a_secret_that_is_named_and_not_set_is_listed_with_who_needs_it(gate):
    _, person, _ = gate
    assert listed(person)["notes-token"] == {"name": "notes-token", "updated_at": None, "used_by": ["notes"]}


def test_a_secret_is_set_listed_without_its_value_and_removed(gate):
    _, person, _ = gate
    said = person.send("PUT", "/api/secrets/spare", {"value": "spare-value-of-anna"})
    assert said.json == {"set": "spare", "used_by": []}
    found = listed(person)["spare"]
    assert found["updated_at"] > 1e9
    assert "spare-value-of-anna" not in str(person.get("/api/secrets"))
    assert person.send("DELETE", "/api/secrets/spare").status == 200
    assert "spare" not in listed(person)


def test_an_entry_in_a_file_of_its_own_is_listed_and_changed_there(gate):
    gateway, person, file = gate
    [notes] = [one for one in person.get("/api/entries") if one["key"] == "notes"]
    assert (notes["kind"], notes["file"], notes["secrets"]) == (
        "servers",
        "more/servers.yaml",
        ["notes-token"],
    )
    path, change = "/api/entries/servers/notes", {"set": {"timeout": 7}}
    shown = person.send("POST", path, change).json
    assert shown["file"] == "more/servers.yaml"
    assert person.send("POST", path, {**change, "apply": True, "digest": shown["digest"]}).json["applied"]
    assert "timeout: 7" in file.read_text()
    assert "# Anna's notes" in file.read_text()
    added = {"set": {"url": "http://127.0.0.1:9/mcp"}}
    shown = person.send("POST", "/api/entries/servers/wiki", added).json
    applied = {**added, "apply": True, "digest": shown["digest"]}
    assert person.send("POST", "/api/entries/servers/wiki", applied).json["applied"]
    assert "wiki" in file.read_text()
    assert {"notes", "wiki"} <= {one["key"] for one in gateway.admin.get("/api/sources")}


def test_the_passphrase_is_wanted_on_the_page_and_not_on_the_terminal(tmp_path):
    more = "approvers: {passphrase: open-sesame-of-anna}\n"
    with Api() as api, in_front_of(api, tmp_path, CONFIG, TOOLS, PERMISSIONS, more=more) as gateway:
        person = browser(gateway)
        assert person.send("PUT", "/api/secrets/door", {"value": "x1y2z3"}).status == 401
        phrase = {"passphrase": "open-sesame-of-anna"}
        assert person.send("PUT", "/api/secrets/door", {"value": "x1y2z3", **phrase}).status == 200
        assert person.send("DELETE", "/api/secrets/door").status == 401
        assert person.send("DELETE", "/api/secrets/door", phrase).status == 200
        gateway.admin.request("PUT", "/api/secrets/door", {"value": "x1y2z3"})
        gateway.admin.request("DELETE", "/api/secrets/door")
