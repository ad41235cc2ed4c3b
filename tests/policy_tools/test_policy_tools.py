"""Simulate, suggest and make-a-rule, through the command line and a running gateway's record."""

import asyncio
import json
import threading
import time
from types import SimpleNamespace

import pytest
from tests.rows import opened, step
from tests.tools import arg, catalog, yaml_tool
from tests.waiting import PATIENCE, until

from agent_gate.config.configuration import Configuration
from agent_gate.config.options import Options
from agent_gate.core.approval import Approval, Asked, Hashes
from agent_gate.core.call import Call, Caller, Decision, State
from agent_gate.core.ports import SystemClock
from agent_gate.core.tool import Definition
from agent_gate.errors import InvalidArgs
from agent_gate.policy import Policy, Subject
from agent_gate.policy.rule import make_rule
from agent_gate.policy.simulate import Simulation, recorded
from agent_gate.policy.suggest import literal, past_questions, rule_from, suggest
from agent_gate.store import StoreSettings
from agent_gate.surfaces.admin.routes.policy_tools import PolicyTools

CATALOG = catalog(
    yaml_tool(
        "light", "{name}", {"name": arg(), "note": arg(), "pin": arg()}, ["name"], secret=frozenset({"pin"})
    ),
    yaml_tool("bare"),
    yaml_tool("serve", "{what}, {where}", {"what": arg(), "where": arg()}, ["what", "where"]),
)


def ask(gate, name, state="on", verdict="approve", **more):
    reply = gate.call("light", {"name": name, "state": state, **more}, wait=0)
    if verdict:
        gate.answer(verdict)
    return reply.json["call"]


def test_simulate_prints_what_would_differ(gate, cli):
    gate.call("light", {"name": "kitchen", "state": "on"}, wait=5)
    for name in ("hall", "hall", "attic"):
        ask(gate, name)
    gate.call("erase", {"name": "all"}, wait=5)
    new = gate.folder / "new.yaml"
    new.write_text(
        'rules: [{pattern: "light(hall, *)", action: allow}, {pattern: "light(kitchen, *)", action: deny}]\n'
        'defaults: [{pattern: "*", action: ask}]\n'
    )
    done = cli("simulate", "new.yaml", "--last", "1h")
    assert done.returncode == 1, done.stderr
    assert "ask → allow  pi: light(hall, on)  (2 calls)" in done.stdout
    assert "allow → deny  pi: light(kitchen, on)" in done.stdout
    assert "deny → ask  pi: erase(all)" in done.stdout
    assert "new.yaml:1" in done.stdout
    assert "attic" not in done.stdout
    assert done.stdout.endswith("5 calls tried, 4 would be decided differently.\n")


def test_simulating_the_rules_in_force_differs_in_nothing_even_where_a_grant_answered(gate, cli):
    ask(gate, "hall", verdict=None)
    gate.answer(lifetime="always")
    assert gate.call("light", {"name": "hall", "state": "on"}, wait=5).status == 200
    done = cli("simulate", "permissions.yaml", "--json")
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout) == {"tried": 2, "same": 2, "differences": [], "more": False}


async def test_simulating_leaves_the_event_loop_to_the_others(tmp_path):
    asked, turned = threading.Event(), threading.Event()

    def find(_tool_id):
        asked.set()
        assert turned.wait(PATIENCE), "the loop stood still"

    async with opened(StoreSettings(path=tmp_path / "gate.db")) as store:
        await store.write(step("call", State.DISPATCHING, decision="ask", signature="light(hall)"))
        admin = SimpleNamespace(
            record=SimpleNamespace(store=store),
            clock=SystemClock(),
            shelf=SimpleNamespace(catalog=SimpleNamespace(find=find)),
            setup=SimpleNamespace(configuration=Configuration(Options())),
        )
        ask = SimpleNamespace(body=lambda: {"text": "rules: []", "since": 0})
        reply = asyncio.create_task(PolicyTools(admin)._simulate(ask))
        await until(asked.is_set)
        turned.set()
        assert json.loads((await reply).body)["tried"] == 1


def test_rules_are_tried_with_the_variables_that_the_gateway_has(gate, cli):
    (gate.folder / ".env").write_text("ROOM=hall\n")
    (gate.folder / "new.yaml").write_text("rules: [{pattern: 'light(${ROOM}, *)', action: allow}]\n")
    ask(gate, "hall")
    done = cli("simulate", "new.yaml")
    assert "ask → allow  pi: light(hall, on)" in done.stdout, done.stderr


def test_a_broken_file_is_named_with_its_line_and_changes_nothing(gate, cli):
    (gate.folder / "bad.yaml").write_text("rules:\n  - {pattern: 3, action: allow}\n")
    done = cli("simulate", "bad.yaml")
    assert done.returncode == 4
    assert "bad.yaml:2" in done.stderr
    assert cli("simulate", "permissions.yaml", "--last", "soon").returncode == 4


def test_suggest_counts_the_answers_of_the_past(gate, cli):
    for i in range(10):
        ask(gate, f"room{i % 3}", verdict="deny" if i == 9 else "approve")
    for _ in range(4):
        ask(gate, "attic", "off", verdict="deny")
    done = cli("suggest")
    assert done.returncode == 0, done.stderr
    assert "Nothing to suggest" in done.stdout
    for i in range(30):
        ask(gate, f"room{i % 3}")
    found = json.loads(cli("suggest", "--json").stdout)["suggestions"]
    assert {s["rule"]["pattern"] for s in found} == {
        "light(room0, on)",
        "light(room1, on)",
        "light(room2, on)",
    }
    assert all(s["rule"]["action"] == "allow" and s["rule"]["callers"] == ["pi"] for s in found)
    assert "13 of 14 asks for light(room0, on) by pi were approved" in cli("suggest").stdout


def test_a_rule_made_from_a_question_keeps_the_comments_and_is_in_force(gate, cli):
    before = (gate.folder / "permissions.yaml").read_text()
    ask(gate, "hall", verdict=None, note="dim, please", brightness=40)
    [approval] = gate.admin.get("/api/approvals")
    done = cli("add-rule", "--from", approval["id"][-8:], answer="n\n")
    assert done.returncode == 1
    assert (gate.folder / "permissions.yaml").read_text() == before
    assert '+  - {pattern: "light(hall, on)", action: allow, callers: [pi]' in done.stdout
    done = cli("add-rule", "--from", approval["id"], answer="y\n")
    assert done.returncode == 0, done.stderr
    after = (gate.folder / "permissions.yaml").read_text()
    added = [line for line in after.splitlines() if line not in before.splitlines()]
    assert len(added) == 1
    assert 'when: {note: "dim, please", brightness: 40, pin: null}' in added[0]
    assert all(line in after.splitlines() for line in before.splitlines())
    assert [row["id"] for row in gate.admin.get("/api/approvals")] == [approval["id"]]
    same = {"name": "hall", "state": "on", "note": "dim, please", "brightness": 40}
    assert gate.call("light", same, wait=5).status == 200
    assert gate.call("light", same | {"note": "bright"}, wait=0).status == 202
    assert gate.call("light", same | {"area": "all"}, wait=0).status == 202
    assert gate.call("light", same | {"pin": "1234"}, wait=0).status == 202


def test_no_argument_becomes_a_variable_in_the_rule_made_from_it(gate, cli):
    asked = {"name": "${NOPE:-attic}", "state": "on", "note": "${NOPE:-*} [x]"}
    gate.call("light", asked, wait=0)
    [approval] = gate.admin.get("/api/approvals")
    done = cli("add-rule", "--from", approval["id"], answer="y\n")
    assert done.returncode == 0, done.stderr
    assert gate.call("light", asked, wait=5).status == 200
    for other in ({"name": "attic"}, {"note": "* [x]"}, {"name": "attic", "note": "* [x]"}):
        assert gate.call("light", asked | other, wait=0).status == 202


def test_what_is_written_is_what_was_shown(gate):
    ask(gate, "hall", verdict=None)
    [approval] = gate.admin.get("/api/approvals")
    shown = gate.admin.request("POST", "/api/policy/rules", {"approval": approval["id"]})
    path = gate.folder / "permissions.yaml"
    path.write_text(path.read_text() + "# changed meanwhile\n")
    body = {"approval": approval["id"], "apply": True}
    for digest in (None, "0" * 32, shown["digest"]):
        with pytest.raises(InvalidArgs, match="not what was shown"):
            gate.admin.request("POST", "/api/policy/rules", body | {"digest": digest})
    assert "hall" not in path.read_text()


def test_a_rule_is_removed_after_its_difference_was_shown_and_counts_no_more(gate):
    path = gate.folder / "permissions.yaml"
    good = path.read_text()
    [rule] = [one for one in gate.admin.get("/api/policy")["rules"] if "kitchen" in one["rule"]]
    wanted = {"remove": rule["where"]}
    shown = gate.admin.request("POST", "/api/policy/rules", wanted)
    assert (path.read_text(), '-  - {pattern: "light(kitchen' in shown["diff"]) == (good, True)
    gate.admin.request("POST", "/api/policy/rules", wanted | {"apply": True, "digest": shown["digest"]})
    assert gate.call("light", {"name": "kitchen", "state": "on"}, wait=0).json["status"] == "pending"
    assert path.read_text() == good.replace(good.splitlines(keepends=True)[4], "")
    with pytest.raises(InvalidArgs, match="Look at the rules again"):
        gate.admin.request("POST", "/api/policy/rules", wanted)


def test_a_bad_file_keeps_the_old_rules_and_says_so_everywhere(gate):
    path = gate.folder / "permissions.yaml"
    good = path.read_text()
    path.write_text("rules: [{pattern: x, action: maybe}]\n")
    with pytest.raises(Exception, match="maybe"):
        gate.admin.request("POST", "/api/reload", {})
    assert "permissions.yaml:1" in gate.admin.get("/api/status")["reload_fault"]
    assert "the old one keeps serving" in gate.stderr
    assert gate.call("light", {"name": "kitchen", "state": "on"}, wait=5).status == 200
    path.write_text(good)
    gate.admin.request("POST", "/api/reload", {})
    assert gate.admin.get("/api/status")["reload_fault"] is None


def approval(**more):
    given = {
        "id": "1" * 32,
        "call_id": "2" * 32,
        "caller": Caller(name="pi"),
        "tool_id": CATALOG.names["light"].id,
        "wire": "light",
        "signature": "light(hall)",
        "arguments": {"name": "hall"},
        "arguments_hash": "",
        "definition_hash": "",
        "decision": Decision(effect="ask"),
    }
    given |= more
    of_call = {name: given.pop(name) for name in Call.__struct_fields__[1:] if name in given and name != "id"}
    call = Call(id=given.pop("call_id"), tool=given.pop("tool_id"), **of_call)
    hashes = Hashes(given.pop("arguments_hash"), given.pop("definition_hash"))
    asked = Asked(at=0.0, expires_at=0.0, wire=given.pop("wire"), secret=given.pop("secret", frozenset()))
    return Approval(call=call, hashes=hashes, asked=asked, **given)


def test_a_rule_for_the_whole_tool_covers_every_call_of_it():
    assert rule_from(approval(), CATALOG.names["light"], "deny", "tool")["pattern"] == "light(*)"
    assert rule_from(approval(wire="bare"), CATALOG.names["bare"], "deny", "tool")["pattern"] == "bare"


def test_what_a_rule_cannot_pin_is_refused_and_secrets_are_never_written():
    light = CATALOG.names["light"]
    with pytest.raises(InvalidArgs, match="note"):
        rule_from(approval(arguments={"name": "hall", "note": ["a"]}), light, "allow", "exact")
    made = rule_from(
        approval(arguments={"name": "hall", "pin": "1234"}, secret=frozenset({"pin"})),
        light,
        "allow",
        "exact",
    )
    assert "1234" not in json.dumps(made)


def test_an_argument_that_was_left_out_does_not_ride_along_on_the_rule():
    light = CATALOG.names["light"]
    made = rule_from(approval(), light, "allow", "exact")
    policy = Policy([make_rule(pattern=made["pattern"], action="allow", when=made["when"])])
    assert policy.decide(Subject(light, {"name": "hall"}, "light(hall)", "pi")).effect == "allow"
    for name in ("note", "pin"):
        more = {"name": "hall", name: "x"}
        assert policy.decide(Subject(light, more, "light(hall)", "pi")).effect == "ask"


SCHEMA = {"type": "object", "properties": {"path": {}}}
READ = catalog(Definition(name="read", input_schema=SCHEMA), key="box").names["box__read"]


@pytest.mark.parametrize("scope", ["exact", "tool"])
@pytest.mark.parametrize(
    ("tool", "arguments", "extra"),
    [
        (CATALOG.names["light"], {"name": "hall"}, None),
        (CATALOG.names["light"], {"name": "hall", "fade": 2, "area": "all"}, ["area", "fade"]),
        (READ, {"path": "/srv/a", "zroot": "/etc", "odd = key": 1, "k" * 100: "v" * 300}, None),
    ],
)
def test_a_rule_made_from_a_question_allows_the_call_that_was_asked_about(scope, tool, arguments, extra):
    signature = tool.sign(arguments)
    asked = approval(tool_id=tool.id, wire=tool.wire, signature=signature, arguments=arguments)
    made = rule_from(asked, tool, "allow", scope)
    assert made.get("extra") == extra
    rule = make_rule(
        pattern=made["pattern"],
        action="allow",
        when=made.get("when", {}),
        extra=frozenset(made.get("extra", ())),
    )
    assert Policy([rule]).decide(Subject(tool, arguments, signature, "pi")).effect == "allow"
    more = arguments | {"root": "/"}
    riding = Policy([rule]).decide(Subject(tool, more, tool.sign(more), "pi")).effect
    assert riding == ("allow" if scope == "tool" and tool is READ else "ask")


def test_a_suggested_rule_names_the_undeclared_arguments_of_the_calls_it_rests_on():
    arguments = {"name": "hall", "fade": 2}
    rows = [
        one
        for n in range(6)
        for one in (
            row("pending", call=f"c{n}", arguments=arguments, decision="ask"),
            row("approved", call=f"c{n}", at=3.0),
        )
    ]
    [suggested] = suggest(Policy(), past_questions(rows), CATALOG.find)
    assert suggested.rule["extra"] == ["fade"]


def test_what_a_person_did_without_a_rule_is_not_tried_again():
    by_hand = row("dispatching", decision="allow", reason="done by anna")
    by_rule = row("dispatching", decision="allow", rule="allow light(*)")
    assert recorded(by_hand) is None
    assert recorded(by_rule) is not None
    assert recorded(row("dispatching", decision="allow", grant="g1")) is not None


def test_no_exact_rule_allows_a_tool_whose_template_is_gone():
    with pytest.raises(InvalidArgs, match="leaves out"):
        rule_from(approval(), None, "allow", "exact")
    shown = approval(signature="light(name=hall)")
    assert rule_from(shown, None, "allow", "exact")["pattern"] == "light(name=hall)"
    assert rule_from(approval(), None, "deny", "exact")["pattern"] == "light(hall)"


def test_a_pattern_made_from_a_signature_matches_only_it():
    policy = Policy([make_rule(pattern=literal("f(a*[b]?)"), action="allow")])
    tool = catalog(yaml_tool("f", "{x}", {"x": arg()})).names["f"]
    assert policy.decide(Subject(tool, {}, "f(a*[b]?)", "pi")).effect == "allow"
    assert policy.decide(Subject(tool, {}, "f(axb)", "pi")).effect == "ask"


def row(state, signature="light(hall)", call="c1", at=1.0, **body):
    tool = CATALOG.names.get(signature.partition("(")[0], CATALOG.names["light"]).id
    return {
        "call": call, "at": at, "state": state, "caller": "pi", "tool": tool,
        "body": {"signature": signature, "decision": "ask", "arguments": {}, **body},
    }  # fmt: skip


def simulate(policy, call):
    simulation = Simulation(policy, CATALOG.find)
    simulation.add([call])
    return simulation.report().differences


def test_a_masked_argument_is_named_where_a_rule_would_look_at_it():
    policy = Policy(
        [make_rule(pattern="light(*", action="allow", when={"pin": "1"})], [make_rule(action="deny")]
    )
    call = recorded(row("pending", arguments={"pin": "•••"}))
    [found] = simulate(policy, call)
    assert found.after == "deny"
    assert found.notes == ("pin was masked in the record, so `when` could not be tried",)


def test_a_tool_that_is_gone_is_still_tried_and_said_to_be_gone():
    call = recorded(row("pending", "old(x)", wire="old") | {"tool": "lab:old@1"})
    [found] = simulate(Policy([make_rule(pattern="old*", action="deny")]), call)
    assert "the tool is gone" in found.notes[0]


def test_rows_without_a_decision_are_passed_over():
    assert (
        recorded({"call": "c", "at": 1, "state": "completed", "caller": "pi", "tool": "t", "body": {}})
        is None
    )


def history(counts):
    """Rows of questions: `counts` maps (signature, end) to how many there were."""
    number = 0
    for (signature, end), count in counts.items():
        for _ in range(count):
            number += 1
            yield row("pending", signature, f"c{number}", time.time())
            yield row(end, signature, f"c{number}", time.time() + 2) | {"body": {}}


def test_only_frequent_and_unanimous_answers_become_suggestions():
    rows = history(
        {
            ("light(a)", "approved"): 23,
            ("light(a)", "expired"): 2,
            ("light(b)", "approved"): 4,
            ("light(c)", "approved"): 5,
            ("light(c)", "denied"): 5,
            ("light(d)", "denied"): 6,
        }
    )
    found = suggest(Policy([], [make_rule(action="ask")]), past_questions(rows), CATALOG.find)
    assert [(s.rule["pattern"], s.rule["action"]) for s in found] == [
        ("light(a)", "allow"),
        ("light(d)", "deny"),
    ]
    assert found[0].text == "23 of 25 asks for light(a) by pi were approved, typically after 2 s"


def test_one_call_repeated_allows_itself_and_not_the_whole_tool():
    rows = list(
        history({("light(a)", "approved"): 6, ("light(b)", "approved"): 1, ("light(c)", "approved"): 1})
    )
    [found] = suggest(Policy(), past_questions(rows), CATALOG.find)
    assert found.rule["pattern"] == "light(a)"


def test_what_a_call_does_is_never_widened_by_a_suggestion():
    lamps = {(f"serve(light.turn_on, lamp{n})", "approved"): 2 for n in range(3)}
    others = {(f"serve({what}, it)", "approved"): 2 for what in ("lock.lock", "cover.close", "notify.me")}
    rows = list(history(lamps | others))
    [found] = suggest(Policy(), past_questions(rows), CATALOG.find)
    assert found.rule["pattern"] == "serve(light.turn_on, *)"
    denied = [{**one, "state": "denied"} if one["state"] == "approved" else one for one in rows]
    [found] = suggest(Policy(), past_questions(denied), CATALOG.find)
    assert (found.rule["pattern"], found.rule["action"]) == ("serve(*)", "deny")


def test_a_tool_that_is_always_approved_is_one_suggestion_unless_it_destroys():
    rows = list(history({(f"light({i})", "approved"): 2 for i in range(4)}))
    policy = Policy([], [make_rule(action="ask")])
    [found] = suggest(policy, past_questions(rows), CATALOG.find)
    assert found.rule["pattern"] == "light(*)"
    assert suggest(policy, past_questions(rows), lambda _id: None) == []
    allowed = Policy([make_rule(pattern="light(*)", action="allow")])
    assert suggest(allowed, past_questions(rows), CATALOG.find) == []
