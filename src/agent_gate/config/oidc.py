"""`auth.oidc`: the OpenID provider at which people log in, and what its groups may do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import urlsplit

from agent_gate.access.oidc.allowance import MOST_DAYS, Allowance
from agent_gate.access.roles import Rights, Role
from agent_gate.config.files.nodes import Node, entries, fail, join
from agent_gate.config.shape import ADDRESS, SECRET, AtLeast, AtMost
from agent_gate.core.call import Mode
from agent_gate.core.ids import fold_namespace
from agent_gate.net.addresses import is_here


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRole:
    """What the members of a group may do."""

    role: Annotated[Role, "`viewer` looks, `approver` also answers, `operator` does everything."]
    namespaces: Annotated[
        tuple[str, ...] | None,
        "The only services and servers whose questions an `approver` answers; null: all.",
    ] = None

    def rights(self) -> Rights:
        narrowed = None if self.namespaces is None else frozenset(map(fold_namespace, self.namespaces))
        return Rights(self.role, narrowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAgents:
    """What agents of a group's members may be, by their person's login alone."""

    namespaces: Annotated[tuple[str, ...] | None, "The only services and servers they see; null: all."] = None
    mode: Annotated[Mode, "What `/mcp` shows them: every tool, a stripped list, or three meta-tools."] = (
        "full"
    )
    days: Annotated[
        float, "After how many days their person logs in again.", AtLeast(1), AtMost(MOST_DAYS)
    ] = 30.0

    def allowance(self) -> Allowance:
        narrowed = None if self.namespaces is None else frozenset(map(fold_namespace, self.namespaces))
        return Allowance(namespaces=narrowed, mode=self.mode, days=self.days)


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """The OpenID provider at which people log in, to the page and for their agents."""

    issuer: Annotated[str, "The provider, exactly as it calls itself.", ADDRESS]
    client_id: Annotated[str, "Who the gateway is there."]
    client_secret: Annotated[
        str, "The secret that belongs to `client_id`; empty for a public client.", SECRET
    ] = field(default="", repr=False)
    scopes: Annotated[tuple[str, ...], "What to ask for beside `openid`."] = ("profile", "email")
    person: Annotated[
        str,
        "The claim by which people are known: it is their name here, or the `login` of an entry under `people`. "
        "`email` counts only where the provider says that it verified it.",
    ] = "email"
    groups: Annotated[str, "The claim that lists a person's groups."] = "groups"
    roles: Annotated[
        Mapping[str, GroupRole],
        "What members of each group may do. Who is in none of them comes in only where `people` has them.",
    ] = field(default_factory=dict)
    agents: Annotated[
        Mapping[str, GroupAgents],
        "What agents of each group's members may be without a further yes, where they sign in by their person's login; "
        "`*` is everybody who may come in. Of anybody else's, and of what asks for more, people are asked.",
    ] = field(default_factory=dict)
    session: Annotated[
        float, "Seconds after which somebody logs in again.", AtLeast(60), AtMost(7 * 24 * 3600)
    ] = 8 * 3600.0


def check_oidc(oidc: OidcSettings | None, block: Node) -> None:
    node = block.get("oidc")
    if oidc is None or node is None:
        return
    parts = urlsplit(oidc.issuer)
    if parts.scheme == "http" and not is_here(parts.hostname or ""):
        place = (node.get("issuer") or node).mark
        fail(place, "auth.oidc.issuer", "is plain HTTP, so that others could log in as anybody; use https://")
    for name in ("client_id", "person"):
        if not getattr(oidc, name):
            fail((node.get(name) or node).mark, f"auth.oidc.{name}", "is empty")
    roles = node.get("roles")
    for group, entry in entries(roles, "auth.oidc.roles").items() if roles else ():
        if oidc.roles[group].namespaces is not None and oidc.roles[group].role != "approver":
            path = join(join("auth.oidc.roles", group), "namespaces")
            fail(entry.key_mark("namespaces"), path, 'narrows the answers of an "approver" alone')
