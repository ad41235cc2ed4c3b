"""Facts: what a source knows of a call beyond its arguments, and that it still holds when the call acts.

A tool like `click(ref=e12)` means whatever the page shows at that place. Where a source is a `Witness`, its words are
part of what a person approves, and a call that would act on something else is refused.
"""

import logging
from collections.abc import Mapping

from agent_gate.core.call import Call, Case
from agent_gate.core.ports import Witness
from agent_gate.core.signature import safe
from agent_gate.core.tool import Json, Tool
from agent_gate.errors import DependencyUnavailable, Forbidden, GatewayError, InvalidArgs

log = logging.getLogger("agent_gate.calls")
PREFIX = "facts."
"""Before the name of a fact, in templates and where people see it; no argument can be named so."""
CHANGED = (
    "What this call would act on is not what it was when it was decided on: {names} changed. "
    "Nothing was sent. Look again, and call anew"
)


def observe(witness: Witness, tool: Tool, call: Call) -> Mapping[str, str]:
    """What the source knows of this call now."""
    taken = next((name for name in call.arguments if name.startswith(PREFIX)), None)
    if taken is not None:
        raise InvalidArgs(f"{tool.wire} takes no argument {taken[:64]!r}: names like it are for facts")
    try:
        return dict(witness.facts(tool, call))
    except GatewayError:
        raise
    except Exception as error:
        log.exception("The source %s cannot say what a call is about", tool.source)
        raise DependencyUnavailable(
            f"{tool.source} cannot say what this call would act on; the gateway's log says why. Nothing was sent"
        ) from error


def named(facts: Mapping[str, str] | None) -> dict[str, str]:
    """The facts under the names by which templates and people know them."""
    return {f"{PREFIX}{name}": value for name, value in facts.items()} if facts else {}


def beside(arguments: Mapping[str, Json], facts: Mapping[str, str] | None) -> Mapping[str, Json]:
    """What a template can name: the arguments, and the facts where there are some."""
    return {**arguments, **named(facts)} if facts else arguments


def signed_facts(facts: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """The facts as a signature may show them: they are others' words, and none can pass for a separator."""
    return {name: safe(value) for name, value in facts.items()} if facts else facts


def check_facts(witness: Witness | None, case: Case) -> None:
    """Raise `Forbidden` where the call would act on something else than was decided on."""
    now = observe(witness, case.tool, case.call) if witness is not None else {}
    then = case.facts or {}
    changed = sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
    if changed:
        raise Forbidden(CHANGED.format(names=", ".join(changed)[:200]))
