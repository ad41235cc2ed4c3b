"""The terminal: the same story with the installed command, hostile text, and what an agent's token cannot do."""

import json
import os
from pathlib import Path

import pytest
from tests import nursery
from tests.approval.conftest import light, outcome, reached
from tests.gateway import COMMAND, TOKEN
from tests.waiting import PATIENCE, wait_until
from websockets.sync.client import connect

from agent_gate.cli.watching import NAMED, key_lines
from agent_gate.errors import Unauthorized

HOSTILE = "</pre>\u202egnp.exe\x1b[2J\x07 \u3164\nto = mallory " + "z" * 3000


def run(gate, *words, typed=None, columns="100"):
    command = [COMMAND, *words]
    env = {"PATH": os.environ["PATH"], "COLUMNS": columns, "LC_ALL": "C.UTF-8"}
    done = nursery.run(
        command,
        cwd=gate.folder,
        env=env,
        input=typed,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def newest(gate):
    """The id of the newest open question, as the list shows it."""
    return gate.admin.get("/api/approvals")[-1]["id"][-8:]


def on_a_terminal(gate, *words, typed):
    """What the command says to somebody who types, and its exit code."""
    ours, theirs = os.openpty()
    os.write(ours, typed.encode())
    done = nursery.run(
        [COMMAND, *words],
        cwd=gate.folder,
        env={"PATH": os.environ["PATH"], "COLUMNS": "100", "LC_ALL": "C.UTF-8"},
        stdin=theirs,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    return done.returncode, done.stdout, done.stderr


def test_the_whole_story_in_the_terminal(start, api):
    gate = start()
    first = light(gate).json["call"]
    code, shown, _ = run(gate, "approvals", "list")
    assert code == 0
    assert "ha_call_service(light.turn_on, light.bedroom)" in shown
    code, _, complaint = run(gate, "approvals", "approve", newest(gate), "--for", "session")
    assert (code, "belongs to no session" in complaint) == (4, True)
    assert run(gate, "approvals", "approve", newest(gate), "--for", "hour")[0] == 0
    assert outcome(gate, first).status == 200
    assert "Approved for one hour by operator on terminal" in run(gate, "approvals", "show", first)[1]
    assert light(gate, wait=5).status == 200
    [grant] = json.loads(run(gate, "grants", "list", "--json")[1])
    assert run(gate, "grants", "revoke", grant["id"])[0] == 0
    third = light(gate)
    assert third.status == 202
    gate.kill()
    gate.start()
    assert run(gate, "approvals", "approve", newest(gate))[0] == 0
    assert outcome(gate, third.json["call"]).status == 200
    code, _, complaint = run(
        gate, "approvals", "deny", json.loads(run(gate, "approvals", "list", "--all", "--json")[1])[0]["id"]
    )
    assert code == 4
    assert "Too late" in complaint
    assert len(reached(api)) == 3


@pytest.mark.parametrize("words", [(), ("--last",)])
def test_a_yes_that_names_no_question_is_shown_what_it_is_for(start, api, words):
    gate = start()
    call = light(gate).json["call"]
    code, _, complaint = run(gate, "approvals", "approve", *words)
    assert (code, "what you approve is what you saw" in complaint) == (4, True)
    code, _, shown = on_a_terminal(gate, "approvals", "approve", *words, typed="n\n")
    assert (code, "entity_id = " in shown, "Nothing was answered" in shown) == (1, True, True)
    assert gate.story(call) == ["pending"]
    assert reached(api) == []
    code, said, _ = on_a_terminal(gate, "approvals", "approve", *words, typed="y\n")
    assert (code, said) == (0, "approved: ha_call_service(light.turn_on, light.bedroom). It ran.\n")
    assert outcome(gate, call).status == 200


def test_an_id_that_the_next_question_might_share_answers_nothing(start, api):
    """The beginning of an id is the time at which it was asked."""
    gate = start()
    light(gate)
    [approval] = gate.admin.get("/api/approvals")
    for part in (approval["id"][:8], approval["id"][-2:]):
        assert run(gate, "approvals", "approve", part)[0] == 4
    assert reached(api) == []
    assert run(gate, "approvals", "approve", approval["id"][-8:])[0] == 0


def test_a_grant_of_somebody_whom_the_rule_no_longer_asks_does_not_count(start, api):
    gate = start()
    light(gate)
    assert run(gate, "approvals", "approve", newest(gate), "--for", "always")[0] == 0
    wait_until(lambda: light(gate).status == 200)
    rules = gate.folder / "permissions.yaml"
    rules.write_text('rules: [{pattern: "ha_*", action: ask, approvers: [ann]}]\n')
    gate.admin.request("POST", "/api/reload", {})
    assert light(gate).status == 202
    rules.write_text('rules: [{pattern: "ha_*", action: ask, approvers: [ann, operator]}]\n')
    gate.admin.request("POST", "/api/reload", {})
    assert light(gate).status == 200


def test_a_grant_of_somebody_who_was_taken_out_of_the_configuration_does_not_count(start, api):
    gate = start()
    config = gate.folder / "config.yaml"
    without = config.read_text()

    def reload(text):
        config.write_text(text)
        gate.admin.request("POST", "/api/reload", {})

    reload(without.replace("ann: {", f"eve: {{uid: {os.getuid()}}}\n  ann: {{"))
    light(gate)
    gate.answer(lifetime="always")
    wait_until(lambda: light(gate).status == 200)
    [grant] = gate.admin.get("/api/grants")
    assert grant["created_by"] == "eve"
    with_eve = config.read_text()
    reload(without)
    assert light(gate).status == 202
    assert gate.admin.get("/api/grants") == []
    reload(with_eve)
    assert light(gate).status == 200


def test_a_question_is_shown_whole_and_harmless(start):
    gate = start()
    gate.call(
        "mail_send",
        {"to": "ann@example", "text": HOSTILE, "code": "secret-code-77"},
        wait=0,
    )
    [approval] = gate.admin.get("/api/approvals")
    code, shown, _ = run(gate, "approvals", "show", approval["id"])
    assert code == 0
    assert '"</pre>\\u202egnp.exe\\u001b[2J\\u0007 \\u3164\\nto = mallory zzz' in shown
    assert "characters, sha256 " in shown
    assert 'code = "•••"' in shown
    assert "because of ask * (permissions.yaml:1" in shown
    assert "asked by pi over rest" in shown
    assert "time left: " in shown
    assert "--for always" in shown
    assert not set(shown) & {"\u202e", "\x1b", "\x07", "\u3164"}
    whole = json.loads(run(gate, "approvals", "show", approval["id"], "--json")[1])
    assert whole["arguments"]["text"] == HOSTILE
    assert "secret-code-77" not in str(whole)


def test_a_passphrase_is_needed_on_the_socket(start, api):
    gate = start("approvers: {passphrase: correct-horse-battery}")
    light(gate)
    for body in ({}, {"passphrase": "wrong"}, {"passphrase": ["correct-horse-battery"]}):
        with pytest.raises(Unauthorized):
            gate.answer(**body)
    assert reached(api) == []
    gate.answer(passphrase="correct-horse-battery")


def test_no_surface_of_the_agents_takes_an_answer(start, api):
    """Every way an agent comes in knows no word for answering."""
    gate = start()
    call = light(gate).json["call"]
    [approval] = gate.admin.get("/api/approvals")
    said = {"id": approval["id"], "approval": approval["id"], "verdict": "approve", "call": call}
    with connect(gate.url.replace("http", "ws") + "/ws") as socket:
        socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "auth", "params": {"token": TOKEN}}))
        socket.recv(PATIENCE)
        for method in (
            "answer",
            "approve",
            "approvals",
            "approvals/answer",
            "resolve",
            "grant",
            "elicitation/create",
        ):
            socket.send(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": said}))
            reply = json.loads(socket.recv(PATIENCE))
            assert (reply["id"], reply["error"]["code"]) == (method, -32601)
    tools = {tool["name"] for tool in gate.request("GET", "/api/tools").json["tools"]}
    assert tools == {"ha_call_service", "mail_send"}
    for method in ("POST", "PUT", "PATCH", "GET"):
        assert gate.request(method, f"/api/calls/{call}/answer", said).status in (404, 405)
    assert gate.request("POST", f"/api/calls/{call}", said).status in (404, 405)
    assert gate.story(call) == ["pending"]
    assert reached(api) == []


def test_the_admin_socket_belongs_to_its_user(start):
    gate = start()
    socket = Path(gate.announced["socket"])
    assert socket.stat().st_mode & 0o777 == 0o600
    assert socket.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("columns", [30, 80, 110, 200])
def test_the_names_of_the_keys_are_not_broken_at_the_edge_of_the_screen(columns):
    shown = key_lines(columns).splitlines()
    assert " · ".join(shown).split(" · ") == list(NAMED)
    assert all(len(line) <= columns for line in shown)
