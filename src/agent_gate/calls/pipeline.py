"""The pipeline: the two lists that every call passes, joined by the record, and `Calls` made of them."""

from collections.abc import Callable, Mapping

from agent_gate.access.quota import Quota
from agent_gate.approval.grants import Grants
from agent_gate.approval.inbox import Inbox
from agent_gate.calls.admit import DENIED, Decide, quota, resolve, validate
from agent_gate.calls.admit import Stage as AdmitStage
from agent_gate.calls.approved import ApprovedCalls
from agent_gate.calls.asking import Asking
from agent_gate.calls.calls import Calls
from agent_gate.calls.entries import Ahead
from agent_gate.calls.in_force import InForce
from agent_gate.calls.perform import (
    Answering,
    AskSource,
    Claim,
    Performing,
    Settle,
    Waiting,
    traced,
)
from agent_gate.calls.perform import Stage as PerformStage
from agent_gate.calls.refusals import Refusals
from agent_gate.calls.shaping import Shaping, shape
from agent_gate.calls.sweeper import Sweeper
from agent_gate.core.call import Caller, Case
from agent_gate.core.catalog import Shelf
from agent_gate.core.ports import Clock, Witness
from agent_gate.errors import Forbidden
from agent_gate.observe.metrics import Metrics
from agent_gate.observe.redact import Redactor
from agent_gate.observe.trace import Tracer
from agent_gate.results.seen import purge_seen
from agent_gate.store.statement import Store

EXPIRE, FOLD, PURGE = 0.25, 10.0, 3600.0
NO_WITNESSES: Mapping[str, Witness] = {}


def make_calls(
    *,
    store: Store,
    clock: Clock,
    shelf: Shelf,
    inbox: Inbox,
    grants: Grants,
    sources: Mapping[str, Answering],
    witnesses: Mapping[str, Witness] = NO_WITNESSES,
    sweeper: Sweeper,
    in_force: InForce,
    shaper: Shaping | None = None,
    tracer: Tracer | None = None,
    metrics: Metrics,
    redactor: Redactor,
    caller_now: Callable[[str], Caller | None] | None = None,
) -> Calls:
    """`Calls` with all its parts. `witnesses` are the sources that know what their calls act on, by key; `caller_now`
    finds the caller of a name as it is when an approved call runs."""
    counter = Quota(clock)
    count, decide, ahead = quota(counter), Decide(in_force, grants, metrics, witnesses), Ahead(store)
    refusals = Refusals(store, clock, metrics, redactor, tracer)

    admit: list[AdmitStage] = [count, resolve(shelf), validate(in_force), decide.stage]

    settle = Settle(store, clock, ahead, metrics, redactor, in_force)
    perform: list[PerformStage] = [
        Claim(store, clock, ahead).stage,
        AskSource(sources, sweeper, clock, in_force).stage,
        shape(shaper, metrics),
        settle.stage,
    ]
    if tracer is not None:
        perform.append(traced(tracer, clock))
        inbox.subscribe_here(tracer.answered)

    def why_denied(case: Case) -> Forbidden | None:
        """Why what a person approved may not run: its agent lost its access, or a deny rule came since."""
        caller: Caller | None = case.call.caller
        if caller_now is not None and case.call.caller.kind != "operator":
            caller = caller_now(case.call.caller.name)
        if caller is None or not caller.sees(case.tool.namespace):
            return Forbidden(DENIED)
        return decide.why_denied(case)

    waiting = Waiting()
    performing = Performing(perform, waiting, settle.end_doubtful, shared=store.shared)
    asking = Asking(inbox, grants, shelf, clock, metrics, in_force, witnesses)
    approved = ApprovedCalls(store, clock, shelf, asking, performing, waiting, why_denied)
    calls = Calls(
        store=store,
        clock=clock,
        shelf=shelf,
        inbox=inbox,
        refusals=refusals,
        ahead=ahead,
        counter=counter,
        quota=count,
        admit_stages=admit,
        asking=asking,
        approved=approved,
        performing=performing,
        waiting=waiting,
        traced=tracer is not None,
    )
    sweeper.run_every(EXPIRE, calls.expire_due)
    sweeper.run_every(FOLD, refusals.flush)
    sweeper.run_every(PURGE, calls.purge)
    sweeper.run_every(PURGE, lambda: purge_seen(store, clock.now()))
    return calls
