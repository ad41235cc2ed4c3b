"""How a request says who sends it. Each kind is one function that makes the `Proof`, and one line of `AUTH_TYPES`."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent_gate.core.credentials import Identity, Proof, secrets_among


@dataclass(frozen=True, slots=True)
class AuthType:
    """One kind of credential. `needs` are the keys that its entry in a file must have."""

    prove: Callable[[Identity], Proof]
    needs: tuple[str, ...] = ()


def nothing(_: Identity) -> Proof:
    return Proof()


def bearer(who: Identity) -> Proof:
    return Proof(((b"authorization", f"Bearer {who.token}".encode()),), secrets=frozenset({who.token}))


def header(who: Identity) -> Proof:
    name = who.header_name.lower().encode("ascii")
    return Proof(((name, who.token.encode()),), secrets=frozenset({who.token}))


def query(who: Identity) -> Proof:
    return Proof(query=((who.query_param, who.token),), secrets=frozenset({who.token}))


def basic(who: Identity) -> Proof:
    pair = b64encode(f"{who.username}:{who.password}".encode())
    secrets = frozenset({who.password, pair.decode()}) if who.password else frozenset[str]()
    return Proof(((b"authorization", b"Basic " + pair),), secrets=secrets)


AUTH_TYPES: Mapping[str, AuthType] = {
    "none": AuthType(nothing),
    "bearer": AuthType(bearer, ("token",)),
    "header": AuthType(header, ("token", "header_name")),
    "query": AuthType(query, ("token", "query_param")),
    "basic": AuthType(basic, ("username",)),
}


def prove(who: Identity) -> Proof:
    """What goes onto a request: the credential of its type, and the fixed headers that it does not replace."""
    own = AUTH_TYPES[who.type].prove(who)
    taken = {name for name, _ in own.headers}
    fixed = tuple(
        pair
        for name, value in who.headers.items()
        if (pair := (name.lower().encode("ascii"), value.encode()))[0] not in taken
    )
    secrets = {*own.secrets, *secrets_among(who.headers), *secrets_among(who.env)} - {""}
    return Proof((*fixed, *own.headers), own.query, who.env, frozenset(secrets))
