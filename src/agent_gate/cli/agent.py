"""What the agent commands share: where the gateway is, how results and errors are printed, and the exit codes."""

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import click
import msgspec

from agent_gate.approval.render import visible, visible_lines
from agent_gate.cli.arguments import FORMAT
from agent_gate.client.client import Client
from agent_gate.errors import (
    ApprovalDenied,
    ApprovalTimeout,
    CallTimeout,
    ConfigError,
    DependencyUnavailable,
    Forbidden,
    GatewayError,
    InvalidArgs,
    OutcomeUnknown,
    RateLimited,
    ToolNotFound,
    Unauthorized,
    Unreachable,
    UpstreamError,
)

OWN_CERTIFICATE = Path("data/tls/gateway.crt")
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
KINDS: Mapping[type[GatewayError], str] = {
    Forbidden: "Denied",
    ApprovalDenied: "Denied",
    ApprovalTimeout: "Timeout",
    CallTimeout: "Timeout",
    InvalidArgs: "Invalid arguments",
    ToolNotFound: "Not found",
    RateLimited: "Rate limited",
    UpstreamError: "Execution failed",
    DependencyUnavailable: "Unavailable",
    OutcomeUnknown: "Outcome unknown",
}
WHO_ADVICE = (
    "Is AGENT_TOKEN that of one of this gateway's agents? `agent-gate agents` lists them and makes tokens"
)
T = TypeVar("T")


class Connection(NamedTuple):
    """The options that every agent command has."""

    url: str | None
    token: str | None
    ca: Path | None
    fingerprint: str | None
    session: str | None
    timeout: float

    def client(self) -> Client:
        """A client that trusts what was named, else the certificate of a gateway that runs in this folder."""
        ca = self.ca
        if ca is None and self.fingerprint is None and self.url and OWN_CERTIFICATE.is_file():
            parts = urlsplit(self.url)
            ca = OWN_CERTIFICATE if parts.hostname in LOOPBACK and parts.scheme in ("wss", "https") else None
        return Client(self.url, self.token, session=self.session, ca=ca, fingerprint=self.fingerprint)


def connection_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options and hand them over as one `Connection`."""

    @wraps(function)
    def with_connection(**given: Any) -> Any:
        connection = Connection(**{name: given.pop(name) for name in Connection._fields})
        return function(connection=connection, **given)

    options = [
        click.option("--url", envvar="AGENT_GATE_URL", help="The gateway, as wss://host:port."),
        click.option("--token", envvar="AGENT_TOKEN", help="This agent's token; better in AGENT_TOKEN."),
        click.option(
            "--ca", envvar="AGENT_GATE_CA", type=click.Path(path_type=Path), help="Certificate to trust."
        ),
        click.option(
            "--fingerprint",
            envvar="AGENT_GATE_FINGERPRINT",
            help="The gateway's certificate, as sha256:HEX; nothing else is trusted.",
        ),
        click.option("--session", envvar="AGENT_GATE_SESSION", help="Name of this run, for grants."),
        click.option(
            "--timeout",
            type=click.FloatRange(min=0, min_open=True),
            default=900.0,
            show_default=True,
            help="Seconds to wait for the answer.",
        ),
    ]
    decorated: Callable[..., Any] = with_connection
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def run(work: Callable[[Client], Coroutine[Any, Any, T]], connection: Connection) -> T:
    """Connect, do the work, and turn an expected failure into its line on stderr and its exit code."""

    async def main() -> T:
        async with connection.client() as client:
            return await work(client)

    try:
        return asyncio.run(main())
    except GatewayError as error:
        click.echo(render(error), err=True)
        sys.exit(error.exit)


def render(error: GatewayError) -> str:
    """The error for a person: what happened on the first line, advice after it."""
    first, _, advice = error.message.partition("\n")
    if isinstance(error, Unauthorized):
        advice = advice or WHO_ADVICE
    return visible_lines("\n".join(filter(None, [f"Error: {titled(error, first)}", advice])))


def titled(error: GatewayError, text: str) -> str:
    if isinstance(error, Unreachable):
        return f"Connection failed: {text}"
    if isinstance(error, Unauthorized):
        return f"Connection failed: {text} ({error.rpc})"
    if isinstance(error, ConfigError) or text.startswith(FORMAT):
        return text
    kind = next((KINDS[cls] for cls in type(error).__mro__ if cls in KINDS), "Gateway error")
    local = bool((error.details or {}).get("local"))
    return f"{kind}: {text}" if local else f"{kind} ({error.rpc}): {text}"


def write_json(raw: bytes) -> None:
    """JSON on stdout and nothing else, written out before anybody is told that it arrived."""
    out = sys.stdout.buffer
    out.write(msgspec.json.format(raw, indent=2) + b"\n")
    out.flush()


def waiting_notice() -> Callable[[Mapping[str, Any]], None] | None:
    """Says on a terminal what is waited for; None where nobody would read it."""
    if not sys.stderr.isatty():
        return None

    def tell(told: Mapping[str, Any]) -> None:
        until = time.strftime("%H:%M:%S", time.localtime(float(told["expires_at"])))
        click.echo(visible(f"Waiting for a person to answer: {told['signature']} (until {until})"), err=True)

    return tell


def progress_notice() -> Callable[[Mapping[str, Any]], None] | None:
    if not sys.stderr.isatty():
        return None

    def tell(told: Mapping[str, Any]) -> None:
        total = f"/{told['total']:g}" if isinstance(told.get("total"), int | float) else ""
        click.echo(visible(f"{told.get('progress', '')}{total} {told.get('message', '')}".rstrip()), err=True)

    return tell
