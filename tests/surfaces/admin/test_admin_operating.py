import hashlib
import json
import re
from pathlib import Path

import pytest
from tests.gateway import TOKEN, Gateway
from tests.surfaces.admin.admin_gate import browser, gate
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with gate(tmp_path_factory.mktemp("gate")) as gateway:
        yield gateway


@pytest.fixture
def person(gateway):
    person = browser(gateway)
    yield person
    for approval in person.get("/api/approvals"):
        person.post(f"/api/approvals/{approval['id']}", {"verdict": "deny"})


def test_a_question_shows_every_argument_and_what_the_signature_leaves_out(gateway, person):
    note = "\u202egnp.exe " * 400
    arguments = {"room": "hall", "note": note, "pin": "4711-very-secret", "fade": {"seconds": 3}}
    gateway.call("light_set", arguments, wait=0)
    [row] = person.get("/api/approvals?brief=1")
    assert "arguments" not in row
    found = person.get(f"/api/approvals/{row['id']}")
    assert found["sentence"] == "Set the light in hall?"
    details = {one["name"]: one for one in found["details"]}
    assert set(details) == set(arguments)
    assert details["room"]["in_signature"]
    assert not details["note"]["in_signature"]
    assert details["note"]["text"] == note
    assert details["note"]["length"] == len(note)
    assert details["note"]["sha256"] == hashlib.sha256(note.encode()).hexdigest()
    assert (details["pin"]["secret"], details["pin"]["sha256"]) == (True, None)
    assert not details["fade"]["declared"]
    assert json.loads(details["fade"]["text"]) == {"seconds": 3}
    assert "4711-very-secret" not in json.dumps(found)
    assert re.search(r"permissions\.yaml:1\b", found["where"])


def test_several_questions_are_answered_alike_and_a_late_one_does_not_stop_the_others(gateway, person):
    for room in ("one", "two", "three"):
        gateway.call("light_set", {"room": room}, wait=0)
    ids = [row["id"] for row in person.get("/api/approvals?brief=1")]
    person.post(f"/api/approvals/{ids[1]}", {"verdict": "deny"})
    results = person.post("/api/approvals", {"ids": ids, "verdict": "approve"})["results"]
    assert [result.get("state") for result in results] == ["approved", None, "approved"]
    assert "already denied" in results[1]["error"]["message"]
    assert person.get("/api/approvals") == []
    assert person.send("POST", "/api/approvals", {"ids": [], "verdict": "deny"}).status == 400
    assert person.send("POST", "/api/approvals", {"ids": ids, "verdict": "maybe"}).status == 400


def test_the_history_has_answered_questions_only(gateway, person):
    gateway.call("light_set", {"room": "history"}, wait=0)
    assert "history" not in json.dumps(person.get("/api/approvals?state=answered&brief=1"))
    assert "history" in json.dumps(person.get("/api/approvals?state=all&brief=1"))


def test_open_questions_do_not_stand_in_the_way_of_older_answers(gateway, person):
    gateway.call("light_set", {"room": "before"}, wait=0)
    [asked] = [row for row in person.get("/api/approvals?brief=1") if row["signature"] == "light_set(before)"]
    person.post(f"/api/approvals/{asked['id']}", {"verdict": "deny"})
    for room in ("later", "latest"):
        gateway.call("light_set", {"room": room}, wait=0)
    [newest] = person.get("/api/approvals?state=answered&brief=1&limit=1")
    assert newest["id"] == asked["id"]


def test_an_agent_made_here_may_call_at_once_and_is_refused_once_revoked(gateway, person):
    made = person.post("/api/agents", {"name": "kitchen-pi", "namespaces": ["house"], "calls_per_minute": 0})
    assert gateway.call("light_get", {"room": "hall"}, token=made["token"]).status == 200
    [listed] = [one for one in person.get("/api/agents") if one["name"] == "kitchen-pi"]
    assert (listed["made_here"], listed["namespaces"], listed["tools"]) == (True, ["house"], 2)
    assert made["token"] not in json.dumps(person.get("/api/agents/kitchen-pi"))
    assert {tool["name"] for tool in person.get("/api/agents/kitchen-pi")["sees"]} == {
        "light_get",
        "light_set",
    }
    assert person.send("POST", "/api/agents", {"name": "kitchen-pi"}).status == 400
    person.send("DELETE", "/api/agents/kitchen-pi")
    assert gateway.call("light_get", {"room": "hall"}, token=made["token"]).status == 401


def test_an_agent_made_again_under_its_name_inherits_no_grants(tmp_path):
    with gate(tmp_path) as gateway:
        admin = gateway.admin

        def made():
            return admin.request("POST", "/api/agents", {"name": "reborn", "calls_per_minute": 0})["token"]

        def asks(room, token):
            return gateway.call("light_set", {"room": room}, wait=0, token=token).status == 202

        token = made()
        assert asks("first", token)
        gateway.answer(lifetime="always")
        assert [one["caller"] for one in admin.get("/api/grants")] == ["reborn"]
        assert asks("late", token)
        admin.request("DELETE", "/api/agents/reborn")
        assert admin.get("/api/grants") == []
        gateway.answer(lifetime="always")
        token = made()
        assert admin.get("/api/grants") == []
        assert asks("first", token)
        gateway.answer()
        gateway.kill()
        gateway.start()
        assert asks("first", token)
        assert asks("late", token)


@pytest.mark.parametrize(
    "wanted",
    [
        {"name": ""},
        {"name": "a b"},
        {"name": "x" * 65},
        {"name": 3},
        {"name": "pi"},
        {"name": "new", "mode": "all"},
        {"name": "new", "namespaces": "house"},
        {"name": "new", "max_pending": -1},
        {"name": "new", "max_pending": "many"},
    ],
)
def test_an_agent_that_cannot_be_is_refused_in_words(person, wanted):
    reply = person.send("POST", "/api/agents", wanted)
    assert reply.status == 400
    assert reply.json["error"]["message"]


def test_an_agent_of_the_files_is_not_revoked_here(person):
    reply = person.send("DELETE", "/api/agents/pi")
    assert "configuration" in reply.json["error"]["message"]


def test_agents_made_here_survive_a_restart_and_only_their_hash_is_kept(tmp_path):
    with gate(tmp_path) as gateway:
        token = gateway.admin.request("POST", "/api/agents", {"name": "lasting"})["token"]
        gateway.kill()
        stored = b"".join(file.read_bytes() for file in (tmp_path / "data").glob("gate.db*"))
        assert token.encode() not in stored
        again = Gateway(tmp_path, "--insecure").start()
        try:
            assert again.call("light_get", {"room": "hall"}, token=token).status == 200
            again.admin.request("POST", "/api/reload")
            assert again.call("light_get", {"room": "hall"}, token=token).status == 200
            again.admin.request("DELETE", "/api/agents/lasting")
            assert again.call("light_get", {"room": "hall"}, token=token).status == 401
        finally:
            again.stop()


def test_trying_a_tool_is_a_call_of_that_agent_with_the_same_rules_and_record(gateway, person):
    tried = person.post("/api/tools/light_get/try", {"agent": "pi", "arguments": {"room": "hall"}})
    assert tried["status"] == "executed"
    story = person.get(f"/api/calls/{tried['call']}/timeline")
    assert (story["caller"], story["surface"], story["state"]) == ("pi", "page", "completed")
    refused = person.post("/api/tools/light_get/try", {"agent": "blind", "arguments": {"room": "hall"}})
    assert refused["error"]["code"] == "TOOL_NOT_FOUND"
    denied = person.post("/api/tools/siren/try", {"agent": "pi"})
    assert denied["error"]["code"] == "FORBIDDEN"
    assert person.send("POST", "/api/tools/light_get/try", {"agent": "nobody"}).status == 400


def test_trying_a_tool_that_needs_a_person_waits_for_one(gateway, person):
    tried = person.post("/api/tools/light_set/try", {"agent": "pi", "arguments": {"room": "x"}, "wait": 0})
    assert tried["status"] == "pending"
    person.post(f"/api/approvals/{tried['approval']}", {"verdict": "approve"})
    ended = person.get(f"/api/tries/{tried['call']}?agent=pi&wait=10")
    assert ended["status"] == "executed"


def test_a_tool_shows_its_size_and_what_each_agent_meets(person):
    found = person.get("/api/tools/light_set")
    assert 20 < found["tokens"] < 200
    who = {one["agent"]: one for one in found["who"]}
    assert who["pi"]["effect"] == "ask"
    assert who["blind"]["effect"] == "unseen"
    siren = {one["agent"]: one["effect"] for one in person.get("/api/tools/siren")["who"]}
    assert siren["pi"] == "deny"
    [row] = [one for one in person.get("/api/tools?brief=1")["tools"] if one["name"] == "light_set"]
    assert "input_schema" not in row


def test_the_list_of_tools_says_what_an_agent_of_ones_choice_meets(person):
    def effects(agent):
        return {one["name"]: one["effect"] for one in person.get(f"/api/tools?agent={agent}")["tools"]}

    assert effects("pi") == {"light_set": "ask", "light_get": "allow", "siren": "deny"}
    assert set(effects("blind").values()) == {"unseen"}
    sees = {one["name"]: one["effect"] for one in person.get("/api/agents/pi")["sees"]}
    assert sees == {"light_set": "ask", "light_get": "allow"}
    assert person.send("GET", "/api/tools?agent=nobody").status == 400


def test_the_rules_that_can_never_decide_are_marked_with_their_line(gateway, person):
    policy = person.get("/api/policy")
    assert policy["text"] == (gateway.folder / "permissions.yaml").read_text()
    faulty = {rule["line"]: rule["faults"] for rule in policy["rules"] if rule["faults"]}
    assert set(faulty) == {4, 6}
    assert "comes first" in faulty[4][0]
    assert "matches no tool" in faulty[6][0]
    assert [rule["action"] for rule in policy["rules"]] == ["deny", "deny", "allow", "allow", "ask"]


def test_the_record_is_folded_to_one_line_per_call_with_where_its_time_went(gateway, person):
    gateway.call("light_set", {"room": "slow"}, wait=0)
    [approval] = person.get("/api/approvals")
    pending = person.get(f"/api/calls/{approval['call']}/timeline")
    assert [span["name"] for span in pending["spans"]] == ["checked by the rules", "waits for a person"]
    person.post(f"/api/approvals/{approval['id']}", {"verdict": "approve", "lifetime": "hour"})
    gateway.request("GET", f"/api/calls/{approval['call']}?wait=10")
    [call] = person.get("/api/calls?by=call&text=slow")["calls"]
    assert (call["state"], call["signature"], call["decision"]) == ("completed", "light_set(slow)", "ask")
    story = person.get(f"/api/calls/{approval['call']}/timeline")
    names = [span["name"] for span in story["spans"]]
    assert names == [
        "checked by the rules",
        "waited for a person",
        "waited for the source",
        "at the source",
        "recorded",
    ]
    assert all(span["end"] >= span["start"] for span in story["spans"])
    assert story["seconds"] == pytest.approx(story["spans"][-1]["end"] - story["spans"][0]["start"])
    assert story["answer"]["by"] == "operator"
    assert (story["answer"]["state"], story["answer"]["lifetime"]) == ("approved", "hour")
    assert [row["state"] for row in story["rows"]] == ["pending", "approved", "dispatching", "completed"]


def test_refused_calls_are_listed_with_their_reason(gateway, person):
    gateway.call("siren")
    found = person.get("/api/calls?by=call&state=refused")["calls"]
    assert ("siren", "FORBIDDEN") in [(call["tool"], call["error"]["code"]) for call in found]
    story = person.get(f"/api/calls/{found[0]['call']}/timeline")
    assert (story["spans"], story["answer"]) == ([], None)
    assert story["says"] == "A rule denies it"


def test_a_call_that_was_allowed_tells_how_long_the_rules_took(gateway, person):
    call = gateway.call("light_get", {"room": "hall"}).json["call"]
    names = [span["name"] for span in person.get(f"/api/calls/{call}/timeline")["spans"]]
    assert names == ["checked by the rules", "at the source", "recorded"]


def test_what_needs_a_person_is_said_with_its_reason_and_a_button(tmp_path):
    with gate(tmp_path) as gateway:
        person = browser(gateway)
        [warning] = person.get("/api/now")["needs"]
        assert "'deny nothing_like_this*' matches no tool" in warning["reason"]
        (tmp_path / "permissions.yaml").write_text("rules: [{pattern: 3}]\n")
        person.send("POST", "/api/reload", {})
        [need, still] = person.get("/api/now")["needs"]
        assert still == warning
        assert need["problem"] == "The new configuration is not used"
        assert "permissions.yaml" in need["reason"]
        assert need["action"] == {"label": "Reload", "path": "/api/reload"}


def test_the_button_for_a_source_leads_to_it_whatever_its_name(tmp_path):
    servers = 'servers: {"my 50%/server?#1": {command: /nonexistent/server}}'
    with gate(tmp_path, servers) as gateway:
        person = browser(gateway)
        found = (person.get("/api/now")["needs"] for _ in range(1_000))
        need = next(need for needs in found for need in needs if need["page"] != "policy")
        assert person.send("POST", need["action"]["path"], {}).status == 202


def test_every_client_has_a_card_with_the_address_filled_in(gateway, person):
    found = person.get("/api/clients")
    assert found["gateway"]["endpoint"] == f"{gateway.url}/mcp"
    cards = {card["name"]: card for card in found["clients"]}
    assert gateway.url in json.dumps(cards["claude-code"]["command"])
    assert cards["cursor"]["here"][:4] == ["agent-gate", "connect", "cursor", "--config"]
    assert Path(cards["cursor"]["here"][4]).samefile(gateway.folder / "config.yaml")
    assert cards["cursor"]["elsewhere"][3:5] == ["--url", gateway.url]
    assert cards["claude-desktop"]["entry"] is None, "it would need a token that it cannot be given"
    assert TOKEN not in json.dumps(found)


def test_the_openapi_document_describes_every_operation_once(person):
    document = person.get("/openapi.json")
    operations = [op for path in document["paths"].values() for op in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names)) > 30
    for path, methods in document["paths"].items():
        for operation in methods.values():
            inside = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "path"}
            assert inside == set(re.findall(r"\{(\w+)\}", path))
            assert operation["summary"]


def test_every_route_that_the_operators_page_of_the_docs_names_is_in_the_openapi_document(person):
    paths = person.get("/openapi.json")["paths"]
    text = (Path(__file__).parents[3] / "docs" / "operator.md").read_text()
    named = re.findall(r"`((?:GET|POST|DELETE)(?:`/`(?:GET|POST))?) (/[^`?]*)[^`]*`", text)
    assert len(named) > 25
    for methods, path in named:
        assert set(methods.lower().split("`/`")) <= paths[path].keys(), path


def test_numbers_of_the_last_hour_are_there_at_once_and_of_the_last_month_too(gateway, person):
    for _ in range(3):
        gateway.call("light_get", {"room": "hall"})
    trends = person.get("/api/trends")
    assert trends["totals"]["calls"] >= 3
    assert trends["totals"]["p50"] > 0
    assert trends["points"][-1]["calls"] + trends["points"][-2]["calls"] >= 3
    month = person.get("/api/trends?range=month&gateway=home")
    assert month["totals"]["calls"] == trends["totals"]["calls"]
    unknown = person.send("GET", "/api/trends?gateway=nobody")
    assert unknown.status == 400
    assert unknown.json["error"]["message"] == "There is no gateway 'nobody' here. There are: home"
    assert person.send("GET", "/api/trends?range=year").status == 400
    assert [one["source"] for one in trends["sources"]] == ["house"]


def test_a_source_is_disconnected_and_connected_by_its_servers_path(gateway, person):
    assert person.send("POST", "/servers/nothing/disconnect").status == 404
    assert person.send("POST", "/servers/nothing/connect").status == 404
    assert person.post("/servers/house/disconnect") == {"disconnected": "house"}
    [house] = person.get("/servers")
    assert (house["status"], house["reason"], house["tools"]) == (
        "disabled",
        "disconnected by operator",
        3,
    )
    refused = gateway.call("light_get", {"room": "hall"})
    assert refused.status == 503
    assert "disconnected by operator" in refused.json["error"]["message"]
    assert person.post("/servers/house/connect") == {"connecting": "house"}
    wait_until(lambda: person.get("/servers")[0]["status"] == "ready")
    assert gateway.call("light_get", {"room": "hall"}).status == 200
