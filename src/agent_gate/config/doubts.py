"""What a configuration says that can hardly be meant: no fault, but a warning with its place."""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agent_gate.config.decode import Reading
from agent_gate.config.files.nodes import Mark, Node, entries, join
from agent_gate.net.addresses import is_here

if TYPE_CHECKING:
    from agent_gate.config.settings import Settings

OTHERS_MAY_READ = 0o044
LOADS_CODE = re.compile(
    r"(?i)(?:LD|DYLD)_\w+|GCONV_PATH|BASH_ENV|ENV|PYTHONSTARTUP|PYTHONHOME|NODE_OPTIONS|PERL5OPT|RUBYOPT|"
    r"_?JAVA(?:_TOOL)?_OPTIONS"
)


def warn_of_plain_http(node: Node, path: str, reading: Reading) -> None:
    """A credential that goes to another machine without TLS can be read by everybody on the way."""
    parts = urlsplit(str(node.value))
    if parts.scheme == "http" and not is_here(parts.hostname or ""):
        reading.warn(
            node.mark,
            path,
            f"the credential goes to {parts.hostname} without TLS, and whoever is on the way can read it; use https://",
        )


def warn_of_loaded_code(env: Node | None, path: str, reading: Reading) -> None:
    """Some variables put other code into a program than its command says."""
    for name in entries(env, path) if env is not None else ():
        if LOADS_CODE.fullmatch(name):
            reading.warn(
                env.key_mark(name) if env is not None else Mark(""),
                join(path, name),
                "makes the program load other code than its command says; leave it out unless you mean that",
            )


def open_keys(settings: "Settings", key: Mark) -> Iterator[str]:
    """The key files that others on this machine can read. `key` is where `gateway.tls.key` is written."""
    tls = settings.gateway.tls.key
    named = [(tls, f"{key}: gateway.tls.key: ")] if tls is not None else []
    folder = settings.storage.path.absolute().parent
    for file, place in [*named, *((file, "") for file in sorted(folder.glob("*.key")))]:
        if others_may_read(file):
            yield f"{place}{file} can be read by others on this machine; run: chmod 600 {shlex.quote(str(file))}"


def others_may_read(file: Path) -> bool:
    try:
        return bool(file.stat().st_mode & OTHERS_MAY_READ)
    except OSError:
        return False


def former_stores(env: Mapping[str, str]) -> Iterator[str]:
    """Variables that name a folder for credentials, which the gateway does not keep in files of their own."""
    for name in ("AUTH_STORE_PATH", "GATEWAY_AUTH_DIR"):
        if env.get(name):
            yield (
                f"{name} is not used: credentials are sealed in the store, under the key vault.key beside it "
                "(docs/credentials.md)"
            )


def plain_door(settings: "Settings", place: str, page: str) -> Iterator[str]:
    """What `--insecure` means where others can connect. `place` is where the address is written, `page` the page's."""
    admin = settings.admin
    if admin.tls == "auto" and not is_here(admin.host):
        yield (
            f"{page}: --insecure serves the page at {admin.host} without TLS, so logins cross the network in the "
            "clear; leave out --insecure, or listen on 127.0.0.1"
        )
    if not is_here(settings.gateway.host):
        yield (
            f"{place}: --insecure serves {settings.gateway.host} without TLS, so agents' tokens cross the network "
            "in the clear; leave out --insecure, or listen on 127.0.0.1"
        )
