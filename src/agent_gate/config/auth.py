"""`auth:` at the top of config.yaml: how clients and people come in without a token that somebody pasted."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from agent_gate.config.files.nodes import Node, fail
from agent_gate.config.issuers import JwtSettings, check_issuers
from agent_gate.config.oidc import OidcSettings, check_oidc
from agent_gate.net.addresses import is_here


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSettings:
    """How clients and people come in by signing in. Tokens work beside it."""

    sign_in: Annotated[
        bool,
        "Let MCP clients sign in (OAuth): each sign-in is a question to a person, or a login, and becomes an agent.",
    ] = False
    public_url: Annotated[
        str | None,
        "Address under which clients and browsers reach the public listener, such as `https://gate.example.com`; "
        "documents and tokens carry it, and its host name is accepted. null: where it listens on this machine.",
    ] = None
    oidc: Annotated[
        OidcSettings | None,
        "The OpenID provider at which people log in, to the page and for their agents; null: none.",
    ] = None
    client_documents: Annotated[
        bool,
        "Read who a client is from the document that its id is the address of, on the public internet; false: clients "
        "register, and the gateway reaches out to nobody for them.",
    ] = True
    jwt: Annotated[
        tuple[JwtSettings, ...], "Other issuers whose tokens (JWT) agents come in with, without being stored."
    ] = ()


def check_auth(auth: AuthSettings, host: str, agents: Iterable[str], root: Node) -> None:
    """Refuse an address that no client could use, or that would carry tokens in the open."""
    block = root.get("auth")
    if block is None:
        return
    check_issuers(auth.jwt, agents, block)
    check_oidc(auth.oidc, block)
    if auth.public_url is not None:
        fault = fault_in_address(auth.public_url)
        if fault:
            fail((block.get("public_url") or block).mark, "auth.public_url", fault)
    elif auth.sign_in and not is_here(host):
        fail(
            block.mark,
            "auth.public_url",
            f"is missing: the gateway listens on {host}, so say under which address clients reach it",
        )


def fault_in_address(url: str) -> str | None:
    """Why documents cannot carry this address; None where they can."""
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc or not url.isascii():
        return f"{url!r} is no address; write one such as https://gate.example.com"
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        return "has a path; clients look for /authorize at the root, so write only https://host or https://host:port"
    if parts.scheme == "http" and not is_here(host):
        return "is plain HTTP, and whoever is on the way could read tokens; use https://"
    return None
