"""`auth.jwt`: other issuers whose tokens agents may come in with."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from agent_gate.access.issuers import TrustedIssuer
from agent_gate.access.jwt.claims import SPIFFE, Expected
from agent_gate.config.decode import require_address
from agent_gate.config.files.nodes import Node, fail, items, join
from agent_gate.config.shape import ADDRESS, AtLeast, AtMost
from agent_gate.core.call import Caller, Mode
from agent_gate.core.ids import fold_namespace
from agent_gate.net.addresses import is_here

PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtSettings:
    """An issuer whose signed tokens (JWT) agents come in with, such as a CI system or a service mesh."""

    issuer: Annotated[
        str,
        "Who signs, exactly as the claim `iss` says it; or a SPIFFE trust domain, as `spiffe://example.org`.",
    ]
    audience: Annotated[str, "What the claim `aud` must name: this gateway, as the issuer knows it."]
    name: Annotated[str, "What the names of its agents begin with, as in `ci/…`; else the issuer's host."] = (
        ""
    )
    jwks_url: Annotated[
        str | None,
        "Where its public keys are; null: where the issuer's OpenID description says.",
        ADDRESS,
    ] = None
    caller: Annotated[str, "The claim that names the agent."] = "sub"
    person: Annotated[str, "The claim that names the person the agent works for; empty: nobody."] = ""
    groups: Annotated[str, "The claim that lists groups, for rules; empty: none."] = ""
    namespaces: Annotated[
        tuple[str, ...] | None, "The only services and servers its agents see; null: all."
    ] = None
    mode: Annotated[Mode, "What `/mcp` shows them: every tool, a stripped list, or three meta-tools."] = (
        "full"
    )
    leeway: Annotated[float, "Seconds by which two clocks may differ.", AtLeast(0), AtMost(300)] = 60.0

    @property
    def prefix(self) -> str:
        return self.name or urlsplit(self.issuer).hostname or ""


def trusted_issuer(settings: JwtSettings, calls_per_minute: int, max_pending: int) -> TrustedIssuer:
    """The issuer with what its agents may be."""
    return TrustedIssuer(
        prefix=settings.prefix,
        expected=Expected(issuer=settings.issuer, audience=settings.audience, leeway=settings.leeway),
        jwks_url=settings.jwks_url or "",
        caller=settings.caller,
        groups=settings.groups,
        person=settings.person,
        likeness=Caller(
            name=settings.prefix,
            namespaces=None
            if settings.namespaces is None
            else frozenset(map(fold_namespace, settings.namespaces)),
            mode=settings.mode,
            calls_per_minute=calls_per_minute,
            max_pending=max_pending,
        ),
    )


def check_issuers(jwt: Sequence[JwtSettings], agents: Iterable[str], block: Node) -> None:
    """Refuse what no token could pass, what would fetch keys in the open, and names that two could have."""
    listed = block.get("jwt")
    seen: dict[str, JwtSettings] = {}
    for place, (one, node) in enumerate(zip(jwt, items(listed, "auth.jwt") if listed else [], strict=True)):
        path = join("auth.jwt", place)
        if one.issuer.startswith(SPIFFE):
            if one.jwks_url is None:
                fail(
                    node.mark,
                    join(path, "jwks_url"),
                    "is missing: a trust domain does not say where its keys are",
                )
        else:
            require_address(node.get("issuer") or node, join(path, "issuer"))
            check_secure(one.issuer, node.get("issuer") or node, join(path, "issuer"))
        check_secure(one.jwks_url, node.get("jwks_url") or node, join(path, "jwks_url"))
        if not one.audience:
            fail(
                (node.get("audience") or node).mark,
                join(path, "audience"),
                "is empty; say who the tokens are for",
            )
        if not one.caller:
            fail(
                (node.get("caller") or node).mark, join(path, "caller"), "is empty; name a claim, such as sub"
            )
        if not PREFIX.fullmatch(one.prefix):
            fail(node.mark, join(path, "name"), "has 1 to 64 letters, digits, dots, dashes or underscores")
        other = seen.setdefault(one.prefix, one)
        if other is not one:
            fail(
                node.mark, join(path, "name"), f'another issuer is called "{one.prefix}" too; give it a name'
            )
        for agent in agents:
            if agent.startswith(f"{one.prefix}/"):
                fail(
                    node.mark,
                    join(path, "name"),
                    f"the agent {agent} could be one of this issuer's; rename one",
                )


def check_secure(url: str | None, node: Node, path: str) -> None:
    parts = urlsplit(url or "https://")
    if parts.scheme == "http" and not is_here(parts.hostname or ""):
        fail(node.mark, path, "is plain HTTP, so that others could put their own keys there; use https://")
