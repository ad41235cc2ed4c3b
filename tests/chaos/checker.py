"""The checker: what the outside saw against what the record says, over all chains of one store.

Each function gives what is wrong, so that an empty answer is the good one. `find_problems` asks them all.
"""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_gate.core.call import State

Story = list[dict[str, Any]]
Stories = Mapping[str, Story]
PATIENCE = 10.0
FINAL = {state.value for state in State if state.final}


@dataclass
class Seen:
    """What the outside knows, whatever the inside says. Numbers are those of the calls' arguments, the rest are ids of
    calls whose answer was acknowledged."""

    executed: set[int] = field(default_factory=set)
    approved: set[str] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)
    kills: Counter = field(default_factory=Counter)


def stories(admin) -> dict[str, Story]:
    """Every call's rows, in order, from the exported record of all chains."""
    found = defaultdict(list)
    for line in admin.get("/api/audit/export").splitlines():
        row = json.loads(line)
        row["body"] = json.loads(row["body"]) if isinstance(row["body"], str) else row["body"]
        found[row["call"]].append(row)
    return {call: sorted(rows, key=lambda row: row["step"]) for call, rows in found.items()}


def number(story: Story) -> int | None:
    return (story[0]["body"].get("arguments") or {}).get("n")


def states(story: Story) -> list[str]:
    return [row["state"] for row in story]


def find_unended(found: Stories) -> dict[str, str]:
    return {call: story[-1]["state"] for call, story in found.items() if story[-1]["state"] not in FINAL}


def find_repeated(ledger: Counter) -> dict[int, int]:
    """What reached the world more than once."""
    return {n: count for n, count in ledger.items() if count > 1}


def find_undecided(found: Stories, ledger: Counter) -> list[int]:
    """What reached the world though no row says that it may."""
    decided = {number(story) for story in found.values() if was_let_go(story)}
    return [n for n in ledger if n not in decided]


def was_let_go(story: Story) -> bool:
    allowed = story[0]["body"].get("decision") == "allow" or "approved" in states(story)
    return "dispatching" in states(story) and allowed


def find_lost_approvals(found: Stories, seen: Seen) -> list[str]:
    """Calls whose approval was acknowledged and is not in the record, or which never came to an end."""
    ends = ("completed", "unknown", "failed")
    lost = []
    for call in seen.approved:
        told = states(found.get(call, []))
        if "approved" not in told or told[-1] not in ends:
            lost.append(f"{call}: {told}")
    return lost


def find_false_ends(found: Stories, ledger: Counter) -> list[int | None]:
    """Calls that the record says were completed and that did not reach the world once."""
    done = [number(story) for story in found.values() if story[-1]["state"] == "completed"]
    return [n for n in done if ledger[n] != 1]


def find_denied_that_ran(found: Stories, ledger: Counter, seen: Seen) -> list[str]:
    wrong = []
    for call in seen.denied:
        story = found.get(call, [])
        if not story or states(story)[-1] != "denied" or ledger[number(story)]:
            wrong.append(f"{call}: {states(story)}")
    return wrong


def find_lost_results(found: Stories, ledger: Counter, seen: Seen) -> list[int]:
    """What an agent saw executed and that is not in the world once, or of which the record knows no dispatch."""
    dispatched = {number(story) for story in found.values() if "dispatching" in states(story)}
    return [n for n in seen.executed if ledger[n] != 1 or n not in dispatched]


def find_double_claims(found: Stories) -> dict[str, list[str]]:
    """Calls that more than one gateway dispatched, or that ended more than once."""
    told = {call: states(story) for call, story in found.items()}
    return {
        call: rows
        for call, rows in told.items()
        if rows.count("dispatching") > 1 or sum(state in FINAL for state in rows) > 1
    }


def find_gaps(found: Stories) -> list[str]:
    """Chains whose rows are not numbered from one on without a gap."""
    chains: defaultdict[str, list[int]] = defaultdict(list)
    for story in found.values():
        for row in story:
            chains[row["chain"]].append(row["seq"])
    return [chain for chain, rows in chains.items() if sorted(rows) != list(range(1, len(rows) + 1))]


def chains_of(found: Stories) -> set[str]:
    return {row["chain"] for story in found.values() for row in story}


def settled_stories(admin, patience: float) -> dict[str, Story]:
    """Every call's rows once all have ended: an outcome rides on the next commit, after its agent was told."""
    ends = time.monotonic() + patience
    while find_unended(found := stories(admin)) and time.monotonic() < ends:
        time.sleep(0.1)
    return found


def find_problems(
    admins: Iterable[Any], ledger: Counter, seen: Seen, patience: float = PATIENCE
) -> dict[str, Any]:
    """What is wrong with the record that these gateways share, by what each check calls it; and each verifies all chains."""
    admins = list(admins)
    found = settled_stories(admins[0], patience)
    checks = {
        "never ended": find_unended(found),
        "ran twice": find_repeated(ledger),
        "ran undecided": find_undecided(found, ledger),
        "approval lost": find_lost_approvals(found, seen),
        "completed without running": find_false_ends(found, ledger),
        "denied and ran": find_denied_that_ran(found, ledger, seen),
        "result lost": find_lost_results(found, ledger, seen),
        "claimed twice": find_double_claims(found),
        "gaps": find_gaps(found),
        "chains": [problem for admin in admins for problem in admin.get("/api/audit/verify")["problems"]],
    }
    return {name: wrong for name, wrong in checks.items() if wrong}
