"""What the agent commands share: where the gateway is, how results and errors are printed, and the exit codes."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
import msgspec
from click.core import ParameterSource

from agent_gate.cli.arguments import FORMAT
from agent_gate.cli.client_tokens import how_to_set_token
from agent_gate.cli.operator import AdminClient, socket_of
from agent_gate.cli.output import PATH, cleaned, say
from agent_gate.cli.seconds import Seconds
from agent_gate.client.client import Client
from agent_gate.client.link import GatewayPlace
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
from agent_gate.net.addresses import is_loopback
from agent_gate.net.tls.trust import made_authority

OWN_CONFIG, OWN_CERTIFICATES = Path("config.yaml"), Path("data/tls")
LOOK_SECONDS = 5.0
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
SEEN_BY_ALL = "Warning: every user of this machine can see --token; set AGENT_TOKEN instead"
INTERRUPTED = 130
LEFT = "Left at once, before the gateway said what became of it"
T = TypeVar("T")


class ConnectOptions(NamedTuple):
    """The options that every agent command has."""

    url: str | None
    token: str | None
    ca: Path | None
    fingerprint: str | None
    session: str | None
    timeout: float

    def client(self) -> Client:
        """A client of the gateway that was named, or runs in this folder; it trusts what was named, else the
        certificate of that one."""
        ca, url = self.ca, self.url or own_address()
        if ca is None and self.fingerprint is None and url and is_own(url):
            ca = made_authority(OWN_CERTIFICATES)
        if url and not (self.url or self.token) and (how := how_to_set_token(Path())):
            raise Unreachable(f"there is no agent token\nGive it with AGENT_TOKEN, as after `{how}`")
        return Client(
            url,
            self.token,
            session=self.session,
            ca=ca,
            fingerprint=self.fingerprint,
            patience=self.timeout,
        )


def own_address() -> str | None:
    """Where the gateway is that this user runs in this folder. Another user's would be given this agent's token."""
    try:
        socket = socket_of(None, OWN_CONFIG if OWN_CONFIG.is_file() else None)
        owned = socket.is_socket() and socket.stat().st_uid == os.geteuid()
        return str(AdminClient(socket).get("/api/status", timeout=LOOK_SECONDS)["url"]) if owned else None
    except (GatewayError, OSError):
        return None


def is_own(url: str) -> bool:
    """Whether this may be the gateway of this folder, whose certificate is at hand."""
    if made_authority(OWN_CERTIFICATES) is None:
        return False
    try:
        place = GatewayPlace.parse(url)
    except ConfigError:
        return False
    return place.secure and is_loopback(place.host)


def warn_of_token(ctx: click.Context, param: click.Parameter, token: str | None) -> str | None:
    """A token among the arguments is in the process list; said last, since an error's line is the first."""
    if ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE:
        ctx.call_on_close(lambda: say(SEEN_BY_ALL, err=True))
    return token


def connection_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options and hand them over as one `Connection`."""

    @wraps(function)
    def with_connection(**given: Any) -> Any:
        connection = ConnectOptions(**{name: given.pop(name) for name in ConnectOptions._fields})
        return function(connection=connection, **given)

    options = [
        click.option(
            "--url",
            envvar="AGENT_GATE_URL",
            help="The gateway, as wss://host:port; by default the one that runs in this folder.",
        ),
        click.option(
            "--token",
            envvar="AGENT_TOKEN",
            callback=warn_of_token,
            help="This agent's token; better in AGENT_TOKEN.",
        ),
        click.option("--ca", envvar="AGENT_GATE_CA", type=PATH, help="Certificate to trust."),
        click.option(
            "--fingerprint",
            envvar="AGENT_GATE_FINGERPRINT",
            help="The gateway's certificate, as sha256:HEX; nothing else is trusted.",
        ),
        click.option("--session", envvar="AGENT_GATE_SESSION", help="Name of this run, for grants."),
        click.option(
            "--timeout",
            type=Seconds(),
            default=900.0,
            show_default=True,
            help="Seconds to wait for the answer.",
        ),
    ]
    decorated: Callable[..., Any] = with_connection
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def run(work: Callable[[Client], Coroutine[Any, Any, T]], connection: ConnectOptions) -> T:
    """Connect, do the work, and turn an expected failure into its line on stderr and its exit code."""

    async def main() -> T:
        leave_by_interrupt(asyncio.current_task())
        async with connection.client() as client:
            return await work(client)

    try:
        return asyncio.run(main())
    except GatewayError as error:
        say(render(error), err=True)
        sys.exit(error.exit)
    except asyncio.CancelledError:
        say("Stopped", err=True)
        sys.exit(INTERRUPTED)


def leave_by_interrupt(task: asyncio.Task[Any] | None) -> None:
    """The first Ctrl-C ends the work in good order; the second one leaves at once."""
    assert task is not None

    def interrupted() -> None:
        if task.cancelling() or told:
            say(LEFT, err=True)
            os._exit(INTERRUPTED)
        told.append(True)
        task.cancel()

    told: list[bool] = []
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupted)


def render(error: GatewayError) -> str:
    """The error for a person: what happened on the first line, advice after it."""
    first, _, advice = error.told().partition("\n")
    if isinstance(error, Unauthorized):
        advice = advice or WHO_ADVICE
    return cleaned("\n".join(filter(None, [f"Error: {titled(error, first)}", advice])))


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
    document = msgspec.json.format(raw, indent=2)
    if sys.stdout.isatty():
        document = cleaned(
            document.decode()
        ).encode()  # the same value: what is escaped stands within strings
    out = sys.stdout.buffer
    out.write(document + b"\n")
    out.flush()


def until(at: Any) -> str:
    """When a question ends, where that can be said."""
    try:
        return f" (until {time.strftime('%H:%M:%S', time.localtime(float(at)))})"
    except (TypeError, ValueError, OverflowError, OSError):
        return ""


def waiting_notice() -> Callable[[Mapping[str, Any]], None] | None:
    """Says on a terminal what is waited for; None where nobody would read it."""
    if not sys.stderr.isatty():
        return None

    def tell(told: Mapping[str, Any]) -> None:
        say(
            f"Waiting for a person to answer: {told.get('signature', '')}{until(told.get('expires_at'))}",
            err=True,
        )

    return tell


def progress_notice() -> Callable[[Mapping[str, Any]], None] | None:
    if not sys.stderr.isatty():
        return None

    def tell(told: Mapping[str, Any]) -> None:
        total = f"/{told['total']:g}" if isinstance(told.get("total"), int | float) else ""
        say(f"{told.get('progress', '')}{total} {told.get('message', '')}".rstrip(), err=True)

    return tell
