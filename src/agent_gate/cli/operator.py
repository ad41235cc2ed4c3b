"""What the operator commands share: the admin socket, and the options that say where it is."""

import http.client
import json
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from agent_gate.errors import GatewayError, Internal, Unreachable, by_code
from agent_gate.net.unixpath import reachable

DEFAULT_SOCKET = Path("data/admin.sock")


class UnixConnection(http.client.HTTPConnection):
    """HTTP over the admin socket."""

    def __init__(self, path: Path, timeout: float | None = 60) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        try:
            with reachable(self._path) as name:
                self.sock.connect(name)
        except OSError as error:
            raise Unreachable(
                f"No gateway answers on {self._path} ({error.strerror or error}). Start one with `agent-gate serve`, or name its socket with --admin-socket"
            ) from None


class AdminClient:
    """Asks the running gateway; an error it answers is raised as what it is."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def request(self, method: str, path: str, body: Any = None) -> Any:
        connection = UnixConnection(self.path)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None)
            response = connection.getresponse()
            data = response.read()
        except OSError as error:
            raise Unreachable(f"The gateway on {self.path} stopped answering: {error}") from None
        finally:
            connection.close()
        if response.status >= 400:
            raise self._error(data)
        return (
            json.loads(data) if response.headers.get_content_type() == "application/json" else data.decode()
        )

    def _error(self, data: bytes) -> GatewayError:
        try:
            said = json.loads(data)["error"]
        except (ValueError, KeyError, TypeError):
            return Internal("The gateway answered something that cannot be read")
        error = by_code().get(said["code"], Internal)(said["message"])
        error.details = said.get("details")
        return error

    def get(self, path: str) -> Any:
        return self.request("GET", path)

    def events(self, path: str) -> Iterator[tuple[str, Any]]:
        """Server-Sent Events until the connection ends."""
        connection = UnixConnection(self.path, timeout=None)
        connection.request("GET", path)
        response, kind = connection.getresponse(), "message"
        while raw := response.readline():
            line = raw.decode().rstrip("\n")
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                yield kind, json.loads(line[6:])


def segment(text: str) -> str:
    return quote(text, safe="")


def socket_of(admin_socket: Path | None, config: Path | None) -> Path:
    """`--admin-socket`, else the one the configuration names, else ./data/admin.sock."""
    if admin_socket is not None:
        return admin_socket
    if config is not None:
        return configured_socket(config)
    return DEFAULT_SOCKET


def configured_socket(config: Path) -> Path:
    """Read only the one key that matters, so that unset variables elsewhere do not stand in the way."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        data = YAML(typ="safe", pure=True).load(config.read_text(encoding="utf-8")) or {}
    except (OSError, YAMLError) as error:
        raise Unreachable(f"{config} cannot be read: {error}") from None
    given = (data.get("admin") or {}).get("socket") if isinstance(data, dict) else None
    return config.parent / Path(given or DEFAULT_SOCKET)


def admin_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--admin-socket`, `--config` and `--json`, for every operator command."""
    function = click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)
    function = click.option(
        "--config", type=click.Path(path_type=Path), help="Configuration whose admin socket to use."
    )(function)
    return click.option(
        "--admin-socket", type=click.Path(path_type=Path), help="The gateway's admin socket."
    )(function)


def client_of(admin_socket: Path | None, config: Path | None) -> AdminClient:
    return AdminClient(socket_of(admin_socket, config))


@contextmanager
def reporting() -> Iterator[None]:
    """Turn an expected failure into its line on stderr and its exit code."""
    try:
        yield
    except GatewayError as error:
        click.echo(f"Error: {error.message}", err=True)
        sys.exit(error.exit)
    except BrokenPipeError:
        sys.exit(0)


def admin_group(text: str, first: str = "list") -> click.Group:
    """A group of operator commands that share their client and `--json`; alone it runs the command `first`."""

    @click.group(invoke_without_command=True, help=text)
    @admin_options
    @click.pass_context
    def group(ctx: click.Context, admin_socket: Path | None, config: Path | None, as_json: bool) -> None:
        with reporting():
            ctx.obj = {"client": client_of(admin_socket, config), "json": as_json}
        if ctx.invoked_subcommand is None:
            ctx.invoke(group.commands[first])

    return group
