"""Servers and services changed on the page: in the file, with comments kept, and no program started by it alone."""

import os
from pathlib import Path

import pytest
from tests import nursery
from tests.gateway import COMMAND, Api, in_front_of
from tests.surfaces.admin.admin_gate import CONFIG, PERMISSIONS, TOOLS, browser
from tests.waiting import PATIENCE, wait_until

from agent_gate.errors import InvalidArgs

MORE = """\
# what we connect to
servers:
  notes:  # Anna's notes
    url: http://127.0.0.1:9/mcp  # moved in May
    timeout: 20
    headers: {X-Key: hunter2-very-secret}
"""


@pytest.fixture
def gate(tmp_path):
    with Api() as api, in_front_of(api, tmp_path, CONFIG, TOOLS, PERMISSIONS, more=MORE) as gateway:
        gateway.api = api
        yield gateway, browser(gateway), tmp_path / "config.yaml"


def change(person, key, apply=True, kind="servers", **body):
    path = f"/api/entries/{kind}/{key}"
    shown = person.send("POST", path, body).json
    if not apply:
        return shown
    return person.send("POST", path, {**body, "apply": True, "digest": shown["digest"]}).json


def is_stored(gateway, key, secret):
    """Whether a key was taken; one that comes while a source is tried without it is not."""
    try:
        return bool(gateway.admin.request("POST", f"/servers/{key}/auth/key", {"key": secret}))
    except InvalidArgs:
        return False


def states(gateway):
    return {one["key"]: one["status"] for one in gateway.admin.get("/api/sources")}


def test_what_is_shown_is_written_and_everything_else_stays_byte_for_byte(gate):
    _gateway, person, file = gate
    before = file.read_text()
    shown = change(person, "notes", apply=False, set={"timeout": 30})
    assert file.read_text() == before
    assert "+    timeout: 30" in shown["diff"]
    assert change(person, "notes", set={"timeout": 30})["applied"]
    written = file.read_text()
    assert written == before.replace("timeout: 20", "timeout: 30")
    assert "# moved in May" in written
    assert "# Anna's notes" in written


def test_a_source_is_paused_resumed_and_removed(gate):
    gateway, person, file = gate
    before = file.read_text()
    assert change(person, "notes", set={"enabled": False})["applied"]
    assert states(gateway)["notes"] == "disabled"
    assert change(person, "notes", unset=["enabled"])["applied"]
    assert file.read_text() == before
    assert change(person, "notes", remove=True)["applied"]
    assert "notes" not in states(gateway)
    assert "# what we connect to" in file.read_text()


def test_a_server_with_an_address_is_added_at_once(gate):
    gateway, person, file = gate
    wanted = {"url": "http://127.0.0.1:9/mcp", "auth": {"type": "bearer", "token": "vault:wiki"}}
    assert person.send("PUT", "/api/secrets/wiki", {"value": "wiki-token-of-anna"}).status == 200
    assert change(person, "wiki", set=wanted, known={"wiki": "wiki-token-of-anna"})["applied"]
    assert "wiki" in states(gateway)
    assert "wiki-token-of-anna" not in file.read_text() + gateway.stderr


@pytest.mark.parametrize("known", [{}, {"bank": "guessed"}, {"bank": 7}, {"other": "token-of-the-bank"}, "x"])
def test_a_secret_goes_to_a_new_address_only_with_somebody_who_knows_it(gate, known):
    _gateway, person, file = gate
    before = file.read_text()
    assert person.send("PUT", "/api/secrets/bank", {"value": "token-of-the-bank"}).status == 200
    wanted = {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer\tvault:bank"}}
    said = change(person, "thief", set=wanted, known=known)
    assert (said["applied"], bool(said["held"]), file.read_text() == before) == (False, True, True)


def test_a_key_that_was_stored_for_a_source_goes_to_no_other_that_takes_its_name(gate):
    gateway, person, file = gate
    auth = {"type": "api-key", "header_name": "X-Key"}
    entry = {
        "url": gateway.api.url,
        "auth": auth,
        "tools": {"sell": {"request": {"method": "GET", "path": "/"}}},
    }
    assert change(person, "shop", kind="services", set=entry)["applied"]
    wait_until(lambda: is_stored(gateway, "shop", "key-of-the-shop"), "a key that the source was tried with")
    assert change(person, "shop", kind="services", remove=True)["applied"]
    before = file.read_text()
    said = change(person, "shop", kind="services", set=entry | {"url": "http://127.0.0.1:10"})
    assert (said["applied"], bool(said["held"]), file.read_text() == before) == (False, True, True)


HARMFUL = {
    "a command": {"command": "/bin/true"},
    "an environment": {"env": {"A": "b"}},
    "a variable": {"url": "http://127.0.0.1:9/?k=${HOME}"},
    "a credential to another address": {"url": "http://127.0.0.1:10/mcp"},
    "a file": {"headers": {"X-Key": "file:/etc/hostname"}},
}


def test_what_could_start_a_program_or_give_a_secret_away_waits_for_the_terminal(gate):
    _gateway, person, file = gate
    before = file.read_text()
    for what, fields in HARMFUL.items():
        said = change(person, "notes", set=fields)
        assert (said["applied"], bool(said["held"])) == (False, True), what
        assert person.send("POST", f"/api/entries/held/{said['held']}", {}).status == 400, what
        assert file.read_text() == before, what


def test_a_yes_on_the_terminal_writes_what_was_held(gate):
    gateway, person, file = gate
    said = change(person, "clock", set={"command": "/nonexistent/clock"})
    [held] = gateway.admin.get("/api/entries/held")
    assert (held["id"], held["entry"]) == (said["held"], "servers.clock")
    gateway.admin.request("POST", f"/api/entries/held/{said['held']}")
    assert "/nonexistent/clock" in file.read_text()
    wait_until(lambda: "clock" in states(gateway), "the server that was accepted")
    assert gateway.admin.get("/api/entries/held") == []


def typed(file, *words):
    env = {"PATH": f"{Path(COMMAND).parent}:{os.environ['PATH']}", "HOME": str(file.parent)}
    command = [COMMAND, "entries", *words, "--config", "config.yaml"]
    return nursery.run(command, cwd=file.parent, env=env, capture_output=True, text=True, timeout=PATIENCE)


def test_the_command_lists_what_waits_and_writes_what_is_accepted(gate):
    gateway, person, file = gate
    assert typed(file).stdout == "No change waits for a yes.\n"
    said = change(person, "clock", set={"command": "/nonexistent/clock"})
    listed = typed(file).stdout
    assert listed.startswith(f"{said['held']}  servers.clock, by operator\n")
    assert "/nonexistent/clock" in listed
    wrong = typed(file, "accept", "nosuch")
    assert (wrong.returncode != 0, "nonexistent" in file.read_text()) == (True, False)
    done = typed(file, "accept", said["held"])
    assert "servers.clock is in " in done.stdout, done.stderr
    assert "/nonexistent/clock" in file.read_text()
    assert typed(file).stdout == "No change waits for a yes.\n"
    wait_until(lambda: "clock" in states(gateway), "the server that was accepted")


def test_who_is_asked_on_the_terminal_is_not_deceived_by_what_it_shows(gate):
    _gateway, person, file = gate
    args = ["\u202e gnihton", "\u200b-rf", "clo\u0441k"]
    change(person, "clock", set={"command": "/bin/true", "args": args})
    listed = typed(file).stdout
    assert not {"\u202e", "\u200b", "\u0441"} & set(listed)
    assert all(shown in listed for shown in ("\\u202e", "\\u200b", "\\u0441"))


def test_no_secret_of_the_file_is_shown(gate):
    _gateway, person, _file = gate
    assert "hunter2-very-secret" not in person.send("GET", "/api/entries").body.decode()
    shown = change(person, "notes", apply=False, remove=True)
    assert "hunter2-very-secret" not in shown["diff"]


def test_a_change_that_does_not_load_leaves_the_file_as_it_was(gate):
    _gateway, person, file = gate
    before = file.read_text()
    shown = change(person, "notes", apply=False, set={"timeout": "never"})
    said = person.send(
        "POST",
        "/api/entries/servers/notes",
        {"set": {"timeout": "never"}, "apply": True, "digest": shown["digest"]},
    )
    assert (said.status, "timeout" in said.json["error"]["message"]) == (400, True)
    assert file.read_text() == before


CLIENT_FILE = """\
{
  // what Anna connects to
  "theme": "dark",
  "mcpServers": {
    "notes": {
      "serverUrl": "http://127.0.0.1:9/mcp", // moved in May
      "headers": {"X-Key": "hunter2-very-secret"},
      "timeout": 20
    }
  }
}
"""


@pytest.fixture
def beside(tmp_path):
    """A gateway whose servers stand in a client's file."""
    file = tmp_path / "mcp.json"
    file.write_text(CLIENT_FILE)
    more = "servers: mcp.json\n"
    with Api() as api, in_front_of(api, tmp_path, CONFIG, TOOLS, PERMISSIONS, more=more) as gateway:
        yield gateway, browser(gateway), file


def test_an_entry_of_a_clients_file_is_changed_there_and_its_remarks_stay(beside):
    gateway, person, file = beside
    [one] = [entry for entry in person.get("/api/entries") if entry["key"] == "notes"]
    assert (one["kind"], one["file"]) == ("mcpServers", file.name)
    assert change(person, "notes", kind="mcpServers", set={"timeout": 30})["applied"]
    assert file.read_text() == CLIENT_FILE.replace("20", "30")
    assert change(person, "notes", kind="mcpServers", set={"enabled": False})["applied"]
    assert states(gateway)["notes"] == "disabled"
    assert change(person, "notes", kind="mcpServers", unset=["enabled"])["applied"]
    assert file.read_text() == CLIENT_FILE.replace("20", "30")
    assert change(person, "wiki", set={"url": "http://127.0.0.1:9/wiki"})["applied"]
    assert "wiki" in states(gateway)
    assert change(person, "notes", kind="mcpServers", remove=True)["applied"]
    assert states(gateway).keys() >= {"wiki"}
    assert "notes" not in states(gateway)
    assert "// what Anna connects to" in file.read_text()


def test_a_credential_goes_nowhere_else_under_another_clients_word_for_an_address(beside):
    _gateway, person, file = beside
    for word in ("serverUrl", "httpUrl", "url", "uri"):
        said = change(person, "notes", kind="mcpServers", set={word: "http://127.0.0.1:10/mcp"})
        assert (said["applied"], bool(said["held"])) == (False, True), word
    assert file.read_text() == CLIENT_FILE


def test_what_goes_wrong_with_a_source_names_the_line_on_which_its_entry_stands_now(gate):
    gateway, _person, config = gate

    def reason():
        [one] = [one for one in gateway.admin.get("/api/sources") if one["key"] == "clock"]
        return one["reason"]

    config.write_text(config.read_text() + "  clock: {command: /nonexistent/clock}\n")
    gateway.admin.request("POST", "/api/reload", {})
    line = len(config.read_text().splitlines())
    assert wait_until(lambda: f"config.yaml:{line}:" in reason(), "the line of a program that is not there")
    config.write_text("# one more line\n" + config.read_text())
    gateway.admin.request("POST", "/api/reload", {})
    gateway.admin.request("POST", "/api/sources/clock/connect", {})
    assert wait_until(lambda: f"config.yaml:{line + 1}:" in reason(), "the line on which it stands now")


FOREIGN = {
    "mcp.json": '{"context_servers": {"notes": {"command": {"path": "/bin/notes", "args": ["--all"]}}}}',
    "opencode.jsonc": '{"mcp": {"notes": {"type": "local", "command": ["/bin/notes", "--all"]}}} // mine',
    "config.toml": '[mcp_servers.notes]\ncommand = "/bin/notes"\nargs = ["--all"]\n',
}


@pytest.mark.parametrize("name", FOREIGN)
def test_an_entry_in_another_programs_words_is_shown_and_changed_where_it_is_written(gate, name):
    gateway, person, config = gate
    file = config.with_name(name)
    file.write_text(FOREIGN[name])
    config.write_text(config.read_text().partition("# what we connect to")[0] + f"servers: {name}\n")
    [one] = [entry for entry in person.get("/api/entries") if entry["key"] == "notes"]
    assert (one["file"], one["fixed"]) == (name, True)
    assert (one["entry"]["command"], one["entry"]["args"]) == ("/bin/notes", ["--all"])
    said = person.send("POST", "/api/entries/servers/notes", {"set": {"timeout": 30}})
    assert (said.status, "another program's file" in said.json["error"]["message"]) == (400, True)
    assert change(person, "wiki", set={"url": "http://127.0.0.1:9/wiki"})["applied"]
    assert "wiki" in states(gateway)
    assert file.read_text() == FOREIGN[name]


def test_a_command_that_is_a_list_is_shown_as_a_program_and_its_arguments(gate):
    _gateway, person, config = gate
    config.with_name("mcp.json").write_text('{"mcpServers": {"notes": {"command": ["/bin/notes", "--all"]}}}')
    config.write_text(config.read_text().partition("# what we connect to")[0] + "servers: mcp.json\n")
    [one] = [entry for entry in person.get("/api/entries") if entry["key"] == "notes"]
    assert (one["entry"]["command"], one["entry"]["args"]) == ("/bin/notes", ["--all"])


def test_an_entry_of_vs_codes_file_is_changed_there(gate):
    _gateway, person, config = gate
    file = config.with_name("mcp.json")
    text = '{\n  "inputs": [],\n  "servers": {\n    "notes": {"type": "http", "url": "http://127.0.0.1:9/mcp"} // mine\n  }\n}\n'
    file.write_text(text)
    config.write_text(config.read_text().partition("# what we connect to")[0] + "servers: mcp.json\n")
    [one] = [entry for entry in person.get("/api/entries") if entry["key"] == "notes"]
    assert (one["kind"], one["fixed"]) == ("servers", False)
    assert change(person, "notes", set={"enabled": False})["applied"]
    assert '"enabled": false' in file.read_text()
    assert "// mine" in file.read_text()
    assert change(person, "notes", unset=["enabled"])["applied"]
    assert file.read_text() == text
