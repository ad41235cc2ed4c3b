"""References: what stands in a file in the place of a secret, and says where the secret is.

`vault:NAME`, `env:NAME`, `file:PATH` or `keyring:NAME`, also behind a scheme as in `Bearer vault:NAME`. They are shown
as they are written, and looked up when a request is made.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from agent_gate.core.credentials import Identity, names_secret

Where = Literal["vault", "env", "file", "keyring"]
FORM = re.compile(r"((?:bearer|basic|token|apikey)\s+)?(vault|env|file|keyring):(\S(?:.*\S)?)", re.IGNORECASE)
SIGN_IN_SECRETS = ("client_secret", "private_key", "identity_token", "identity_client_secret")
"""The members of a `SignIn` that may be references."""
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class Reference:
    """One secret's place. `before` is what stands in front of it, such as `Bearer `."""

    where: Where
    name: str
    before: str = ""


def read_reference(text: str) -> Reference | None:
    """What `text` refers to; None where it is itself what it says."""
    found = FORM.fullmatch(text)
    if found is None or found[2] not in ("vault", "env", "file", "keyring"):
        return None
    if found[2] != "file" and not NAME.fullmatch(found[3]):
        return None
    return Reference(found[2], found[3], found[1] or "")  # type: ignore[arg-type]


def references_among(named: Mapping[str, str]) -> Iterator[tuple[str, Reference]]:
    """Those in headers or an environment; an address such as `file:notes.db` is one only where a secret is meant."""
    for name, value in named.items():
        found = read_reference(value)
        if found is not None and (found.where != "file" or names_secret(name)):
            yield name, found


def references_of(who: Identity) -> Iterator[Reference]:
    """Every secret that an identity refers to."""
    signing = [getattr(who.sign_in, name) for name in SIGN_IN_SECRETS] if who.sign_in else []
    for text in (who.token, who.password, *signing):
        if (found := read_reference(text)) is not None:
            yield found
    for named in (who.headers, who.env):
        yield from (found for _, found in references_among(named))
