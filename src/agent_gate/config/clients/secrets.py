"""Literal secrets of a found server into references to environment variables."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from agent_gate.config.clients.model import ClientEntry
from agent_gate.config.files.variables import variable

TELLING = re.compile(
    r"token|secret|passw(or)?d|passphrase|api[-_]?key|access[-_]?key|private[-_]?key|credential|auth|bearer|cookie"
    r"|session|dsn|database[-_]?url|connection[-_]?string|(^|[-_])(key|pat|pwd)($|[-_])",
    re.IGNORECASE,
)
KNOWN = re.compile(
    r"(sk|pk|rk)[-_][A-Za-z0-9_-]{12,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abpors]-[\w-]{10,}"
    r"|ntn_\w{16,}|secret_\w{16,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|ya29\.[\w-]+|eyJ[\w-]+\.[\w-]+\.[\w-]*"
    r"|hf_\w{20,}|lin_api_\w{16,}|figd_[\w-]{16,}|tvly-[\w-]{12,}|npm_\w{20,}"
    r"|\b(?i:Bearer|Basic)\s+[\w.~+/=-]{8,}"
)
PASSWORD_IN_URL = re.compile(r"^([a-z][a-z0-9+.-]*://[^/\s:@]*:)([^/?#\s]+)(@.*)$", re.IGNORECASE)
PAIR = re.compile(r"([A-Za-z][\w.-]*)(\s*[:=]\s*)(?!//)(\S.*)", re.DOTALL)
SCHEME = re.compile(r"^(Bearer|Basic|Token|ApiKey)\s+(.+)$", re.IGNORECASE)


class Mover:
    """Collects `NAME: value`; equal values share a name, and a name that is taken gets the server's before it."""

    def __init__(self, server: str, taken: Mapping[str, str]) -> None:
        self.server = server
        self.moved: dict[str, str] = {}
        self.taken = taken

    def move(self, wanted: str, value: str) -> str:
        """The reference that stands for `value` from now on."""
        for name in self.names(variable(wanted)):
            if self.moved.get(name, self.taken.get(name, value)) == value:
                self.moved[name] = value
                return f"${{{name}}}"
        raise AssertionError("names never run out")

    def names(self, wanted: str) -> Any:
        yield wanted
        own = f"{variable(self.server)}_{wanted}"
        yield own
        number = 2
        while True:
            yield f"{own}_{number}"
            number += 1

    def named(self, name: str, value: str, wanted: str) -> str:
        """A value that stands under a name: of the environment, a header or an option.

        It may be a pair itself, `NAME=value` or `Header: value`, as `docker -e` and `mcp-remote --header` take them.
        """
        pair = PAIR.fullmatch(value)
        if pair is not None and not TELLING.search(name):
            kept = self.alone(pair[1], pair[3], f"{self.server}_{pair[1]}")
            if kept != pair[3]:
                return pair[1] + pair[2] + kept
        return self.alone(name, value, wanted)

    def alone(self, name: str, value: str, wanted: str) -> str:
        if "${" in value or not value:
            return value
        if found := PASSWORD_IN_URL.match(value):
            return found[1] + self.move(f"{wanted}_PASSWORD", found[2]) + found[3]
        if found := SCHEME.match(value):
            return f"{found[1]} {self.move(wanted, found[2])}"
        if TELLING.search(name):
            return self.move(wanted, value)
        kept = self.address(value) if value.startswith(("http://", "https://")) else value
        return self.move(wanted, value) if kept == value and KNOWN.search(value) else kept

    def address(self, url: str) -> str:
        """A URL with its password and telling parameters replaced."""
        if "${" in url:
            return url
        if found := PASSWORD_IN_URL.match(url):
            url = found[1] + self.move(f"{self.server}_PASSWORD", found[2]) + found[3]
        for name, value in parse_qsl(urlsplit(url).query):
            if value and (TELLING.search(name) or KNOWN.search(value)):
                reference = self.move(f"{self.server}_{name}", value)
                for form in {value, quote(value), quote(value, safe="")}:
                    url = url.replace(f"{name}={form}", f"{name}={reference}")
        return url

    def arguments(self, args: list[str]) -> list[str]:
        """`--api-key VALUE`, `--api-key=VALUE`, and values that give themselves away."""
        out: list[str] = []
        for arg in args:
            option, equals, value = arg.partition("=")
            before = out[-1] if out else ""
            if before.startswith("-") and "=" not in before and not arg.startswith("-"):
                out.append(self.named(before, arg, f"{self.server}_{before}"))
            elif equals and option.startswith("-"):
                out.append(f"{option}={self.named(option, value, f'{self.server}_{option}')}")
            else:
                out.append(self.named("", arg, f"{self.server}_ARGUMENT"))
        return out


def move_secrets(
    name: str, entry: ClientEntry, taken: Mapping[str, str] | None = None
) -> tuple[ClientEntry, dict[str, str]]:
    """`entry` with references for its literal secrets, and what those variables have to hold.

    `taken` are variables that already have a value, from other servers or the environment.
    """
    mover = Mover(name, taken or {})
    moved: ClientEntry = dict(entry)
    if env := entry.get("env"):
        moved["env"] = {key: mover.named(key, value, key) for key, value in env.items()}
    if headers := entry.get("headers"):
        moved["headers"] = {key: mover.named(key, value, f"{name}_{key}") for key, value in headers.items()}
    if args := entry.get("args"):
        moved["args"] = mover.arguments(args)
    if url := entry.get("url"):
        moved["url"] = mover.address(url)
    return moved, mover.moved
