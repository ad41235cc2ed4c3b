"""The operator's commands as a person types them, against a running gateway."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests import nursery
from tests.app.small import CONFIG
from tests.gateway import COMMAND, TOKEN, Api, in_front_of, running
from tests.waiting import PATIENCE, wait_until

from agent_gate.cli.commands.auth import begun
from agent_gate.cli.commands.backup import copy_keys
from agent_gate.cli.commands.init import ASSISTANT, NOTHING, Wanted, ask, what_to_mend, write
from agent_gate.cli.commands.status import next_step
from agent_gate.config.load import load
from agent_gate.config.services.section import SERVICES
from agent_gate.net.tls.certificates import ensure_certificate

TOOLS = """
tools:
  read: {description: Read a number, args: {n: {type: integer}}, request: {method: GET, path: /read}}
  write: {args: {what: {required: true}, pin: {secret: true}}, signature: "{what}", request: {method: POST, path: /write}, ask: "Write {what}?"}
"""
PERMISSIONS = """
rules:
  - {pattern: "read", action: allow}
  - {pattern: "nothing_*", action: deny}
policy_tests:
  - {tool: read, expect: allow}
"""


@pytest.fixture(scope="module")
def api():
    with Api() as started:
        yield started


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, api):
    folder = tmp_path_factory.mktemp("commands")
    with in_front_of(api, folder, CONFIG, TOOLS, PERMISSIONS) as started:
        yield started


def agent_gate(gateway, *arguments, code=0):
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(gateway.folder),
        "AGENT_GATE_URL": gateway.url,
        "AGENT_TOKEN": TOKEN,
    }
    done = nursery.run(
        [COMMAND, *arguments], cwd=gateway.folder, env=env, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stdout + done.stderr


def test_a_question_is_seen_judged_approved_and_found_again(gateway):
    call = gateway.call(
        "write", {"what": "thing", "pin": "1234-secret", "more": "\u202egnp.exe"}, wait=0
    ).json["call"]
    assert "write(thing)" in agent_gate(gateway, "approvals")
    [listed] = json.loads(agent_gate(gateway, "approvals", "list", "--json"))
    assert {"id", "state", "agent", "tool", "signature", "arguments", "rule", "where", "expires_at"} <= set(
        listed
    )
    shown = agent_gate(gateway, "approvals", "show", listed["id"][-8:])
    assert "Write thing?" in shown
    assert "\\u202e" in shown
    assert "1234-secret" not in shown
    assert "approved: write(thing)" in agent_gate(
        gateway, "approvals", "approve", listed["id"][-8:], "--for", "hour"
    )
    assert gateway.request("GET", f"/api/calls/{call}?wait=10").status == 200
    story = agent_gate(gateway, "audit", "show", call[-8:])
    assert [line.split()[2] for line in story.splitlines() if not line.startswith(" ")] == [
        "pending",
        "approved",
        "dispatching",
        "completed",
    ]
    assert agent_gate(gateway, "audit", "show", listed["id"][-8:]) == story
    assert "Approved for one hour" in agent_gate(gateway, "approvals", "show", listed["id"][-8:])
    assert "Approved for one hour" in agent_gate(gateway, "approvals", "show", call[-8:])
    assert "Too late" in agent_gate(gateway, "approvals", "deny", call[-8:], code=4)
    assert "write(thing)" in agent_gate(gateway, "grants")
    [grant] = json.loads(agent_gate(gateway, "grants", "list", "--json"))
    assert "Revoked" in agent_gate(gateway, "grants", "revoke", grant["id"][-8:])


def test_an_approval_ends_as_its_call_did(gateway, api, monkeypatch):
    monkeypatch.setitem(api.replies, "*", (500, {}, b'{"message": "it is broken"}'))
    gateway.call("write", {"what": "broken"}, wait=0)
    [listed] = json.loads(agent_gate(gateway, "approvals", "list", "--json"))
    said = agent_gate(gateway, "approvals", "approve", listed["id"][-8:], code=5)
    assert "approved: write(broken). It failed: " in said


def test_nothing_open_and_an_unknown_id_are_said_plainly(gateway):
    assert agent_gate(gateway, "approvals").strip() == "Nothing waits for you."
    assert "There is no approval with the id 00000000" in agent_gate(
        gateway, "approvals", "show", "00000000", code=4
    )
    assert "Nothing waits for you" in agent_gate(gateway, "approvals", "approve", code=4)


def test_the_record_is_listed_verified_and_exported(gateway):
    agent_gate(gateway, "request", "read", "n=3")
    assert "home:read" in agent_gate(gateway, "audit")
    assert "The record is whole" in agent_gate(gateway, "audit", "verify")
    lines = agent_gate(gateway, "audit", "export").splitlines()
    assert all("hash" in json.loads(line) for line in lines)
    assert agent_gate(gateway, "audit", "export", "--format", "csv").startswith("call,")


def test_a_row_that_was_changed_is_named_and_the_command_fails(gateway):
    agent_gate(gateway, "request", "read", "n=4")
    with closing(sqlite3.connect(gateway.folder / "data" / "agent-gate.db", timeout=10)) as store:
        chain, seq, caller = store.execute("SELECT chain, seq, caller FROM record LIMIT 1").fetchone()

        def call_it(name):
            with store:
                store.execute("UPDATE record SET caller = ? WHERE chain = ? AND seq = ?", (name, chain, seq))

        call_it("somebody-else")
        try:
            assert f"{chain} {seq}: " in agent_gate(gateway, "audit", "verify", code=1)
        finally:
            call_it(caller)
    assert "The record is whole" in agent_gate(gateway, "audit", "verify")


def test_the_oldest_calls_are_cut_away_when_an_operator_says_so(gateway):
    for number in range(4):
        agent_gate(gateway, "request", "read", f"n={number}")
    assert "goes for good" in agent_gate(gateway, "audit", "cut", "--older-than", "0m", code=130)
    assert agent_gate(gateway, "audit", "cut", "--older-than", "52w", "--yes") == "Nothing is that old.\n"
    gone = json.loads(agent_gate(gateway, "audit", "cut", "--older-than", "0m", "--yes", "--json"))["rows"]
    assert gone >= 4
    said = agent_gate(gateway, "audit", "verify")
    assert "The record is whole" in said
    assert f"It begins after row {gone} of t: what was before was cut away by " in said
    assert "audit:cut" in agent_gate(gateway, "audit")
    assert "no span of time" in agent_gate(gateway, "audit", "cut", "--older-than", "long", "--yes", code=4)


def test_explain_shows_every_rule_and_where_the_deciding_one_stands(gateway):
    said = agent_gate(gateway, "explain", "read", "n=3")
    assert "allow" in said
    assert "permissions.yaml:3" in said
    offline = json.loads(
        agent_gate(gateway, "explain", "--offline", "--config", "config.yaml", "--json", "write", "what=x")
    )
    assert (offline["effect"], offline["signature"]) == ("ask", "write(x)")
    assert "Missing required argument: what" in agent_gate(gateway, "explain", "write", code=4)


def test_explain_answers_for_an_agent_that_there_is(gateway, tmp_path):
    assert "called by default: " in agent_gate(gateway, "explain", "read")
    assert "no agent named nobody. There are: default" in agent_gate(
        gateway, "explain", "read", "--as", "nobody", code=4
    )
    agents = (
        "agents: {a: {token: token-of-the-agent-a}, b: {token: token-of-the-agent-b, namespaces: [other]}}\n"
    )
    services = (
        'services: {home: {url: "http://127.0.0.1:9", tools: {read: {request: {method: GET, path: /}}}}}\n'
    )
    rules = "rules: [{pattern: read, action: allow, callers: [a]}]\n"
    (tmp_path / "config.yaml").write_text(agents + services)
    (tmp_path / "permissions.yaml").write_text(rules)
    asked = ("explain", "read", "--offline", "--config", str(tmp_path / "config.yaml"))
    assert "say which one would call (--as): a, b" in agent_gate(gateway, *asked, code=4)
    assert "called by a: allow" in agent_gate(gateway, *asked, "--as", "a")
    assert "b does not see home" in agent_gate(gateway, *asked, "--as", "b", code=4)
    assert "called by made: ask" in agent_gate(gateway, *asked, "--as", "made")


def test_check_names_a_rule_that_matches_nothing(gateway):
    said = agent_gate(gateway, "check", code=8)
    assert "permissions.yaml:4" in said
    assert "matches no tool" in said


def test_check_names_the_line_of_a_pattern_that_no_call_can_match(gateway):
    (gateway.folder / "unfit.yaml").write_text(
        'rules:\n  - {pattern: "read*", action: allow}\n  - {pattern: "write(a, b)", action: deny}\n'
    )
    said = agent_gate(gateway, "check", "--permissions", "unfit.yaml", code=8)
    assert "unfit.yaml:3" in said
    assert "can never match" in said
    assert "unfit.yaml:2" not in said


def test_check_runs_the_files_own_policy_tests(gateway):
    rules = gateway.folder / "other.yaml"
    rules.write_text(
        'rules: [{pattern: "read", action: deny}]\npolicy_tests: [{tool: read, expect: allow}]\n'
    )
    assert "read is deny, expected allow" in agent_gate(
        gateway, "check", "--permissions", "other.yaml", code=8
    )


DECLARED = """
agents: {me: {token: 0123456789abcdef}, ci: {token: 0123456789abcdefg, namespaces: [other]}}
services:
  home:
    url: http://127.0.0.1:9
    tools:
      dim: {args: {room: {}, level: {type: integer}, mode: {enum: [soft, hard]}, all: {type: boolean}}, signature: "{room}", additional_args: false, request: {method: POST, path: /dim}}
      look: {request: {method: GET, path: /look}}
      send: {args: {note: {text: true}}, request: {method: POST, path: /send}}
"""


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("{pattern: 'dim(*)', action: deny, when: {al: true}}", "dim has no argument al; did you mean all?"),
        (
            "{pattern: 'dim(*)', action: deny, when: {level: '100'}}",
            'level of dim is of type integer, and never "100"',
        ),
        (
            "{pattern: 'dim(*)', action: ask, when: {level: {glob: '1*'}}}",
            'level of dim is of type integer, and never {"glob":"1*"}',
        ),
        (
            "{pattern: 'dim(*)', action: allow, when: {mode: [sotf, hrd]}}",
            'mode of dim is of type string, one of soft, hard, and never ["sotf","hrd"]',
        ),
        (
            "{namespace: home, action: allow, when: {nte: x}}",
            "dim has no argument nte; it has room, level, mode, all",
        ),
        (
            "{pattern: 'send', action: allow, when: {nte: x}}",
            "an allow covers that only where `extra` names it",
        ),
        ("{pattern: 'look(*)', action: allow}", "Every call of look has the signature look"),
        ("{pattern: 'dim', action: deny}", "Calls of dim have the signature dim({room})"),
        ("{pattern: 'dim(*)', action: deny, when: {level: {min: 3}, mode: [soft, 5], all: true}}", ""),
        ("{pattern: 'dim(*)', action: allow, when: {level: null, mode: {in: [soft]}}}", ""),
        ("{pattern: 'send', action: deny, when: {urgent: true}}", ""),
        ("{pattern: 'send', action: allow, when: {urgent: true}, extra: [urgent]}", ""),
        ("{pattern: '*', action: deny, when: {path: {glob: '/etc/*'}}}", ""),
    ],
)
def test_check_finds_conditions_that_no_call_can_meet_and_says_how_calls_look(tmp_path, rule, said):
    faults, _ = checked(tmp_path, f"rules:\n  - {rule}\n", DECLARED)
    assert len(faults) == (1 if said else 0)
    assert all(fault.startswith("permissions.yaml:2:5 ") and said in fault for fault in faults)


def test_check_warns_of_an_allow_for_a_kind_of_tool_that_no_file_speaks_of(tmp_path):
    rules = (
        "rules:\n"
        "  - {namespace: home, read_only: true, action: allow}\n"
        "  - {namespace: home, destructive: true, action: deny}\n"
    )
    faults, warnings = checked(tmp_path, rules, DECLARED)
    assert faults == []
    [warning] = warnings
    assert warning.startswith("permissions.yaml:2:5: ")
    assert "allows nothing: dim is not read-only" in warning


def test_a_policy_test_is_of_a_call_that_its_agent_can_make(tmp_path):
    tests = (
        "policy_tests:\n"
        "  - {tool: look, caller: me, expect: ask}\n"
        "  - {tool: look, caller: ci, expect: ask}\n"
        "  - {tool: look, caller: made, expect: ask}\n"
    )
    [fault], [warning] = checked(tmp_path, tests, DECLARED)
    assert fault.startswith("permissions.yaml:3:5 policy test: ci does not see home")
    assert warning.startswith(
        "permissions.yaml:4:5: policy test: made calls, and the configuration has no such"
    )


def test_a_policy_test_that_names_no_agent_is_of_the_one_named_default(tmp_path):
    rules = "rules: [{pattern: look, action: allow, callers: [default]}]\n"
    faults, _ = checked(tmp_path, rules + "policy_tests: [{tool: look, expect: allow}]\n", DECLARED)
    assert faults == []


SERVED = """
agents: {me: {token: 0123456789abcdef}}
servers: {git: {command: /bin/true, traits: {read_only: true}}, old: {command: /bin/true, enabled: false}}
people: {anna: {login: anna}}
"""


def checked(folder, rules, config=SERVED):
    (folder / "config.yaml").write_text(config)
    (folder / "permissions.yaml").write_text(rules)
    done = nursery.run([COMMAND, "check", "--json"], cwd=folder, capture_output=True, text=True)
    found = json.loads(done.stdout)
    return [f"{fault['where']} {fault['message']}" for fault in found["faults"]], found["warnings"]


def test_check_finds_mistyped_servers_in_rules_though_it_does_not_know_their_tools(tmp_path):
    faults, _ = checked(
        tmp_path,
        "rules:\n"
        "  - {pattern: 'git__log*', action: allow}\n"
        "  - {pattern: 'gti__push*', action: deny}\n"
        "  - {namespace: gti, action: deny}\n"
        "  - {namespace: old, action: ask}\n",
    )
    assert [fault.split(" ")[0] for fault in faults] == ["permissions.yaml:3:5", "permissions.yaml:4:5"]


def test_check_finds_questions_that_nobody_could_answer_and_agents_that_are_not_there(tmp_path):
    faults, warnings = checked(
        tmp_path,
        "rules:\n"
        "  - {pattern: 'git__push*', action: ask, approvers: [ana]}\n"
        "  - {pattern: 'git__log*', action: ask, approvers: [ana, anna]}\n"
        "  - {pattern: 'git__tag*', action: allow, callers: [you]}\n",
    )
    [fault] = faults
    assert fault.startswith("permissions.yaml:2:5")
    assert "there is no ana under `people:`" in fault
    [warning] = warnings
    assert warning.startswith("permissions.yaml:4:5")
    assert "it has me" in warning


def test_check_warns_of_a_bare_name_that_calls_with_arguments_go_past(tmp_path):
    faults, warnings = checked(
        tmp_path,
        "rules:\n"
        "  - {pattern: git__push, action: deny}\n"
        "  - {pattern: 'git:tag', action: deny}\n"
        "  - {pattern: git__status(), action: allow}\n"
        "  - {pattern: git__log*, action: allow}\n",
    )
    assert faults == []
    assert [warning.split(": ")[0] for warning in warnings] == [
        "permissions.yaml:2:5",
        "permissions.yaml:3:5",
    ]
    assert "write git__push(*) for every call" in warnings[0]


def test_policy_tests_may_name_the_tools_of_servers(tmp_path):
    faults, _ = checked(
        tmp_path,
        "rules:\n"
        "  - {pattern: 'git__push(branch=main*)', action: deny}\n"
        "  - {namespace: git, read_only: true, action: allow}\n"
        "policy_tests:\n"
        "  - {tool: git__push, args: {branch: main}, caller: me, expect: deny}\n"
        "  - {tool: 'git:push', args: {branch: topic}, caller: me, expect: allow}\n"
        "  - {tool: git__log, caller: me, expect: deny}\n"
        "  - {tool: gti__log, caller: me, expect: deny}\n",
    )
    assert [fault.split(" ")[0] for fault in faults] == ["permissions.yaml:7:5", "permissions.yaml:8:5"]
    assert "git__log is allow, expected deny" in faults[0]


def test_the_doctor_tells_each_rule_that_matches_nothing_once(gateway):
    found = json.loads(agent_gate(gateway, "doctor", "--json", code=1).partition("\nError")[0])
    assert [one["fix"] for one in found if "matches no tool" in one["what"]] == ["Edit permissions.yaml:4:5"]


def test_check_finds_the_plugin_with_which_the_gateway_would_not_start(gateway):
    for spec, why in (
        ("missing_module_of_the_test:Handler", "cannot be imported"),
        ("json:Handler", "json has no class Handler"),
        ("json:JSONDecoder", "is not a subclass of agent_gate.ServiceHandler"),
    ):
        (gateway.folder / "plugin.yaml").write_text(
            f'services: {{mine: {{handler: python, handler_class: "{spec}"}}}}'
        )
        said = agent_gate(gateway, "check", "--config", "plugin.yaml", code=8)
        assert "plugin.yaml:1:12: service mine: " in said
        assert why in said


def test_check_warns_of_a_server_whose_program_is_not_here(gateway):
    (gateway.folder / "server.yaml").write_text(
        "permissions: none.yaml\n"
        "servers:\n"
        "  gone: {command: no-such-program-of-the-test}\n"
        "  off: {command: no-such-program-of-the-test, enabled: false}\n"
    )
    (gateway.folder / "none.yaml").write_text("rules: []")
    said = agent_gate(gateway, "check", "--config", "server.yaml")
    assert "server.yaml:3:3: servers.gone.command: no-such-program-of-the-test is not found on PATH" in said
    assert "servers.off" not in said


def test_check_tells_machines_what_is_doubtful_and_wrong_and_starts_nothing(gateway, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        f"agent: {{token: {TOKEN}}}\n"
        "services: {home: {url: 'http://ha.invalid', auth: {type: bearer, token: abc}}}\n"
        f"servers: {{git: {{command: touch, args: ['{tmp_path}/started'], env: {{LD_PRELOAD: /tmp/a.so}}}}}}\n"
    )
    told = json.loads(agent_gate(gateway, "check", "--config", str(config), "--json"))
    assert told["ok"]
    said = "\n".join(told["warnings"])
    assert "config.yaml:2:24: services.home.url: the credential goes to ha.invalid without TLS" in said
    assert "servers.git.env.LD_PRELOAD: makes the program load other code" in said
    assert not (tmp_path / "started").exists()
    (tmp_path / "permissions.yaml").write_text("rules: [{namespace: gti, action: deny}]")
    wrong = agent_gate(gateway, "check", "--config", str(config), "--json", code=8)
    assert not json.loads(wrong)["ok"]


def test_a_source_is_closed_from_the_terminal_and_taken_back(gateway):
    said = agent_gate(gateway, "sources", "disconnect", "home", "--config", "config.yaml")
    assert "`agent-gate sources reconnect home --config config.yaml`" in said
    assert "disconnected by operator" in agent_gate(gateway, "sources")
    agent_gate(gateway, "sources", "reconnect", "home")
    wait_until(lambda: "ready" in agent_gate(gateway, "sources"))
    assert "There is no source named away" in agent_gate(gateway, "sources", "disconnect", "away", code=4)


def test_status_and_sources_say_what_is_there_and_what_to_do(gateway):
    assert "Next: " in agent_gate(gateway, "status")
    assert "home" in agent_gate(gateway, "sources")
    assert json.loads(agent_gate(gateway, "sources", "--json"))["sources"][0]["key"] == "home"
    assert agent_gate(gateway).startswith("agent-gate ")


def test_tokens_recommends_a_mode(gateway):
    said = agent_gate(gateway, "tokens")
    assert "Recommended: mode: full" in said
    for told in json.loads(agent_gate(gateway, "tokens", "--json")):
        assert f"{told['agent']}: {told['tools']} tools" in said
        assert set(told["upfront"]) == {"full", "proxy", "gateway"}
        assert "home" in {server["namespace"] for server in told["servers"]}


def test_doctor_finds_and_fixes_a_file_that_others_can_read(gateway):
    (gateway.folder / ".env").write_text("X=1\n")
    (gateway.folder / ".env").chmod(0o644)
    found = json.loads(agent_gate(gateway, "doctor", "--json", code=1).partition("\nError")[0])
    assert any("can be read by others" in finding["what"] and finding["fixable"] for finding in found)
    agent_gate(gateway, "doctor", "--fix", "--json", code=1)
    assert (gateway.folder / ".env").stat().st_mode & 0o077 == 0


def test_options_may_stand_after_the_verb(gateway, tmp_path):
    elsewhere = ["--config", str(gateway.folder / "config.yaml")]
    done = nursery.run(
        [COMMAND, "audit", "verify", *elsewhere, "--json"], cwd=tmp_path, capture_output=True, text=True
    )
    assert json.loads(done.stdout)["ok"] is True
    made = json.loads(agent_gate(gateway, "agents", "make", "after", "--json"))
    assert made["token"]
    assert agent_gate(gateway, "agents", "revoke", "after", "--admin-socket", "data/admin.sock")
    assert "nowhere.yaml" in agent_gate(
        gateway, "sources", "reconnect", "home", "--config", "nowhere.yaml", code=8
    )
    both = ["--admin-socket", "data/admin.sock", "--config", "config.yaml"]
    assert agent_gate(gateway, "approvals", "list", *both) == "Nothing waits for you.\n"


def test_a_mistyped_name_is_answered_with_the_nearest_one(gateway):
    assert "Did you mean 'approvals'?" in agent_gate(gateway, "aprovals", code=2)
    assert "Did you mean" not in agent_gate(gateway, "xyzzy", code=2)
    assert "Did you mean write?" in agent_gate(gateway, "explain", "wrte", code=4)
    assert "Did you mean write?" in agent_gate(gateway, "explain", "wrte", "--offline", code=4)
    said = agent_gate(gateway, "sources", "reconnect", "hme", code=4)
    assert "There is no source named hme. See `agent-gate sources`" in said


def test_an_agent_made_here_can_call_until_it_is_revoked(gateway):
    token = agent_gate(gateway, "agents", "make", "guest").strip()
    narrow = json.loads(agent_gate(gateway, "agents", "make", "narrow", "--namespace", "git", "--json"))[
        "token"
    ]
    assert (gateway.call("read", token=narrow).status, narrow in agent_gate(gateway, "agents")) == (
        404,
        False,
    )
    assert gateway.call("read", token=token).status == 200
    assert "guest" in agent_gate(gateway, "agents")
    agent_gate(gateway, "agents", "revoke", "guest")
    assert gateway.call("read", token=token).status == 401


def test_a_gateway_that_is_up_says_where_it_is(gateway):
    assert gateway.announced.keys() == {"url", "admin", "socket", "pid", "fingerprint"}


def test_a_token_of_a_program_operates_until_it_is_revoked(gateway):
    token = agent_gate(gateway, "operators", "make", "backup").strip()
    assert "backup" in agent_gate(gateway, "operators")
    assert token not in agent_gate(gateway, "operators", "list", "--json")
    agent_gate(gateway, "operators", "revoke", "backup")
    assert "no operator tokens" in agent_gate(gateway, "operators")


def test_a_fresh_link_the_public_key_and_the_vaults_key_are_told(gateway):
    links = [agent_gate(gateway, "login").strip() for _ in range(2)]
    assert all("/login#" in link for link in links)
    assert links[0] != links[1]
    known = gateway.admin.get("/v1/identity")["public_key_ed25519"]
    assert agent_gate(gateway, "identity").strip() == known
    assert "That key is wrapped by" in agent_gate(gateway, "vault", "status")


@contextmanager
def standin_gateway(folder, *answers):
    """An admin socket that sends the next answer when it is told that the last one was seen."""
    seen, waited = threading.Event(), []

    def serve():
        connection, _ = server.accept()
        connection.recv(65_536)
        for answer in answers:
            connection.sendall(answer)
            waited.append(seen.wait(PATIENCE))
            seen.clear()
        connection.close()

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "admin.sock"))
        server.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        yield seen, waited
        thread.join()


def test_an_export_is_printed_as_it_comes_and_says_when_it_was_cut_off(tmp_path):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    command = [COMMAND, "audit", "export", "--admin-socket", str(tmp_path / "admin.sock")]
    with standin_gateway(tmp_path, head + b"6\r\nfirst\n\r\n", b"5\r\nlast") as (seen, waited):
        process = nursery.ForkedCommand(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "first\n"
        seen.set()
        assert wait_until(lambda: waited) == [True]
        seen.set()
        _, said = process.communicate(timeout=PATIENCE)
    assert "stopped answering" in said
    assert process.returncode == 3


CHANGING = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    said = {"name": "look", "description": open("said.txt").read(), "inputSchema": {"type": "object"}}
    answers = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
        "tools/list": {"tools": [said]},
        "ping": {},
    }
    if asked.get("id") is not None:
        found = answers.get(asked["method"])
        rest = {"result": found} if found is not None else {"error": {"code": -32601, "message": "unknown"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **rest}), flush=True)
"""


def test_a_changed_definition_is_shown_as_a_diff_until_it_is_accepted(tmp_path):
    server = {
        "command": sys.executable,
        "args": [str(tmp_path / "server.py")],
        "cwd": str(tmp_path),
        "pin": "hold",
    }
    config = (
        CONFIG.format(token=TOKEN, url="http://127.0.0.1:9") + f"servers: {{lab: {json.dumps(server)}}}\n"
    )
    files = {"config.yaml": config, "tools.yaml": TOOLS, "permissions.yaml": PERMISSIONS}
    with running(tmp_path, files | {"server.py": CHANGING, "said.txt": "Looks"}, "--insecure") as gateway:

        def said():
            return gateway.request("GET", "/api/tools/lab__look").json.get("description")

        wait_until(lambda: said() == "Looks")
        (tmp_path / "said.txt").write_text("Looks and sends")
        agent_gate(gateway, "sources", "disconnect", "lab")
        agent_gate(gateway, "sources", "reconnect", "lab")
        shown = wait_until(
            lambda: (text := agent_gate(gateway, "sources")) and "Looks and sends" in text and text
        )
        assert ('-  "description": "Looks"' in shown, '+  "description": "Looks and sends"' in shown) == (
            True,
            True,
        )
        assert said() == "Looks"
        agent_gate(gateway, "sources", "accept", "lab", "look")
        wait_until(lambda: said() == "Looks and sends")
        assert "Looks and sends" not in agent_gate(gateway, "sources")


def test_who_says_no_says_why_to_the_agent(gateway):
    call = gateway.call("write", {"what": "late"}, wait=0).json["call"]
    [asked] = json.loads(agent_gate(gateway, "approvals", "list", "--json"))
    agent_gate(gateway, "approvals", "deny", asked["id"][-8:], "--reason", "not at night")
    ended = gateway.request("GET", f"/api/calls/{call}?wait=10")
    assert "Reason: not at night" in ended.json["error"]["message"]


def test_a_gateway_keeps_its_data_and_page_where_the_command_line_says(tmp_path):
    config = tmp_path / "config"
    config.mkdir()
    text = f"gateway: {{port: 0}}\nadmin: {{host: nowhere.invalid}}\nagent: {{token: {TOKEN}}}\n"
    elsewhere = ["--data", str(tmp_path / "data"), "--admin-host", "127.0.0.1", "--admin-port", "0"]
    with running(config, {"config.yaml": text}, *elsewhere, "--insecure") as gateway:
        assert (tmp_path / "data" / "agent-gate.db").is_file()
        assert not (config / "data").exists()
        agent_gate(gateway, "backup", str(tmp_path / "copy"), "--data", str(tmp_path / "data"))
        assert (tmp_path / "copy" / "agent-gate.db").is_file()


def test_a_backup_of_a_running_gateway_can_be_put_in_its_place(gateway, tmp_path):
    assert gateway.call("read").status == 200
    token = agent_gate(gateway, "agents", "make", "saved").strip()
    copy = tmp_path / "data"
    assert "To restore it" in agent_gate(gateway, "backup", str(copy))
    assert {path.name for path in copy.iterdir()} >= {"agent-gate.db", "audit.key", "channels.key"}
    assert (copy / "peers" / "identity.key").stat().st_mode & 0o777 == 0o600
    assert [path for path in [copy, *copy.rglob("*")] if path.stat().st_mode & 0o077] == []
    assert "is not empty" in agent_gate(gateway, "backup", str(copy), code=8)
    files = {name: (gateway.folder / name).read_text() for name in ("config.yaml", "tools.yaml")}
    with running(tmp_path, files | {"permissions.yaml": PERMISSIONS}, "--insecure") as restored:
        report = json.loads(agent_gate(restored, "audit", "verify", "--json"))
        assert report["ok"]
        assert report["rows"] > 0
        assert restored.call("read", token=token).status == 200


def test_a_backup_needs_no_variable_but_those_of_the_store(gateway, tmp_path):
    config, store = tmp_path / "config.yaml", gateway.folder / "data" / "agent-gate.db"
    config.write_text(f"storage: {{path: {store}}}\nagent: {{token: '${{NOT_SET_HERE}}'}}\n")
    agent_gate(gateway, "backup", str(tmp_path / "copy"), "--config", str(config))
    assert (tmp_path / "copy" / "agent-gate.db").is_file()


def test_a_backup_takes_the_authority_of_the_certificate_along(tmp_path):
    ensure_certificate(tmp_path / "data" / "tls")
    (tmp_path / "copy").mkdir()
    copy_keys(tmp_path / "data", tmp_path / "copy", vault_key=False)
    for name in "ca.key", "ca.crt", "gateway.key", "gateway.crt":
        copied, own = (tmp_path / folder / "tls" / name for folder in ("copy", "data"))
        assert copied.read_bytes() == own.read_bytes()


@pytest.mark.parametrize("text", ["{}", "storage:"])
def test_a_backup_of_what_is_not_there_says_so(tmp_path, text):
    (tmp_path / "config.yaml").write_text(text)
    done = nursery.run([COMMAND, "backup", "copy"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 8
    assert "There is no store at" in done.stderr
    assert not (tmp_path / "copy").exists()


def test_connect_writes_the_address_of_the_gateway_that_runs(gateway, tmp_path):
    done = nursery.run(
        [COMMAND, "connect", "--json", "--config", str(gateway.folder / "config.yaml")],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout)["cursor"]["entry"]["url"] == f"{gateway.url}/mcp"


def test_a_configuration_that_is_typed_counts_more_than_an_address_in_the_environment(gateway, tmp_path):
    done = nursery.run(
        [COMMAND, "connect", "cursor", "--json", "--config", str(gateway.folder / "config.yaml")],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "AGENT_TOKEN": TOKEN,
            "AGENT_GATE_URL": gateway.url,
        },
        capture_output=True,
        text=True,
    )
    entry = json.loads(done.stdout)["entry"]
    assert "--token-file" in entry["args"]
    assert "cursor" in agent_gate(gateway, "agents")
    agent_gate(gateway, "agents", "revoke", "cursor")


def test_who_may_not_be_asked_which_question_they_mean_is_told_what_is_open(gateway):
    asked = gateway.call("write", {"what": "once"}, wait=0).json["call"]
    assert "write(once)" in agent_gate(gateway, "approvals", "approve", code=4)
    gateway.call("write", {"what": "twice"}, wait=0)
    assert "--last" not in agent_gate(gateway, "approvals", "approve", code=4)
    for one in json.loads(agent_gate(gateway, "approvals", "--json")):
        agent_gate(gateway, "approvals", "deny", one["id"])
    assert gateway.request("GET", f"/api/calls/{asked}?wait=10").status == 403


def test_advice_names_the_gateway_as_the_command_did(gateway, tmp_path):
    config = tmp_path / "my gate" / "config.yaml"
    config.parent.mkdir()
    config.write_text("")
    said = agent_gate(gateway, "status", "--config", str(config), code=3)
    assert f"Start one with `agent-gate serve --config '{config}'`" in said
    assert "say where it runs" not in said
    said = agent_gate(gateway, "approvals", "show", "00000000", "--admin-socket", "data/admin.sock", code=4)
    assert "See `agent-gate approvals list --all --admin-socket data/admin.sock`" in said


def test_a_sign_in_that_was_begun_says_how_it_is_finished():
    said = begun("my notes", {"auth_url": "https://x.test/a"})
    assert "\nhttps://x.test/a\n" in said
    assert "`agent-gate auth code 'my notes'`" in said


@pytest.mark.parametrize("state", ["failed", "degraded", "needs_auth"])
def test_what_does_not_work_is_the_next_thing_to_look_at(state):
    quiet = {"store_fault": None, "reload_fault": None, "pending_approvals": 0, "tools": 3}
    assert next_step(quiet | {"sources": [{"state": state}]}) == "agent-gate doctor"


def test_a_command_without_a_gateway_says_how_to_start_one(gateway, tmp_path):
    done = nursery.run(
        [COMMAND, "approvals"], cwd=tmp_path, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True
    )
    assert done.returncode == 3
    assert "agent-gate serve" in done.stderr
    assert "--config" in done.stderr


def test_init_writes_a_configuration_that_answers_its_first_call(tmp_path):
    done = nursery.run(
        [COMMAND, "init", "--folder", "home", "--behind", "home"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert "A first call went through" in done.stdout
    assert (tmp_path / "home" / ".env").stat().st_mode & 0o077 == 0
    again = nursery.run(
        [COMMAND, "init", "--folder", "home", "--behind", "nothing"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert again.returncode == 8
    assert "already there" in again.stderr


def init(folder, *arguments, code=0, **env):
    done = nursery.run(
        [COMMAND, "init", "--folder", "home", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout + done.stderr


@pytest.mark.parametrize("answers", [(NOTHING, "pi"), (ASSISTANT, "http://127.0.0.1:9", "a-token", "pi")])
def test_init_asks_at_most_four_questions(tmp_path, monkeypatch, answers):
    left = list(answers)
    monkeypatch.setattr("click.prompt", lambda *_, **__: left.pop(0))
    assert ask().agent == "pi"
    assert left == []


def test_init_takes_the_names_that_agents_may_have_and_asks_again(tmp_path):
    typed = f"{NOTHING}\nmy agent\nmy-agent\n"
    with CliRunner().isolation(input=typed):
        assert ask() == Wanted(NOTHING, "my-agent")


def test_what_init_writes_keeps_secrets_and_data_out_of_git(tmp_path):
    write(tmp_path, Wanted(NOTHING, "pi"))
    assert (tmp_path / ".gitignore").read_text().split() == [".env", "data/"]


def test_init_speaks_of_your_own_home_assistant_where_it_is_yours(tmp_path):
    write(tmp_path, Wanted(ASSISTANT, "pi", "http://ha.local:8123", "a-token"))
    text = (tmp_path / "config.yaml").read_text()
    assert "HOME_URL and HOME_TOKEN in .env" in text
    assert "small home" not in text
    services = SERVICES.of(load(tmp_path / "config.yaml", None).settings)
    assert services["homeassistant"].url == "http://ha.local:8123"


def test_what_init_writes_for_your_own_home_assistant_has_no_fault(tmp_path):
    home = tmp_path / "home"
    write(home, Wanted(ASSISTANT, "pi", "http://127.0.0.1:9", "a-token"))
    assert "notes" not in (home / "config.yaml").read_text()
    done = nursery.run(
        [COMMAND, "check", "--config", "home/config.yaml"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_init_says_what_to_mend_where_the_first_call_fails(tmp_path):
    wanted = Wanted(ASSISTANT, "pi", "http://127.0.0.1:9", "a-token")
    said = what_to_mend(Path("gate"), wanted)
    assert said.startswith("Correct HOME_URL or HOME_TOKEN in gate/.env. Then go on with:")
    assert "agent-gate serve --config gate/config.yaml" in said


@pytest.mark.parametrize(("folder", "named"), [("gate", " --config gate/config.yaml"), (".", "")])
def test_what_init_says_comes_next_can_be_typed_as_it_is(tmp_path, folder, named):
    done = nursery.run(
        [COMMAND, "init", "--behind", "nothing", "--folder", folder],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    steps = [line.partition("#")[0].strip() for line in done.stdout.partition("Next:\n")[2].splitlines()]
    serve = named or " --config config.yaml"
    commands = [f"import{named}", f"serve{serve}", f"connect{named}", f"approvals{named}"]
    assert steps == [f"agent-gate {command}" for command in commands]


@pytest.mark.parametrize("behind", ["nothing", "home"])
def test_init_keeps_what_is_in_the_folder_already(tmp_path, behind):
    home = tmp_path / "home"
    home.mkdir()
    (home / ".env").write_text("# mine\nSTRIPE_KEY='precious'\n")
    (home / "permissions.yaml").write_text("rules: []  # mine\ndefaults: [{pattern: '*', action: allow}]\n")
    init(tmp_path, "--behind", behind)
    secrets = (home / ".env").read_text()
    assert secrets.startswith("# mine\nSTRIPE_KEY='precious'\n")
    assert "AGENT_TOKEN=" in secrets
    assert "# mine" in (home / "permissions.yaml").read_text()
    assert load(home / "config.yaml", env={}).settings.agents


def test_inits_first_call_heeds_neither_a_proxy_nor_tokens_of_another_gateway(tmp_path):
    nowhere = "http://127.0.0.1:9"
    others = {"AGENT_TOKEN": "token-of-another-gateway", "HOME_TOKEN": "token-of-another-home"}
    out = init(tmp_path, "--behind", "home", http_proxy=nowhere, HTTP_PROXY=nowhere, **others)
    assert "A first call went through" in out


@pytest.mark.parametrize("name", ["my agent", "#1", "a: b", "{x}"])
def test_an_agent_of_any_name_is_written_so_that_it_can_be_read(tmp_path, name):
    write(tmp_path, Wanted(NOTHING, name))
    assert list(load(tmp_path / "config.yaml").settings.agents) == [name]
