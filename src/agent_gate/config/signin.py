"""How an account is connected, as files write it: the same keys for MCP servers and HTTP services."""

from dataclasses import dataclass, field, fields
from typing import Annotated, Literal

from agent_gate.config.decode import require_address
from agent_gate.config.files.nodes import Node, fail, join
from agent_gate.config.shape import SECRET
from agent_gate.core.credentials import SignIn, SignInKind
from agent_gate.core.references import read_reference

Sharing = Literal["shared", "per-caller"]
ADDRESSES = ("authorize_url", "token_url", "device_url", "identity_url")


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInKeys:
    """What an OAuth type may be told where the server does not tell it itself."""

    client_id: Annotated[str, "OAuth: who the gateway is there, where it does not register itself."] = ""
    client_secret: Annotated[str, "OAuth: the secret that belongs to `client_id`.", SECRET] = field(
        default="", repr=False
    )
    private_key: Annotated[
        str, "OAuth: a PEM with which requests are signed, instead of `client_secret`.", SECRET
    ] = field(default="", repr=False)
    scopes: Annotated[tuple[str, ...], "OAuth: what to ask for; without, what the server wants."] = ()
    authorize_url: Annotated[str, "OAuth: the page of consent, where it is not discovered."] = ""
    token_url: Annotated[str, "OAuth: the token endpoint, where it is not discovered."] = ""
    device_url: Annotated[str, "OAuth: the endpoint for device codes, where it is not discovered."] = ""
    audience: Annotated[str, "OAuth: what tokens are for, where the server does not say."] = ""
    identity_token: Annotated[
        str, "token-exchange: who signs in, as a token of another issuer; usually a reference.", SECRET
    ] = field(default="", repr=False)
    identity_url: Annotated[
        str, "token-exchange: token endpoint of the identity's issuer, for an ID-JAG."
    ] = ""
    identity_client_id: Annotated[str, "token-exchange: who the gateway is at `identity_url`."] = ""
    identity_client_secret: Annotated[
        str, "token-exchange: the secret that belongs to `identity_client_id`.", SECRET
    ] = field(default="", repr=False)

    def sign_in(self, kind: SignInKind, url: str, *, env: str = "", on_refusal: bool = False) -> SignIn:
        ours = {each.name: getattr(self, each.name) for each in fields(SignInKeys)}
        return SignIn(kind=kind, url=url, env=env, on_refusal=on_refusal, **ours)


def check_sign_in(keys: SignInKeys, kind: str, node: Node, path: str) -> None:
    """Refuse what no sign-in could begin with."""
    for name in ADDRESSES:
        if getattr(keys, name):
            require_address(node.get(name) or node, join(path, name))
    if kind == "client-credentials" and not (keys.client_id and (keys.client_secret or keys.private_key)):
        fail(node.mark, path, 'client-credentials need "client_id", and "client_secret" or "private_key"')
    if kind == "token-exchange" and not keys.client_id:
        fail(node.mark, path, 'token-exchange needs "client_id"')
    if keys.authorize_url and not keys.token_url:
        fail(node.mark, path, '"authorize_url" needs "token_url" too')


def check_accounts(accounts: Sharing, kind: str, token: str, node: Node, path: str) -> None:
    """Refuse accounts of callers where there is nothing that each of them could sign in to."""
    plain = ("client-credentials", "basic", "header", "query")
    if accounts == "per-caller" and (token or kind in plain):
        fail(
            node.mark,
            path,
            '"credentials: per-caller" needs a sign-in or keys of callers, and no credential here',
        )


def is_written(token: str) -> bool:
    """Whether a token stands in the file itself, and not in a place that it refers to."""
    return bool(token) and read_reference(token) is None
