"""`agent-gate`: finds the command and loads only its module, so that `--help` imports nothing else."""

import difflib
import errno
import os
import socket
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click

from agent_gate import __version__
from agent_gate.errors import ConfigError, Internal
from agent_gate.net.unixpath import reachable

PACKAGE = "agent_gate.cli.commands"
SOCKET = Path("data/admin.sock")
USAGE_OF_AGENTS = 4
INTERRUPTED = 130
OWN_FLAGS = frozenset({"--help", "-h", "--version"})

GROUPS: dict[str, dict[str, str]] = {
    "For agents": {
        "request": "Call a tool and print its result as JSON.",
        "tools": "List the tools this agent may call, as JSON.",
        "pending": "Print and acknowledge results that came while nobody waited.",
        "browse": "Walk the catalog by path, as JSON.",
        "bridge": "Speak MCP on stdio to a gateway elsewhere.",
    },
    "For operators": {
        "serve": "Run the gateway until it is stopped (the default).",
        "status": "The running gateway at a glance.",
        "login": "Print a link to the operator's page.",
        "approvals": "See and answer what waits for a person.",
        "grants": "See and revoke remembered answers.",
        "audit": "Read, verify and export the record.",
        "backup": "Copy the store and its keys, also while the gateway runs.",
        "sources": "Where the tools come from, and how they are.",
        "auth": "Connect accounts of servers and services, and end them.",
        "secrets": "Keep secrets that the configuration refers to.",
        "vault": "The key under which secrets and accounts are kept.",
        "agents": "Who may call, and their tokens.",
        "entries": "Changes made on the page that wait for a yes here.",
        "operators": "Who may use the admin API from programs.",
        "identity": "Print this gateway's public key, which hosts are given.",
        "pair": "Pair a tool host, a subscriber or a CLI.",
        "peers": "Who is paired, and taking it back.",
        "host": "Run a tool host, to be paired with a gateway.",
        "join": "Let a gateway pair this machine as a subscriber, a listener or a CLI.",
        "events": "What happens, as subscribers hear it.",
        "tokens": "What the catalog costs in each mode, in tokens.",
        "explain": "Why a call would be allowed, asked or denied.",
        "policy": "Try changed rules on recorded calls.",
    },
    "To set up": {
        "init": "Write a configuration to start from.",
        "import": "Take over servers from other clients' files.",
        "openapi": "Make tools of an HTTP API from its OpenAPI document.",
        "connect": "Write this gateway into a client's file.",
        "disconnect": "Put a client's file back as it was.",
        "check": "Look for mistakes in the configuration.",
        "doctor": "Look for problems with this installation.",
        "schema": "Print the JSON Schema of a configuration file.",
        "session": "Start a gateway for one session.",
        "demo": "Start a gateway with something real to try.",
        "completion": "Print the shell's completion script.",
    },
}
AGENT_COMMANDS = frozenset({"request", "tools", "pending", "browse", "completion"})
KEYWORDS = {"import": "import_"}


def module_of(name: str) -> str:
    return f"{PACKAGE}.{KEYWORDS.get(name, name.replace('-', '_'))}"


def installed(name: str) -> bool:
    return find_spec(module_of(name)) is not None


class Commands(click.Group):
    """A group whose commands are modules: listed from the table above, imported when they run."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return [name for group in GROUPS.values() for name in group if installed(name)]

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        known = any(cmd_name in group for group in GROUPS.values())
        if not known or not installed(cmd_name):
            return None
        command: click.Command = import_module(module_of(cmd_name)).command
        command.name = cmd_name
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not near:
                raise
            said = f"No such command {args[0]!r}. Did you mean {near[0]!r}?"
            raise click.UsageError(said, ctx=ctx) from None

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, group in GROUPS.items():
            rows = [(name, text) for name, text in group.items() if installed(name)]
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="agent-gate")
def cli() -> None:
    """The gate between AI agents and everything they may touch.

    Without a command the gateway is started; its options may follow directly: agent-gate --insecure.
    """


def gateway_answers() -> bool:
    """Whether a gateway listens on the admin socket of this folder."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            with reachable(SOCKET) as name:
                probe.connect(name)
        except OSError:
            return False
    return True


def with_command(arguments: Sequence[str]) -> list[str]:
    """The arguments with their command: flags alone belong to `serve`, nothing at all asks for the status."""
    if not arguments:
        return ["status"] if gateway_answers() else ["serve"]
    if arguments[0].startswith("-") and arguments[0] not in OWN_FLAGS:
        return ["serve", *arguments]
    return list(arguments)


def usage_exit(error: click.UsageError) -> int:
    """Usage errors of agent commands are invalid arguments; for the others click's own code stands."""
    context = error.ctx
    while context is not None and context.parent is not None and context.parent.parent is not None:
        context = context.parent
    name = context.info_name if context is not None else None
    return USAGE_OF_AGENTS if name in AGENT_COMMANDS else error.exit_code


def complain(error: click.ClickException) -> int:
    if isinstance(error, click.UsageError):
        code = usage_exit(error)
        kind = "Invalid argument format: " if code == USAGE_OF_AGENTS else ""
        click.echo(f"Error: {kind}{error.format_message()}", err=True)
        if error.ctx is not None:
            click.echo(f"Try: {error.ctx.command_path} --help", err=True)
        return code
    error.show()
    return error.exit_code


def unusable(error: OSError) -> int:
    """A file or a disk that does not do what a command needs of it."""
    if error.filename is None and error.errno != errno.ENOSPC:
        return broken(error)
    where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    click.echo(f"Error: {where}{error.strerror}", err=True)
    return ConfigError.exit


def broken(error: Exception) -> int:
    """A mistake of ours, with all there is to find it by. Python's own exit code would say *denied*."""
    import traceback

    traceback.print_exception(error)
    return Internal.exit


def keep_standard_files() -> None:
    """Open nothing in the place of a standard file that was closed, lest a socket or a database becomes stdin."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(
                os.open(os.devnull, os.O_RDWR), True
            )  # the lowest number there is, which is this
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    keep_standard_files()
    given = with_command(sys.argv[1:] if arguments is None else arguments)
    try:
        code = cli.main(given, prog_name="agent-gate", standalone_mode=False)
    except click.ClickException as error:
        sys.exit(complain(error))
    except click.Abort:
        click.echo("\nStopped, since there was no answer.", err=True)
        sys.exit(INTERRUPTED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        sys.exit(unusable(error))
    except Exception as error:  # noqa: BLE001 the boundary: no fault may end in a code that means something else
        sys.exit(broken(error))
    sys.exit(code if isinstance(code, int) else 0)
