"""Agent tokens: kept as SHA-256, compared in constant time, made long by the gateway itself."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agent_gate.access.issuers import Issuers
from agent_gate.access.jwt.reading import looks_signed
from agent_gate.core.call import Caller
from agent_gate.errors import ConfigError, Unauthorized
from agent_gate.store.once import make_once

MOST_REMEMBERED = 10_000
LONGEST_REMEMBERED = 256
UNSAID = "Not authenticated: send the agent's token as Authorization: Bearer TOKEN"


@dataclass(frozen=True, slots=True)
class Credential:
    """One agent's token as it is kept. `proof` is what sessions keep of it where they outlast it."""

    digest: bytes
    caller: Caller
    proof: bytes = b""


def digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def bearer(header: bytes) -> str:
    """The token of an `Authorization: Bearer …` header."""
    scheme, _, token = header.decode("latin-1").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise Unauthorized(UNSAID)
    return token.strip()


def new_token() -> str:
    """256 bits, with a prefix by which a leaked one can be recognised."""
    return f"ag_{secrets.token_urlsafe(32)}"


def ensure_token(path: Path) -> str:
    """The token kept in `path`, made at first."""
    try:
        if not path.exists():
            make_once(path, new_token() + "\n")
        token = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ConfigError(f"The agent's token {path} cannot be read or made: {error.strerror}.") from error
    except ValueError:
        token = ""
    if not token:
        raise ConfigError(f"{path} holds no token. Remove it, and a new one is made.")
    return token


class Tokens:
    """Looks a token up and says who calls."""

    def __init__(self, credentials: Iterable[Credential] = (), issuers: Issuers | None = None) -> None:
        self.issuers = issuers
        self._by_digest: dict[bytes, Credential] = {}
        self.remembered: dict[bytes | None, Caller] = {}
        """The callers of headers that were seen before, for whoever reads one with each request."""
        self.replace(credentials)

    def replace(self, credentials: Iterable[Credential]) -> None:
        """Swap the whole set, as a reload or a revocation does."""
        self._by_digest = {credential.digest: credential for credential in credentials}
        self.remembered = {}

    def proof(self, token: str) -> bytes:
        """What to keep of a token, to see later whether whoever came in with it may still be here."""
        presented = digest(token)
        found = self._by_digest.get(presented)
        return found.proof or presented if found is not None else presented

    def callers(self) -> list[Caller]:
        """Everybody who has a token here, and who is here with one of another issuer."""
        return [*self._own(), *(self.issuers.callers() if self.issuers is not None else ())]

    def _own(self) -> list[Caller]:
        """Each once, however many tokens it has."""
        found = {credential.caller.name: credential.caller for credential in self._by_digest.values()}
        return list(found.values())

    def has(self, name: str) -> bool:
        return any(caller.name == name for caller in self._own())

    def own(self, name: str) -> Caller | None:
        """The agent of that name that has a token here."""
        return next((caller for caller in self._own() if caller.name == name), None)

    def caller(self, name: str) -> Caller | None:
        own = self.own(name)
        return own if own is not None or self.issuers is None else self.issuers.caller(name)

    def still(self, proof: bytes, name: str) -> Caller | None:
        """The agent of that name as it is now; None once the token was revoked, replaced or has ended."""
        found = self._by_digest.get(proof)
        if found is not None:
            return found.caller if found.caller.name == name else None
        return self.issuers.still(name) if self.issuers is not None else None

    def authenticate(self, token: str) -> Caller:
        presented = digest(token)
        found = self._by_digest.get(presented)
        if found is not None and hmac.compare_digest(found.digest, presented):
            return found.caller
        if self.issuers is not None and self.issuers.trusted and looks_signed(token):
            return self.issuers.authenticate(token, presented)
        raise Unauthorized("Invalid token")

    def knows(self, header: bytes) -> bool:
        """Whether this is the header of a token of ours."""
        return digest(bearer(header)) in self._by_digest

    def from_header(self, header: bytes | None) -> Caller:
        """The caller of an `Authorization: Bearer …` header, which is remembered unless its token ends by itself."""
        if header is None:
            raise Unauthorized(UNSAID)
        token = bearer(header)
        caller = self.authenticate(token)
        fits = len(self.remembered) < MOST_REMEMBERED and len(header) <= LONGEST_REMEMBERED
        if fits and not looks_signed(token):
            self.remembered[header] = caller
        return caller
