"""The stages that admit a call: no I/O but counters. Each refuses by raising, or adds its part to the draft."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from msgspec import structs

from agent_gate.access.quota import Quota
from agent_gate.approval.grants import Grants
from agent_gate.calls.in_force import InForce
from agent_gate.core.call import Call, Caller, Case, Decision, asked_for, hash_arguments
from agent_gate.core.catalog import Shelf, unknown_tool
from agent_gate.core.facts import beside, observe, signed_facts
from agent_gate.core.ports import Witness
from agent_gate.core.tool import Tool
from agent_gate.core.validate import check_known
from agent_gate.errors import Forbidden, InvalidArgs
from agent_gate.observe.metrics import Metrics
from agent_gate.policy import Subject

DENIED = "Denied by policy"
NONE: frozenset[str] = frozenset()


def refused_by(decision: Decision) -> Forbidden:
    """What a caller hears whose call a rule denies: why, where the rule says it."""
    return Forbidden(DENIED, details={"reason": decision.said} if decision.said else None)


class Draft:
    """A call on its way to becoming a case."""

    __slots__ = ("arguments_hash", "call", "decision", "facts", "signature", "tool")

    tool: Tool
    decision: Decision

    def __init__(self, call: Call) -> None:
        self.call = call
        self.signature = ""
        self.arguments_hash = ""
        self.facts: Mapping[str, str] | None = None

    @property
    def known_tool(self) -> Tool | None:
        """Its tool; None for a call that was refused before one was found."""
        return getattr(self, "tool", None)

    @property
    def known_decision(self) -> Decision | None:
        """What the rules said; None for a call that was refused before they were asked."""
        return getattr(self, "decision", None)

    def case(self) -> Case:
        return Case(
            call=self.call,
            tool=self.tool,
            signature=self.signature,
            decision=self.decision,
            arguments_hash=self.arguments_hash,
            definition_hash=self.tool.pin,
            facts=self.facts,
        )


AdmitStage = Callable[[Draft], None]


class Admission(NamedTuple):
    """The stages in their order. A caller's call passes all of them; what the gateway or a person at the page calls is
    not counted, and is not for the rules to allow."""

    quota: AdmitStage
    resolve: AdmitStage
    validate: AdmitStage
    decide: AdmitStage


def quota(counter: Quota) -> AdmitStage:
    """Refuse a caller that calls too often."""

    def stage(draft: Draft) -> None:
        counter.take(draft.call.caller)

    return stage


def resolve(shelf: Shelf) -> AdmitStage:
    """Find the one tool the caller means; unknown and out of sight answer the same."""

    def stage(draft: Draft) -> None:
        call, catalog = draft.call, shelf.catalog
        name, caller = call.tool, call.caller
        tool = catalog.names.get(name) if not call.reads else catalog.reads.get(name)
        if tool is None or (caller.namespaces is not None and not caller.sees(tool.namespace)):
            renewed = catalog.renewed(name)
            seen = renewed is not None and caller.sees(renewed.namespace)
            raise unknown_tool(name, renewed if seen else None)
        draft.tool = tool

    return stage


def validate(in_force: InForce) -> AdmitStage:
    """Fill in declared defaults, then check the arguments against the tool's schema."""

    def stage(draft: Draft) -> None:
        tool, call = draft.tool, draft.call
        if tool.defaults and not tool.defaults.keys() <= call.arguments.keys():
            filled = (
                NONE if tool.definition.strict else frozenset(tool.defaults.keys() - call.arguments.keys())
            )
            arguments = {**tool.defaults, **call.arguments}
            draft.call = call = structs.replace(call, arguments=arguments, filled=filled)
        try:
            tool.validate(call.arguments)
            if call.mode != "full" and not call.reads:
                check_known(tool, call.arguments)
        except InvalidArgs:
            # What is hidden from a caller tells it nothing of its arguments.
            hidden = in_force.terms.policy.against_every_call(
                tool, call.caller.name, call.caller.person, call.caller.groups
            )
            if hidden is None:
                raise
            raise refused_by(hidden) from None

    return stage


class Decide:
    """Sign the call once, ask the policy in force, and let a grant turn *ask* into *allow*."""

    def __init__(
        self,
        in_force: InForce,
        grants: Grants,
        metrics: Metrics,
        witnesses: Mapping[str, Witness],
        caller_now: Callable[[str], Caller | None] | None,
    ) -> None:
        self._in_force, self._grants, self._witnesses = in_force, grants, witnesses
        self._caller_now, self._decisions = caller_now, metrics.decisions

    def stage(self, draft: Draft) -> None:
        call, tool = draft.call, draft.tool
        shown, caller = call.arguments, call.caller
        if self._witnesses and (witness := self._witnesses.get(tool.source)) is not None:
            draft.facts = observe(witness, tool, call)
            shown = beside(shown, signed_facts(draft.facts)) if tool.definition.template else shown
        draft.signature = tool.sign(shown)
        decision = self._in_force.terms.policy.decide(
            Subject(
                tool,
                call.arguments,
                draft.signature,
                caller.name,
                draft.facts,
                caller.person,
                caller.groups,
            )
        )
        draft.decision = decision
        effect = decision.effect
        counted = self._decisions.cells.get((effect, decision.rule))
        if counted is None:
            counted = self._decisions.cell(effect, decision.rule)
        counted[0] += 1
        if effect == "deny":
            raise refused_by(decision)
        if effect == "ask" or call.idempotency_key is not None:
            draft.arguments_hash = hash_arguments(call.arguments, draft.facts)
        if effect == "ask":
            draft.decision = asked_for(decision, caller.person)
            self._look_for_grant(draft)
        if draft.decision.effect == "ask" and call.continues:
            draft.decision = replace(
                draft.decision, effect="allow", reason="a further round of an approved call"
            )

    def why_denied(self, case: Case) -> Forbidden | None:
        """What stands now against a call that was decided before: its agent lost its access, or a rule denies it."""
        call = case.call
        who = call.caller
        caller: Caller | None = who
        if self._caller_now is not None and who.kind != "operator":
            caller = self._caller_now(who.name)
        if caller is None or not caller.sees(case.tool.namespace):
            return Forbidden(DENIED)
        subject = Subject(
            case.tool, call.arguments, case.signature, who.name, case.facts, who.person, who.groups
        )
        decision = self._in_force.terms.policy.decide(subject)
        return refused_by(decision) if decision.effect == "deny" else None

    def _look_for_grant(self, draft: Draft) -> None:
        call, tool = draft.call, draft.tool
        if draft.decision.count > 1:
            return
        grant = self._grants.find(
            call.caller.name,
            tool.id,
            draft.arguments_hash,
            tool.pin,
            call.session,
            draft.decision.approvers,
        )
        if grant is not None:
            self._grants.note_use(grant.id)
            reason = f"granted by {grant.created_by}"
            draft.decision = replace(draft.decision, effect="allow", grant=grant.id, reason=reason)


def admit(admission: Admission, draft: Draft) -> Case:
    for stage in admission:
        stage(draft)
    return draft.case()
