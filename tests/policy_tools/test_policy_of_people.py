"""`explain` and `policy simulate` go by whom an agent works for, and by that person's groups."""

import json

import pytest
from tests.gateway import COMMAND, OTHER_TOKEN, TOKEN, running
from tests.nursery import run
from tests.policy_tools.conftest import CONFIG, TOOLS

AGENTS = f"""agents:
  pi: {{{{token: {TOKEN}, person: anna}}}}
  coder: {{{{token: {OTHER_TOKEN}, person: bob}}}}
people: {{{{anna: {{{{login: anna, groups: [sre]}}}}, bob: {{{{login: bob}}}}}}}}"""
RULES = """\
rules:
  - {pattern: "light(hall, *)", action: allow, groups: [sre]}
  - {pattern: "erase(*)", action: deny, people: [bob]}
defaults: [{pattern: "*", action: ask}]
"""
OTHERS = """\
rules:
  - {pattern: "light(hall, *)", action: allow, people: [bob]}
defaults: [{pattern: "*", action: ask}]
"""


@pytest.fixture(scope="module")
def gate(tmp_path_factory, api):
    head, _, tail = CONFIG.partition("agents:")
    config = f"{head}{AGENTS}{tail[tail.index(chr(10)) :]}".format(api=api.url)
    files = {"config.yaml": config, "tools.yaml": TOOLS, "permissions.yaml": RULES}
    with running(tmp_path_factory.mktemp("people"), files, "--insecure") as gateway:
        yield gateway


def said(gate, *words):
    done = run([COMMAND, *words, "--json"], cwd=gate.folder, capture_output=True, text=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("how", [(), ("--offline",)], ids=["asked", "offline"])
def test_a_call_is_explained_by_the_person_and_the_groups_behind_its_agent(gate, how):
    hall = ("explain", "light", "name=hall", "state=on", "--config", "config.yaml", *how)
    assert said(gate, *hall, "--as", "pi")["effect"] == "allow"
    told = said(gate, *hall, "--as", "coder")
    assert told["effect"] == "ask"
    assert "the caller is in no group" in [rule["why"] for rule in told["considered"]]
    erase = ("explain", "erase", "name=all", "--config", "config.yaml", *how)
    assert [said(gate, *erase, "--as", name)["effect"] for name in ("pi", "coder")] == ["ask", "deny"]


def test_recorded_calls_are_tried_again_as_those_of_their_people(gate):
    for token in (TOKEN, OTHER_TOKEN):
        gate.call("light", {"name": "hall", "state": "on"}, token=token, wait=0)
    (gate.folder / "others.yaml").write_text(OTHERS)
    socket = ("--admin-socket", gate.announced["socket"])
    found = run(
        [COMMAND, "policy", *socket, "simulate", "others.yaml", "--json"],
        cwd=gate.folder,
        capture_output=True,
        text=True,
    )
    report = json.loads(found.stdout)
    changes = {(one["caller"], one["before"], one["after"]) for one in report["differences"]}
    assert changes == {("pi", "allow", "ask"), ("coder", "ask", "allow")}
