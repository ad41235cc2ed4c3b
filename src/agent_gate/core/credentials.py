"""How a source proves to its upstream who it is: what its file says, what goes onto a request, and the port between.

A source asks for its `Proof` with each request, or when it starts a child, and keeps none: a token that was renewed
meanwhile restarts nothing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol
from urllib.parse import urlsplit

from agent_gate.errors import DependencyUnavailable

Header = tuple[bytes, bytes]
SECRET_NAME = re.compile(
    r"(?i)(?:^|[^a-z])(?:api-?_?)?(?:key|token|secret|pat|auth|authorization|bearer|cookie|credentials?)s?(?:$|[^a-z])"
    r"|pass(?:word|wd|phrase)?(?:$|[^a-z])|apikey|accesskey|(?-i:[a-z](?:Key|Token|Secret)(?:$|[^a-z]))"
)
NAMES_A_PLACE = re.compile(r"(?i)[_-](?:file|path|dir|folder|url|uri|host|port|user|name|id|type)$")
SCHEME = re.compile(r"(?i)(?:bearer|basic|token|apikey)\s+(\S.*)")
SignInKind = Literal[
    "api-key", "bearer", "oauth2", "oauth2-pkce", "device-code", "client-credentials", "token-exchange"
]
KEY_KINDS: frozenset[str] = frozenset({"api-key", "bearer"})


class SignInNeeded(DependencyUnavailable):
    """The gateway has no credential that the upstream takes; nothing ran. `message` says what a person can do."""

    retryable = False


class CallerSignInNeeded(SignInNeeded):
    """One caller has no account at a source where each has its own; the source and the others go on.

    `details["auth_url"]` is the link at which the person behind that caller signs in, where there is one.
    """

    @property
    def link(self) -> str:
        return str((self.details or {}).get("auth_url", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """How a source gets a credential that stands in no file; what is left out of it is discovered.

    `on_refusal`: the upstream may want none, which shows when it refuses a request without one. `env` is the variable
    that may hold a key, and in which a child gets it. `identity_token` says who signs in where one token is exchanged
    for another; with `identity_url` its own issuer first gives a grant for it.
    """

    kind: SignInKind
    url: str = ""
    on_refusal: bool = False
    env: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    private_key: str = field(default="", repr=False)
    scopes: tuple[str, ...] = ()
    authorize_url: str = ""
    token_url: str = ""
    device_url: str = ""
    audience: str = ""
    identity_token: str = field(default="", repr=False)
    identity_url: str = ""
    identity_client_id: str = ""
    identity_client_secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a source is to its upstream, as its file says it. `type` is one of the registered HTTP auth types.

    `headers` go onto every request as they are, `env` into a child; the names say which of them authenticate. A secret
    may be a reference (`core/references.py`) to where it is. `sign_in` is there where no file has the credential; a
    token that is got that way goes where `type` says. `per_caller`: each caller signs in with an account of its own.
    """

    source: str
    title: str = ""
    type: str = "none"
    token: str = field(default="", repr=False)
    username: str = ""
    password: str = field(default="", repr=False)
    header_name: str = ""
    query_param: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    sign_in: SignIn | None = None
    per_caller: bool = False


class Signs(Protocol):
    """Makes the header that has to be another one with each request: a proof that the sender has a token's key."""

    nonce: str

    def header(self, method: str, url: str) -> Header: ...


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """What proves a source for one request, or for the life of one child. `secrets` are the values in it that do.

    `signs` is there where each request needs a header of its own beside these.
    """

    headers: tuple[Header, ...] = field(default=(), repr=False)
    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    signs: Signs | None = None


class Credentials(Protocol):
    """The credentials of one source. `caller` is the agent a request is for, empty where it is for none."""

    def at_hand(self, caller: str, /) -> Proof | None:
        """What counts now; None where `fetch` has to be awaited. On the path of every call, so without I/O."""
        ...

    async def fetch(self, caller: str, /) -> Proof:
        """The same where it takes time. Raises `DependencyUnavailable`, with what a person has to do."""
        ...

    async def refused(self, caller: str, proof: Proof, challenge: str, /) -> Proof | None:
        """The upstream did not take `proof` (a 401 with this `WWW-Authenticate`). Another one, to be tried once;
        None where there is none."""
        ...


PERSON = "person:"
"""What the name of a holder of accounts begins with that is a person, and not an agent."""
NOBODY_IN_PARTICULAR = frozenset({"", "operator"})


def account_holder(agent: str, person: str) -> str:
    """Whose accounts serve an agent's calls, where each has its own: those of its person, or where it works for nobody in
    particular its own."""
    if person not in NOBODY_IN_PARTICULAR:
        return f"{PERSON}{person}"
    return f"agent:{agent}" if agent.startswith(PERSON) else agent  # no agent is a person by its name


def secrets_among(named: Mapping[str, str]) -> Iterator[str]:
    """The values that authenticate, told by their names; also the password in an address."""
    for name, value in named.items():
        if password := password_in(value):
            yield password
        elif names_secret(name):
            scheme = SCHEME.fullmatch(value)
            yield scheme[1] if scheme else value


def names_secret(name: str) -> bool:
    """Whether what has this name authenticates somebody."""
    return bool(SECRET_NAME.search(name)) and not NAMES_A_PLACE.search(name)


def password_in(value: str) -> str:
    if "://" not in value:
        return ""
    try:
        return urlsplit(value).password or ""
    except ValueError:
        return ""
