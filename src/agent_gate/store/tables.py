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
                "approval/forgetting.py",
                "approval/sealed.py",
                "calls/calls.py",
                "calls/events.py",
                "cli/commands/backup.py",
                "sources/errands/rows.py",
            ),
            *("store/gateways.py", "store/postgres.py", "store/sqlite.py"),
        ),
    ),
    StoreTable("seals", "audit", "the ends of the record that were sealed"),
    StoreTable("cuts", "audit", "where the beginning of a chain was cut away on purpose, sealed"),
    StoreTable("trends", "audit", "calls, failures, time and agents, added up by minutes and hours"),
    StoreTable("approvals", "approval", "questions to people, with the calls that they are about"),
    StoreTable("yeses", "approval", "who said yes already, where a question needs several"),
    StoreTable("grants", "approval", "answers that are remembered"),
    StoreTable("deliveries", "approval/channels", "which question was sent to which channel"),
    StoreTable("pictures", "approval", "what a person sees beside a question"),
    StoreTable(
        "results",
        "results",
        "results kept for callers who are away",
        readers=("approval/earlier.py",),
    ),
    StoreTable("seen_results", "results", "what calls answered, for people to look at, where it is kept"),
    StoreTable("artifacts", "results", "results too large for their callers"),
    StoreTable(
        "idempotency",
        "calls",
        "which call came first with an idempotency key",
        readers=("results/kept.py",),
    ),
    StoreTable("tokens", "access", "tokens of agents, operators and logins, as hashes"),
    StoreTable("sign_in_clients", "access", "clients that may ask to come in, as they say of themselves"),
    StoreTable("sign_ins", "access", "sign-ins that were begun, and what became of each"),
    StoreTable("sign_in_invites", "access", "links that no limit on sign-ins holds up, as hashes"),
    StoreTable("signed_in_agents", "access", "agents that came in by signing in"),
    StoreTable("token_families", "access", "the sign-ins that such an agent is in by"),
    StoreTable("family_tokens", "access", "their tokens, as hashes"),
    StoreTable("used_tokens", "access", "tokens of other issuers that count once and were used, as hashes"),
    StoreTable("vault_keys", "vault", "the keys that secrets are sealed under, themselves sealed"),
    StoreTable("vault", "vault", "secrets and accounts, sealed", readers=("approval/sealed.py",)),
    StoreTable("peers", "peers", "components that were paired"),
    StoreTable("peer_certificates", "peers", "every certificate that was issued to one"),
    StoreTable(
        "peer_leases", "peers", "what components may do for a while, and no more than they may anyway"
    ),
    StoreTable("pins", "sources", "the definitions of tools as they were first seen"),
    StoreTable("sources", "sources", "what is remembered of a source over a restart"),
    StoreTable("errands", "sources", "calls of sources that another gateway runs, sealed"),
    StoreTable(
        "leases",
        "store",
        "what only one process at a time may do, and which one does it",
        readers=("sources/errands/rows.py",),
    ),
    StoreTable("gateways", "store", "the gateways that share the store"),
    StoreTable("notices", "store", "what one gateway changed that others keep in memory"),
    StoreTable("words", "store", "what one gateway says to another about what both have a part in, sealed"),
    StoreTable("mcp_sessions", "surfaces/mcp", "sessions that another gateway can take up"),
    StoreTable("usage", "access", "how much each caller did of late, on each gateway"),
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
