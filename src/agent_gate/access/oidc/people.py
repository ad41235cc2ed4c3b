"""People whom a provider vouched for, as they are kept: by the name they have here, with their groups of the last time."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from agent_gate.access.jwt.reading import BadToken
from agent_gate.access.keys import Key, Keys
from agent_gate.access.oidc.allowance import Allowance, GroupAllowance, allowance_of
from agent_gate.access.oidc.provider import Vouched
from agent_gate.access.people import OPERATOR, Listed
from agent_gate.access.roles import NOTHING, Rights, widest
from agent_gate.errors import Forbidden

LONGEST_NAME = 128
MOST_GROUPS = 500
NO_GROUP = "{name} is in no group that may come in here. An operator names one in {where}, or the person under `people:`"

OTHER_BEFORE = (
    "The provider called somebody else {name} before, who may have agents and accounts here. An operator who wants "
    "them to be one person names them under `people:` with this login"
)


class GroupRights(Protocol):
    def rights(self) -> Rights: ...


class ProviderRoles(Protocol):
    """What of the provider's settings says who may do what."""

    @property
    def issuer(self) -> str: ...
    @property
    def roles(self) -> Mapping[str, GroupRights]: ...
    @property
    def agents(self) -> Mapping[str, GroupAllowance]: ...


class VouchedPeople:
    """Says who somebody is here, and what they may do, by the settings in use."""

    def __init__(
        self,
        keys: Keys,
        settings: Callable[[], ProviderRoles | None],
        listed: Callable[[], Mapping[str, Listed]],
        taken: Callable[[str], bool],
        regrouped: Callable[[], None] = lambda: None,
    ) -> None:
        """`taken` are names that channels give; `regrouped` hears that somebody's groups changed."""
        self._regrouped = regrouped
        self._keys, self._settings, self._listed, self._taken = keys, settings, listed, taken

    def name_of(self, vouched: Vouched) -> str:
        """The person under `people:` whose login this is, or the provider's own name for them."""
        for person in self._listed().values():
            if person.login is not None and person.login == vouched.name:
                return person.name
        name = vouched.name
        if not name.isprintable() or name != name.strip() or len(name) > LONGEST_NAME:
            raise BadToken("The provider's name for this person cannot be used as a name")
        if name == OPERATOR or name in self._listed() or self._taken(name):
            raise Forbidden(f"Somebody else is called {name} here. An operator gives that person this login")
        return name

    def rights_of(self, groups: frozenset[str]) -> Rights | None:
        """What members of these groups may do; None where no provider is configured."""
        settings = self._settings()
        if settings is None:
            return None
        return widest([role.rights() for group, role in settings.roles.items() if group in groups])

    def allowance(self, groups: Collection[str]) -> Allowance | None:
        """What agents of a person in these groups may be by that person's login alone."""
        settings = self._settings()
        return None if settings is None else allowance_of(groups, settings.agents)

    def rights(self, name: str) -> Rights | None:
        """What somebody may do whom the provider in use vouched for."""
        settings, key = self._settings(), self._keys.named("person", name)
        if settings is None or key is None or key.body.get("issuer") != settings.issuer:
            return None
        return self.rights_of(groups_in(key))

    def groups_vouched(self, name: str) -> frozenset[str]:
        """The groups that the provider in use gave a person the last time."""
        settings, key = self._settings(), self._keys.named("person", name)
        if settings is None or key is None or key.body.get("issuer") != settings.issuer:
            return frozenset()
        return groups_in(key)

    def gives_agents(self) -> bool:
        """Whether a login alone lets anybody's agents in."""
        settings = self._settings()
        return settings is not None and bool(settings.agents)

    def known_as(self, issuer: str, subject: str) -> "EarlierLogin | None":
        """Somebody who logged in before, by what the provider calls them."""
        for key in self._keys.list("person"):
            if key.body.get("issuer") == issuer and key.body.get("subject") == subject:
                return EarlierLogin(str(key.body.get("said", key.name)), groups_in(key))
        return None

    async def keep(self, vouched: Vouched) -> str:
        """Take in what the provider says of somebody who may come to the page; their name here."""
        name = self.name_of(vouched)
        if name not in self._listed() and not (self.rights_of(vouched.groups) or NOTHING).include("viewer"):
            raise Forbidden(NO_GROUP.format(name=name, where="auth.oidc.roles"))
        return await self._take(name, vouched)

    async def keep_for_agents(self, vouched: Vouched) -> str:
        """Take in what the provider says of somebody who may have agents here; their name here."""
        name, groups = self.name_of(vouched), vouched.groups
        has_role = name in self._listed() or (self.rights_of(groups) or NOTHING).include("viewer")
        if not has_role and self._named_for_agents(groups) is None:
            raise Forbidden(NO_GROUP.format(name=name, where="auth.oidc.agents or auth.oidc.roles"))
        return await self._take(name, vouched)

    def _named_for_agents(self, groups: frozenset[str]) -> Allowance | None:
        """What the groups have by their own names: `*` lets nobody in who could not come in anyway."""
        settings = self._settings()
        named = {group: one for group, one in settings.agents.items() if group in groups} if settings else {}
        return allowance_of(groups, named)

    async def _take(self, name: str, vouched: Vouched) -> str:
        if len(vouched.groups) > MOST_GROUPS:
            raise BadToken(f"The provider names more than {MOST_GROUPS} groups")
        self._check_same(name, vouched)
        before = self.groups_vouched(name)
        await self._keys.renew("person", name, body_of(vouched))
        if self.groups_vouched(name) != before:
            self._regrouped()
        return name

    def _check_same(self, name: str, vouched: Vouched) -> None:
        """Refuse a name that the provider gave to somebody else before: what is theirs here stays theirs. Whom the
        operator names by their login is that person, whoever they are at the provider."""
        key = self._keys.named("person", name)
        if key is None or name in self._listed() or key.body.get("issuer") != vouched.issuer:
            return
        if key.body.get("subject") != vouched.subject:
            raise Forbidden(OTHER_BEFORE.format(name=name))


@dataclass(frozen=True, slots=True)
class EarlierLogin:
    """`name` is what the provider's claim called them."""

    name: str
    groups: frozenset[str]


def groups_in(key: Key | None) -> frozenset[str]:
    return frozenset(key.body.get("groups", ())) if key is not None else frozenset()


def body_of(vouched: Vouched) -> dict[str, Any]:
    return {
        "issuer": vouched.issuer,
        "subject": vouched.subject,
        "groups": sorted(vouched.groups),
        "said": vouched.name,
    }
