"""The pipeline: the two lists that every call passes, joined by the record, and `Calls` made of them."""

from collections.abc import Callable, Mapping

from agent_gate.access.quota import Quota
from agent_gate.approval.grants import Grants
from agent_gate.approval.inbox import Inbox
from agent_gate.calls.admit import Admission, Decide, quota, resolve, validate
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
    PerformStage,
    Settle,
    Waiting,
    traced,
)
from agent_gate.calls.refusals import Refusals
from agent_gate.calls.shaping import Shaper, shape
from agent_gate.calls.sweeper import Sweeper
from agent_gate.core.call import Caller
from agent_gate.core.catalog import Shelf
from agent_gate.core.ports import Clock, Witness
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
    shaper: Shaper | None = None,
    tracer: Tracer | None = None,
    metrics: Metrics,
    redactor: Redactor,
    caller_now: Callable[[str], Caller | None] | None = None,
) -> Calls:
    """`Calls` with all its parts. `witnesses` are the sources that know what their calls act on, by key; `caller_now`
    finds the caller of a name as it is when an approved call runs."""
    counter, ahead, waiting = Quota(clock), Ahead(store), Waiting()
    decide = Decide(in_force, grants, metrics, witnesses, caller_now)
    settle = Settle(store, clock, ahead, metrics, redactor, in_force)

    admit = Admission(
        quota=quota(counter),
        resolve=resolve(shelf),
        validate=validate(in_force),
        decide=decide.stage,
    )
    perform: list[PerformStage] = [
        Claim(store, clock, ahead).stage,
        AskSource(sources, sweeper, clock, in_force).stage,
        shape(shaper, metrics),
        settle.stage,
    ]

    if tracer is not None:
        perform.append(traced(tracer, clock))
        inbox.subscribe_here(tracer.answered)
    refusals = Refusals(store, clock, metrics, redactor, tracer)
    performing = Performing(perform, waiting, settle.end_doubtful, shared=store.shared)
    asking = Asking(inbox, grants, shelf, clock, metrics, in_force, witnesses)
    calls = Calls(
        store=store,
        clock=clock,
        shelf=shelf,
        inbox=inbox,
        refusals=refusals,
        ahead=ahead,
        counter=counter,
        admission=admit,
        asking=asking,
        approved=ApprovedCalls(store, clock, shelf, asking, performing, waiting, decide.why_denied),
        performing=performing,
        waiting=waiting,
        traced=tracer is not None,
    )
    sweeper.run_every(EXPIRE, calls.expire_due)
    sweeper.run_every(FOLD, refusals.flush)
    sweeper.run_every(PURGE, calls.purge)
    sweeper.run_every(PURGE, lambda: purge_seen(store, clock.now()))
    return calls
