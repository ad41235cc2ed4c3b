"""What the operator commands share: the admin socket, and the options that say where it is."""

import http.client
import json
import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from agent_gate.cli.advice import complete
from agent_gate.cli.output import PATH, json_option, print_json, say
from agent_gate.errors import GatewayError, Internal, Unreachable, by_code
from agent_gate.net.unixpath import reachable

DEFAULT_SOCKET = Path("data/admin.sock")
PATIENCE = 60.0
PORTION = 1 << 16
SOCKET_HELP = "The gateway's admin socket."
CONFIG_HELP = "Configuration whose admin socket to use."
JSON_HELP = "Print JSON."
REMOTE_HELP = "The folder of a CLI that was paired with a gateway elsewhere, to ask that one over mTLS."
REMOTE = "agent_gate.remote"
TYPED = "agent_gate.typed"
ELSEWHERE = ", or say where it runs with --config FILE or --admin-socket PATH"


class UnixConnection(http.client.HTTPConnection):
    """HTTP over the admin socket."""

    def __init__(self, path: Path, timeout: float | None = PATIENCE) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        try:
            with reachable(self._path) as name:
                self.sock.connect(name)
        except PermissionError:
            raise Unreachable(
                f"{self._path} may be used only by the user of the gateway. Run this as that user"
            ) from None
        except OSError as error:
            raise nobody_answers(self._path, error.strerror or str(error)) from None


def nobody_answers(path: Path, why: str) -> Unreachable:
    where = "" if typed_options() else ELSEWHERE
    return Unreachable(f"No gateway answers on {path} ({why}). Start one with `agent-gate serve`{where}")


def remember_typed(options: dict[str, Path | None]) -> None:
    """Keep how the gateway was named, for what this command advises."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[TYPED] = [
            part for name, value in options.items() if value for part in (name, str(value))
        ]


def typed_options() -> Sequence[str]:
    context = click.get_current_context(silent=True)
    return context.meta.get(TYPED, ()) if context is not None else ()


def reaching(text: str) -> str:
    """A text whose advised commands name the gateway as this one did."""
    return complete(text, typed_options())


class AdminClient:
    """Asks the running gateway; an error it answers is raised as what it is."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def connection(self, timeout: float | None = PATIENCE) -> http.client.HTTPConnection:
        return UnixConnection(self.path, timeout)

    def request(self, method: str, path: str, body: Any = None, *, timeout: float | None = PATIENCE) -> Any:
        connection = self.connection(timeout)
        try:
            headers = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._stopped(error) from None
        finally:
            connection.close()
        if response.status >= 400:
            raise self._error(data)
        return (
            json.loads(data) if response.headers.get_content_type() == "application/json" else data.decode()
        )

    def _stopped(self, error: Exception | None = None) -> Unreachable:
        return Unreachable(f"The gateway on {self.path} stopped answering{f': {error}' if error else ''}")

    def _error(self, data: bytes) -> GatewayError:
        try:
            said = json.loads(data)["error"]
        except (ValueError, KeyError, TypeError):
            return Internal("The gateway answered something that cannot be read")
        error = by_code().get(said["code"], Internal)(said["message"])
        error.details = said.get("details")
        return error

    def get(self, path: str, *, timeout: float | None = PATIENCE) -> Any:
        return self.request("GET", path, timeout=timeout)

    def portions(self, path: str) -> Iterator[bytes]:
        """A long answer as it comes; one that ends too early is an error."""
        connection = self.connection()
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            if response.status >= 400:
                raise self._error(response.read())
            while portion := response.read1(PORTION):
                yield portion
        except (OSError, http.client.HTTPException) as error:
            raise self._stopped(error) from None
        finally:
            connection.close()

    def events(self, path: str, *, endless: bool = True) -> Iterator[tuple[str, Any]]:
        """Server-Sent Events for as long as the gateway runs; where more was wanted its end is an error.

        The gateway has begun to tell when this returns: look at what there is afterwards, and nothing is missed.
        """
        told = self._listen(path, endless)
        next(told, None)
        return told

    def _listen(self, path: str, endless: bool) -> Iterator[tuple[str, Any]]:
        connection = self.connection(None)
        try:
            connection.request("GET", path)
            response, kind = connection.getresponse(), "message"
            if response.status >= 400:
                raise self._error(response.read())
            first = response.readline()
            yield "open", None
            for raw in chain([first], iter(response.readline, b"")):
                line = raw.decode().rstrip("\n")
                if line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: "):
                    yield kind, json.loads(line[6:])
        except (ConnectionError, http.client.HTTPException) as error:
            raise self._stopped(error) from None
        finally:
            connection.close()
        if endless:
            raise self._stopped()


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
    from agent_gate.config.decode import beside
    from agent_gate.config.files.dotenv import environment
    from agent_gate.config.files.nodes import fail
    from agent_gate.config.files.variables import Variables
    from agent_gate.config.files.yamlfile import read_yaml

    admin = read_yaml(config).get("admin")
    given = admin.get("socket") if admin is not None else None
    if given is None:
        return config.parent / DEFAULT_SOCKET
    env, _ = environment(config, os.environ, [])
    name = Variables(env).fill(given, "admin.socket").value
    if not isinstance(name, str):
        fail(given.mark, "admin.socket", f"expected a path, found {given.kind}")
    return beside(given.mark, Path(name))


def socket_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--admin-socket` and `--config`, which name a gateway of this machine."""
    function = click.option("--config", type=PATH, help=CONFIG_HELP)(function)
    return click.option("--admin-socket", type=PATH, help=SOCKET_HELP)(function)


def admin_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--admin-socket`, `--config`, `--remote` and `--json`, for every operator command."""
    return socket_options(with_option(remote_option())(json_option(function)))


def with_option(option: click.Option) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option that was made before, on a function that becomes a command."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(function, click.Command):
            function.params.append(option)
        else:
            function.__dict__.setdefault("__click_params__", []).append(option)
        return function

    return add


class OperatorGroup(click.Group):
    """A group whose options may also stand after the verb: `approvals approve ID --config FILE`. What its commands fail
    in, it reports."""

    def invoke(self, ctx: click.Context) -> Any:
        with reporting():
            return super().invoke(ctx)

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        cmd.params += shared_options()
        super().add_command(cmd, name)


def shared_options() -> list[click.Option]:
    """What `admin_options` are, for a command of a group; the socket is read last, so that it wins."""

    def by_config(ctx: click.Context, _option: click.Parameter, config: Path | None) -> None:
        if config is not None:
            with reporting():
                ctx.obj["client"] = client_of(None, config)

    def by_socket(ctx: click.Context, _option: click.Parameter, admin_socket: Path | None) -> None:
        if admin_socket is not None:
            ctx.obj["client"] = client_of(admin_socket, None)

    def by_json(ctx: click.Context, _option: click.Parameter, as_json: bool) -> None:
        if as_json:
            ctx.obj["json"] = True

    return [
        click.Option(["--admin-socket"], type=PATH, help=SOCKET_HELP, callback=by_socket, expose_value=False),
        click.Option(
            ["--config"], type=PATH, help=CONFIG_HELP, callback=by_config, expose_value=False, is_eager=True
        ),
        remote_option(),
        click.Option(["--json"], is_flag=True, help=JSON_HELP, callback=by_json, expose_value=False),
    ]


def client_of(admin_socket: Path | None, config: Path | None) -> AdminClient:
    """The gateway on its admin socket, or the one elsewhere that this terminal was paired with."""
    context = click.get_current_context(silent=True)
    remote = context.meta.get(REMOTE) if context is not None else None
    remember_typed({"--remote": remote} if remote else {"--admin-socket": admin_socket, "--config": config})
    if remote is not None and admin_socket is None:
        from agent_gate.cli.remote import RemoteClient

        return RemoteClient(remote)
    return AdminClient(socket_of(admin_socket, config))


def remote_option() -> click.Option:
    def by_folder(ctx: click.Context, _option: click.Parameter, folder: Path | None) -> None:
        if folder is not None:
            ctx.meta[REMOTE] = folder
            if isinstance(ctx.obj, dict):
                with reporting():
                    ctx.obj["client"] = client_of(None, None)

    return click.Option(
        ["--remote"], type=PATH, help=REMOTE_HELP, callback=by_folder, expose_value=False, is_eager=True
    )


@contextmanager
def reporting() -> Iterator[None]:
    """Turn an expected failure into its line on stderr and its exit code."""
    try:
        yield
    except GatewayError as error:
        say(f"Error: {reaching(error.message)}", err=True)
        sys.exit(error.exit)
    except BrokenPipeError:
        sys.exit(0)


def tell(ctx: click.Context, found: Any, text: str) -> None:
    """What the gateway answered: as JSON where the command or its group was told so, else in words."""
    print_json(found) if ctx.obj["json"] else say(reaching(text))


def admin_group(text: str, first: str = "list") -> click.Group:
    """A group of operator commands that share their client and `--json`; alone it runs the command `first`, if any."""

    @click.group(cls=OperatorGroup, invoke_without_command=bool(first), help=text)
    @admin_options
    @click.pass_context
    def group(ctx: click.Context, admin_socket: Path | None, config: Path | None, as_json: bool) -> None:
        ctx.obj = {"client": client_of(admin_socket, config), "json": as_json}
        if ctx.invoked_subcommand is None:
            ctx.invoke(group.commands[first])

    return group


def add_listing(
    group: click.Group, path: str, listing: Callable[[Any], str], text: str, *, name: str = "list"
) -> None:
    """A command that shows what the gateway says at `path`, as `listing` has it."""

    @group.command(name, help=text)
    @click.pass_context
    def show(ctx: click.Context) -> None:
        found = ctx.obj["client"].get(path)
        tell(ctx, found, listing(found))


def read_secret(what: str) -> str:
    """What is piped in, else what is typed at a prompt that shows nothing; an argument could be read by everybody on the
    machine."""
    if not sys.stdin.isatty():
        return sys.stdin.read().strip("\r\n")
    return str(click.prompt(what, hide_input=True, err=True))
