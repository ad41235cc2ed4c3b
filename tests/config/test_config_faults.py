"""Somebody with five mistakes in their files reads five lines."""

from pathlib import Path

from agent_gate.cli.commands.check import check

CONFIG = """\
gateway: {port: "x", host: 5}
agents:
  a: {token: ""}
  b: {tokn: 0123456789abcdef}
people: {anna: {role: king}}
channels: [{type: pigeon}, {type: raven}]
servers:
  one: {command: x, url: "http://x"}
  two:
  three: {commnd: x, argz: []}
hosts: {pi: {nonsense: 1}, pa: {nonsense: 1}}
services:
  web:
    url: http://127.0.0.1:1
    tools:
      t1: {request: {method: GET, path: relative}}
      t2: {args: {a: {type: nope}, b: {type: nope}}, request: {method: GET, path: /}}
"""
PERMISSIONS = """\
rules:
  - {pattern: x, action: permit}
  - {action: allow}
defaults:
  - {pattern: x, action: permit}
policy_tests:
  - {tool: x}
"""


def test_every_entry_and_every_key_gives_its_own_fault(write) -> None:
    write("permissions.yaml", PERMISSIONS)
    faults, _ = check(write("config.yaml", CONFIG), None)
    found = {fault.message.split(": ")[1] for fault in faults}
    assert found == {
        *("gateway.port", "gateway.host", "agents.a.token", "agents.b.tokn", "people.anna.role"),
        *("channels[0].type", "channels[1].type", "hosts.pi.nonsense", "hosts.pa.nonsense"),
        *("servers.one", "servers.two", "servers.three.commnd", "servers.three.argz"),
        *("services.web.tools.t1.request.path", "services.web.tools.t2.args.a.type"),
        *("services.web.tools.t2.args.b.type", "rules[0].action", "rules[1]", "defaults[0].action"),
        "policy_tests[0]",
    }
    assert len(faults) == len(found)
    assert all(fault.message.startswith(fault.where) for fault in faults)
    assert {Path(fault.where.split(":")[0]).name for fault in faults} == {"config.yaml", "permissions.yaml"}


def test_a_setting_that_is_read_twice_is_told_once(write) -> None:
    [fault] = check(write("config.yaml", "rate_limit: {max_requests_per_minute: many}\n"), None)[0]
    assert "rate_limit.max_requests_per_minute" in fault.message
