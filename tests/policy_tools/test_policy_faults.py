"""Rules that refuse nothing, and expectations that fail, in a gateway that runs."""

import pytest
from tests import nursery
from tests.gateway import COMMAND, running
from tests.policy_tools.conftest import CONFIG, PERMISSIONS, TOOLS
from tests.waiting import PATIENCE

EXPECTED = "policy_tests: [{tool: erase, args: {name: all}, caller: pi, expect: deny}]\n"
TYPO = PERMISSIONS.replace("erase(all)", "eraze(all)")


def warned(gate):
    needs = gate.admin.get("/api/now")["needs"]
    shown = [need["reason"] for need in needs if need["problem"] == "The configuration has a warning"]
    assert shown == gate.admin.get("/api/status")["warnings"]
    return shown


def test_a_reload_that_makes_an_expectation_fail_is_refused(gate):
    path = gate.folder / "permissions.yaml"
    path.write_text(PERMISSIONS + EXPECTED)
    gate.admin.request("POST", "/api/reload", {})
    path.write_text(TYPO + EXPECTED)
    with pytest.raises(Exception, match=r"policy test: erase\(all\) is ask, expected deny"):
        gate.admin.request("POST", "/api/reload", {})
    assert "permissions.yaml:8" in gate.admin.get("/api/status")["reload_fault"]
    assert gate.call("erase", {"name": "all"}, wait=5).status == 403
    path.write_text(PERMISSIONS + EXPECTED)
    gate.admin.request("POST", "/api/reload", {})
    assert gate.admin.get("/api/status")["reload_fault"] is None


def test_a_start_with_a_failing_expectation_says_so_everywhere_and_serves(tmp_path, api):
    files = {"config.yaml": CONFIG.format(api=api.url), "tools.yaml": TOOLS}
    with running(tmp_path, files | {"permissions.yaml": TYPO + EXPECTED}, "--insecure") as gate:
        dead, failing = warned(gate)
        assert "'deny eraze(all)' matches no tool" in dead
        assert "policy test: erase(all) is ask, expected deny" in failing
        assert "eraze(all)" in gate.stderr
        assert "erase(all) is ask, expected deny" in gate.stderr
        command = [COMMAND, "status", "--admin-socket", gate.announced["socket"]]
        said = nursery.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
        assert f"Warning: {dead}" in said
        # What failed before is no reason to refuse another change.
        (gate.folder / "permissions.yaml").write_text(TYPO + EXPECTED + "# a remark\n")
        gate.admin.request("POST", "/api/reload", {})
        assert gate.call("light", {"name": "kitchen", "state": "on"}, wait=5).status == 200


def test_a_rule_that_refuses_nothing_is_a_warning_from_the_reload_on(gate):
    assert warned(gate) == []
    (gate.folder / "permissions.yaml").write_text(TYPO)
    told = gate.admin.request("POST", "/api/reload", {})["warnings"]
    assert told == warned(gate)
    assert "'deny eraze(all)' matches no tool; tools are named like erase" in told[0]
    assert "eraze(all)" in gate.stderr


def test_a_rule_for_a_server_that_is_not_connected_yet_has_no_fault_on_the_page(tmp_path, api):
    config = CONFIG.format(api=api.url) + "mcpServers: {away: {command: /bin/false}}\n"
    rules = 'rules:\n  - {pattern: "away__read(*)", action: deny}\n  - {pattern: "nowhere__read(*)", action: deny}\n'
    files = {"config.yaml": config, "tools.yaml": TOOLS, "permissions.yaml": rules}
    with running(tmp_path, files, "--insecure") as gateway:
        found = {rule["line"]: rule["faults"] for rule in gateway.admin.get("/api/policy")["rules"]}
    assert found[2] == []
    assert "matches no tool" in found[3][0]
