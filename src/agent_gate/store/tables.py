"""The tables of the store, each with its owner: the one folder whose code writes it, so that nobody else need know it.

`readers` are the modules elsewhere that speak of it, each with a reason to be there.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoreTable:
    name: str
    owner: str
    holds: str
    readers: tuple[str, ...] = ()


TABLES = (
    StoreTable(
        "record",
        "audit",
        "what became of every call: a row for each of its states, chained",
        readers=(
            *(
                "approval/earlier.py",
                "approval/sealed.py",
                "calls/calls.py",
                "calls/events.py",
                "cli/commands/backup.py",
            ),
            *("store/postgres.py", "store/sqlite.py"),
        ),
    ),
    StoreTable("seals", "audit", "the ends of the record that were sealed"),
    StoreTable("approvals", "approval", "questions to people, with the calls that they are about"),
    StoreTable("grants", "approval", "answers that are remembered"),
    StoreTable("deliveries", "approval/channels", "which question was sent to which channel"),
    StoreTable("pictures", "approval", "what a person sees beside a question"),
    StoreTable(
        "results",
        "results",
        "results kept for callers who are away",
        readers=("approval/earlier.py",),
    ),
    StoreTable("artifacts", "results", "results too large for their callers"),
    StoreTable(
        "idempotency",
        "calls",
        "which call came first with an idempotency key",
        readers=("results/kept.py",),
    ),
    StoreTable("tokens", "access", "tokens of agents, operators and logins, as hashes"),
    StoreTable("vault_keys", "vault", "the keys that secrets are sealed under, themselves sealed"),
    StoreTable("vault", "vault", "secrets and accounts, sealed", readers=("approval/sealed.py",)),
    StoreTable("peers", "peers", "components that were paired"),
    StoreTable("peer_certificates", "peers", "every certificate that was issued to one"),
    StoreTable("pins", "sources", "the definitions of tools as they were first seen"),
    StoreTable("sources", "sources", "what is remembered of a source over a restart"),
    StoreTable("leases", "store", "which process may renew a secret now"),
    StoreTable(
        "kv",
        "store",
        "single values, each under the name that its owner gave it",
        readers=(
            "approval/earlier.py",
            "calls/restored.py",
            "sources/pins.py",
            "surfaces/websocket/before.py",
        ),
    ),
    StoreTable("schema_version", "store", "the migrations that were applied"),
)
