"""What needs a person beside questions: one entry per cause, each with what to do about it."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from agent_gate.core.source_state import DefinitionChange, SourceState
from agent_gate.peers.records import Peer
from agent_gate.surfaces.admin.admin import Admin

Need = dict[str, Any]
TROUBLED = {
    "failed": "cannot be reached",
    "degraded": "has trouble",
    "needs_auth": "needs a sign-in",
}
NOT_RUNNING = "does not run"
TERMINAL_ADVICE = "`agent-gate auth"
"""In the reason of a source that nobody has connected yet: what to type, where the page has a button."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A kind of trouble, recognised by the words of its reason; `fix` says what mends it."""

    kind: str
    words: re.Pattern[str]
    fix: str


CAUSES = (
    Cause(
        "credential",
        re.compile(r"credential|\b401\b|\b403\b|unauthori[sz]ed|forbidden|api key", re.IGNORECASE),
        "Give it a credential that is taken: set the secret that its entry names, or sign in under Accounts. "
        "Then try again.",
    ),
    Cause(
        "program",
        re.compile(
            r"cannot be started|not found on PATH|does not exist|no such file|exited with|last words|is not installed",
            re.IGNORECASE,
        ),
        "Install the program, or correct its command in the configuration. Its last words say what it missed.",
    ),
    Cause(
        "address",
        re.compile(
            r"refused|unreachable|reach|timed out|within \S+ s\b|resolve|name or service|certificate|no route",
            re.IGNORECASE,
        ),
        "See that it runs and that its address is right. It is tried again by itself.",
    ),
)
OTHER = "Its reason says what is wrong. It is tried again by itself."
SIGN_IN = "Its calls are refused until somebody signs in."
RELOAD = "Correct the line that is named. The configuration before it counts until then."
CHANGED = "Compare the definitions, and accept the new one only if you meant it."
HELD = "Agents still see what you accepted; their calls are checked against it, and run at the source as it is now."
SERVED = "Agents see the new definition already. With `pin: hold` in its entry they see what you accepted."
WARNING = "Nothing is broken. Correct the file when you have time."


def need(
    problem: str,
    reason: str,
    page: str,
    *,
    kind: str,
    fix: str,
    act: tuple[str, str] | None = None,
    since: float | None = None,
    sources: Sequence[str] = (),
) -> Need:
    """One thing to do: what is wrong, why, what mends it, where to look, and the button (label and POST path) for it."""
    action = {"label": act[0], "path": act[1]} if act else None
    return {
        "problem": problem,
        "reason": reason,
        "page": page,
        "action": action,
        "kind": kind,
        "fix": fix,
        "since": since,
        "sources": list(sources),
    }


def part(key: str) -> str:
    """A source's key as one part of a path."""
    return quote(key, safe="")


def mending(state: SourceState, secrets: Sequence[str]) -> dict[str, str]:
    """The kind of a source's trouble and what mends it; both are empty for one that is well."""
    kind, fix = cause(state.reason) if state.status in TROUBLED else ("", "")
    if state.status == "needs_auth":
        kind, fix = ("credential", replacing(secrets)) if secrets else ("sign_in", "")
    return {"trouble": kind, "fix": fix}


def replacing(secrets: Sequence[str]) -> str:
    return f"Replace {' or '.join(secrets)}. It is tried again at once."


def cause(reason: str) -> tuple[str, str]:
    """The kind of this trouble, and its fix."""
    found = next((one for one in CAUSES if one.words.search(reason)), None)
    return (found.kind, found.fix) if found else ("source", OTHER)


def needs(admin: Admin, kept: Collection[str]) -> Iterator[Need]:
    """Everything that is not as it should be, worst first. `kept` are the names of the secrets that are set."""
    store, configuration = admin.record.store, admin.setup.configuration
    if store.fault:
        fix = "Free space or mend the disk; calls are let through again by themselves."
        yield need(
            "Calls are refused: the store cannot be written", store.fault, "health", kind="store", fix=fix
        )
    if configuration.fault:
        yield need(
            "The new configuration is not used",
            configuration.fault,
            "policy",
            kind="reload",
            fix=RELOAD,
            act=("Reload", "/api/reload"),
        )
    for channel, why in admin.setup.channel_faults().items():
        fix = f"Look at the entry of {channel} under channels, and whether its service can be reached."
        yield need(f"Questions do not get through to {channel}", why, "approvals", kind="channel", fix=fix)
    troubles = list(troubled(admin.sources.states(), keyed(admin)))
    yield from troubles
    yield from changed(admin.sources.changes())
    yield from unset(admin.secrets.uses(), kept, troubles)
    yield from ended(admin.peering.known(), admin.clock.now())
    for warning in admin.setup.warnings():
        yield need("The configuration has a warning", warning, "policy", kind="warning", fix=WARNING)


def keyed(admin: Admin) -> dict[str, list[str]]:
    """The secrets of each source whose credential is one, and not a sign-in."""
    signing = {one.source for one in admin.secrets.sign_ins.all()}
    found: dict[str, list[str]] = {}
    for name, users in admin.secrets.uses().items():
        for key in users:
            if key not in signing:
                found.setdefault(key, []).append(name)
    return found


def troubled(states: Iterable[SourceState], secrets: Mapping[str, Sequence[str]]) -> Iterator[Need]:
    """The sources that are not well; those with the very same reason are one entry."""
    alike: dict[tuple[str, str], list[SourceState]] = {}
    for state in states:
        if state.status in TROUBLED:
            alike.setdefault((str(state.status), state.reason or state.key), []).append(state)
    for (status, _), group in alike.items():
        yield source_need(status, group, secrets.get(group[0].key, ()))


def secret_need(state: SourceState, secrets: Sequence[str]) -> Need:
    """A source that a secret of the vault does not open."""
    return need(
        f"{state.title or state.key} does not take its credential",
        state.reason,
        f"sources/{part(state.key)}",
        kind="credential",
        fix=replacing(secrets),
        since=state.broken_since or state.since or None,
        sources=[state.key],
    )


def source_need(status: str, group: Sequence[SourceState], secrets: Sequence[str]) -> Need:
    first = group[0]
    if status == "needs_auth" and secrets:
        return secret_need(first, secrets)
    names = ", ".join(state.title or state.key for state in group)
    kind, fix = cause(first.reason)
    trouble = NOT_RUNNING if (status, kind) == ("failed", "program") else TROUBLED[status]
    said = (
        trouble
        if len(group) == 1
        else trouble.replace("needs", "need").replace("does", "do").replace("has", "have")
    )
    keys, since = (
        [state.key for state in group],
        min(state.broken_since or state.since for state in group) or None,
    )
    if status == "needs_auth":
        page = f"accounts/{part(first.key)}"
        reason = "" if TERMINAL_ADVICE in first.reason else first.reason
        return need(f"{names} {said}", reason, page, kind="sign_in", fix=SIGN_IN, since=since, sources=keys)
    again = ("Try now", f"/api/sources/{part(first.key)}/connect") if len(group) == 1 else None
    return need(
        f"{names} {said}",
        first.reason,
        f"sources/{part(first.key)}",
        kind=kind,
        fix=fix,
        act=again,
        since=since,
        sources=keys,
    )


def unset(
    uses: Mapping[str, Sequence[str]], kept: Collection[str], troubles: Sequence[Need] = ()
) -> Iterator[Need]:
    """The secrets that something refers to and nobody has set; where a trouble says so already, that is the entry."""
    told = {key for one in troubles if one["kind"] == "credential" for key in one["sources"]}
    for name, users in sorted(uses.items()):
        if name not in kept and not told.issuperset(users):
            yield need(
                f"The secret {name} is not set",
                f"Used by {', '.join(users)}.",
                f"secrets/{part(name)}",
                kind="secret",
                fix="Set it under Secrets. Whoever uses it is connected anew.",
                sources=users,
            )


def ended(peers: Iterable[Peer], now: float) -> Iterator[Need]:
    """The paired machines that are turned away because their certificate is over."""
    for peer in peers:
        if peer.status == "active" and 0 < peer.not_after <= now:
            yield need(
                f"The certificate of {peer.name} has ended",
                "It is turned away until it is paired again.",
                f"peers/{part(peer.name)}",
                kind="certificate",
                fix="Pair it again, or revoke it under Peers.",
                since=peer.not_after,
            )


def changed(changes: Iterable[DefinitionChange]) -> Iterator[Need]:
    """The changed definitions of a source are one entry: a person looks at them together."""
    by_source: dict[str, list[DefinitionChange]] = {}
    for change in changes:
        by_source.setdefault(change.source, []).append(change)
    for source, found in by_source.items():
        first = found[0]
        problem = (
            f"{first.tool} of {source} is not what you accepted"
            if len(found) == 1
            else f"{len(found)} tools of {source} are not what you accepted"
        )
        reason = HELD if all(one.held for one in found) else SERVED
        since = min(one.changed_at for one in found)
        yield need(
            problem,
            reason,
            f"sources/{part(source)}",
            kind="definition",
            fix=CHANGED,
            since=since,
            sources=[source],
        )
