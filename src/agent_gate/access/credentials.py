"""Which agents there are: those of the files, and those that people made."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from agent_gate.access.keys import Keys, caller_of
from agent_gate.access.tokens import Credential, digest, ensure_token
from agent_gate.core.call import Caller


class Entry(Protocol):
    """An agent as the configuration has it: its token or the digest of it, and who it is."""

    @property
    def token(self) -> str: ...
    @property
    def token_hash(self) -> str: ...
    def caller(self) -> Caller: ...


def credentials(
    named: Iterable[Entry],
    alone: Callable[[str], Entry],
    folder: Path,
    keys: Keys,
    signed_in: Iterable[Credential] = (),
) -> list[Credential]:
    """Everybody's; the files win where two name one agent, then what was made here.

    Where the files name none there is one, `alone`, whose token is made once and kept beside the store.
    """
    entries = list(named) or [alone(ensure_token(folder / "agent.token"))]
    found = [Credential(_digest(entry), entry.caller()) for entry in entries]
    names = {credential.caller.name for credential in found}
    made = [Credential(key.digest, caller_of(key)) for key in keys.list("agent")]
    found += [credential for credential in made if credential.caller.name not in names]
    names = {credential.caller.name for credential in found}
    return [*found, *(credential for credential in signed_in if credential.caller.name not in names)]


def _digest(entry: Entry) -> bytes:
    return bytes.fromhex(entry.token_hash) if entry.token_hash else digest(entry.token)
