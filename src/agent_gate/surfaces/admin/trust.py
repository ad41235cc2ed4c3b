"""Which changes of an entry a person on the page may make alone, and which wait for a yes on the gateway's machine.

What is harmless is named here; everything else could start a program, read what the machine keeps, or send a secret to
somebody who does not know it.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePath
from typing import Any

from agent_gate.core.references import Reference, read_reference

QUIET = frozenset(
    {
        "name", "title", "description", "enabled", "disabled", "connect", "ready", "prefix", "timeout", "rate_limit",
        "trust_annotations", "traits", "include", "includeTools", "enabled_tools", "exclude", "excludeTools",
        "disabled_tools", "disabledTools", "rename", "isolation", "single", "pin", "record", "credentials", "health",
        "errors", "tools",
    }
)  # fmt: skip
"""Fields of what is there already that say neither where anything is sent, nor with what, nor what runs."""
CARRYING = frozenset({"auth", "headers", "http_headers"})
"""Fields that say with what requests are sent to the address that an entry has."""
REACHING = frozenset({"url", "httpUrl", "serverUrl", "transport", "type"})
"""Fields that say where a new entry is reached. Once it is there, what is sent to it would go elsewhere."""
PLAIN_AUTH = frozenset({"type", "token", "header_name", "query_param", "username", "password", "scopes"})
"""What of a credential goes to the entry's own address alone."""
PLAIN_TYPES = frozenset(
    {"none", "bearer", "header", "query", "basic", "api-key", "oauth2", "oauth2-pkce", "device-code"}
)
STARTS = frozenset({"command", "handler_class"})
FILLED = re.compile(r"\$\{|\b(?:env|file|keyring):")
VAULTED = re.compile(r"\bvault:([A-Za-z0-9_][A-Za-z0-9_.-]{0,63})")


def needs_trust(
    before: object, after: object, known: Collection[str] = (), *, has_account: bool = False
) -> bool:
    """Whether a change waits for a yes. `known` are the secrets of the vault that whoever makes it knows anyway;
    `has_account` says that somebody signed in to what had this name before."""
    if after is None:
        return False
    old, new = (one if isinstance(one, Mapping) else {} for one in (before, after))
    changed = {name: new.get(name) for name in {*old, *new} if old.get(name) != new.get(name)}
    free = QUIET | CARRYING if old or has_account else QUIET | CARRYING | REACHING
    if not changed.keys() <= free or starts_again(old, new):
        return True
    return any(is_loud(name, value, known) for name, value in changed.items())


def starts_again(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return is_off(old) and not is_off(new) and bool(STARTS & new.keys())


def is_off(entry: Mapping[str, Any]) -> bool:
    return entry.get("enabled") is False or entry.get("disabled") is True


def is_loud(name: str, value: object, known: Collection[str]) -> bool:
    """Whether a field says something that its author may not know, or leads elsewhere than its entry's address."""
    if name == "auth" and not is_plain_auth(value):
        return True
    if name in ("type", "transport") and "stdio" in str(value):
        return True
    if name == "tools" and any(leaves_folder(text) for text in named_files(value)):
        return True
    return any(reads_machine(text) or not secrets_in(text) <= {*known} for text in texts_in(value))


def is_plain_auth(auth: object) -> bool:
    if not isinstance(auth, Mapping):
        return auth is None
    return auth.keys() <= PLAIN_AUTH and auth.get("type", "none") in PLAIN_TYPES


def named_files(tools: object) -> list[str]:
    """The files that `tools` names, where it does not say the tools themselves."""
    listed = tools if isinstance(tools, list) else [tools]
    return [one for one in listed if isinstance(one, str)]


def leaves_folder(file: str) -> bool:
    path = PurePath(file)
    return path.is_absolute() or ".." in path.parts or file.startswith("~")


def texts_in(value: object) -> Iterator[str]:
    """Every text in a value, names among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from texts_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts_in(inner)


def reads_machine(text: str) -> bool:
    """Whether it stands for a variable, a file or the keyring."""
    found = read_reference(text)
    return FILLED.search(text) is not None or (found is not None and found.where != "vault")


def secrets_in(value: object) -> set[str]:
    """The secrets of the vault that a value names."""
    found: set[str] = set()
    for text in texts_in(value):
        reference = read_reference(text)
        found |= {*VAULTED.findall(text), *named_in_vault(reference)}
    return found


def named_in_vault(reference: Reference | None) -> set[str]:
    return {reference.name} if reference is not None and reference.where == "vault" else set()
