"""A condition and a trait are each added where ARCHITECTURE.md says, and nowhere else, and then work everywhere."""

import json
import subprocess

import pytest
from tests.gateway import COMMAND
from tests.shape.program_copy import ProgramCopy, named_in_architecture

FEW = '''
"""`most_arguments: 2`: only calls with no more arguments than these."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent_gate.core.tool import Json
from agent_gate.policy.conditions.condition import Condition, ConditionKind, Misread


@dataclass(frozen=True, slots=True)
class FewArguments(Condition):
    most: int

    per_call = True

    def label(self) -> str:
        return f"with at most {self.most} arguments"

    def mismatch(self, arguments: Mapping[str, Json], *, allows: bool) -> str | None:
        return "there are too many arguments" if len(arguments) > self.most else None

    def wider(self, inner: Condition | None) -> bool:
        return isinstance(inner, FewArguments) and inner.most <= self.most


def parse(written: int) -> FewArguments:
    if written < 0:
        raise Misread("must be at least 0")
    return FewArguments(written)


MOST_ARGUMENTS = ConditionKind(
    key="most_arguments",
    doc="Only calls with no more arguments.",
    type=int,
    schema={"type": ["integer", "null"]},
    parse=parse,
)
'''
TRAIT = """    costly: Annotated[
        bool,
        Trait(hint="costlyHint", cautious=True, tool="It costs.", server="They cost.", rule="Only what costs."),
    ] = False
"""
CONFIG = """
services:
  shop: {url: "http://127.0.0.1:1", tools: shop.yaml}
"""
TOOLS = """
tools:
  look: {description: Look, args: {a: {type: string}, b: {type: string}}, request: {method: GET, path: /}}
  buy: {description: Buy, request: {method: POST, path: /}%s}
"""


@pytest.fixture
def program(tmp_path):
    return ProgramCopy(tmp_path / "program")


@pytest.fixture
def run(program, tmp_path):
    def run(*words, buy="", rules=""):
        (tmp_path / "config.yaml").write_text(CONFIG)
        (tmp_path / "shop.yaml").write_text(TOOLS % buy)
        (tmp_path / "permissions.yaml").write_text(rules)
        env = {"PATH": "/usr/bin", **program.env}
        return subprocess.run(
            [COMMAND, *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )

    return run


def add_condition(program):
    program.write("src/agent_gate/policy/conditions/most_arguments.py", FEW)
    registry = "src/agent_gate/policy/conditions/__init__.py"
    program.insert(registry, "    CALLERS,\n", "    MOST_ARGUMENTS,\n")
    program.insert(
        registry,
        "from agent_gate.policy.conditions.namespace import NAMESPACE\n",
        "from agent_gate.policy.conditions.most_arguments import MOST_ARGUMENTS\n",
    )


def test_a_condition_is_a_file_and_a_line_of_the_registry(program, run):
    add_condition(program)
    own, registry = named_in_architecture("a condition of rules")
    assert program.touched == [
        f"src/agent_gate/{own.replace('*', 'most_arguments')}",
        f"src/agent_gate/{registry}",
    ]
    rules = """
rules:
  - {pattern: "look*", action: allow, most_arguments: 1}
policy_tests:
  - {tool: look, args: {a: x}, expect: allow}
  - {tool: look, args: {a: x, b: y}, expect: ask}
"""
    checked = run("check", rules=rules)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_condition_of_ones_own_is_parsed_labelled_linted_and_in_the_schema(program, run):
    add_condition(program)
    refused = run("check", rules="rules:\n  - {pattern: look, action: allow, most_arguments: -1}\n")
    assert "permissions.yaml:2:52" in refused.stdout + refused.stderr
    assert "most_arguments: must be at least 0" in refused.stdout + refused.stderr
    shadowed = run(
        "check",
        rules="rules:\n"
        "  - {pattern: 'look*', action: deny, most_arguments: 2}\n"
        "  - {pattern: 'look*', action: deny, most_arguments: 1}\n",
    )
    assert "'deny look* with at most 1 arguments' never decides" in shadowed.stdout + shadowed.stderr
    rule = json.loads(run("schema", "permissions").stdout)["$defs"]["Rule"]
    assert rule["properties"]["most_arguments"]["description"] == "Only calls with no more arguments."


def test_a_trait_is_one_field(program, run):
    program.insert(
        "src/agent_gate/core/traits.py",
        '    """What a tool does to the world. `trusted` says whether an allow rule may rely on the benign ones."""\n\n',
        TRAIT,
    )
    assert program.touched == [f"src/agent_gate/{path}" for path in named_in_architecture("a trait")]
    rules = """
rules:
  - {pattern: "*", action: deny, costly: true}
  - {pattern: "*", action: allow, costly: false}
policy_tests:
  - {tool: look, expect: allow}
  - {tool: buy, expect: deny}
"""
    checked = run("check", buy=", costly: true", rules=rules)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert run("check", rules=rules).returncode != 0
    tool = json.loads(run("schema", "tools").stdout)["$defs"]["ToolDefinition"]
    assert tool["properties"]["costly"]["description"] == "It costs."
