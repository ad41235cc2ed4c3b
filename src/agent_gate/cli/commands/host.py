"""`agent-gate host run`: serve the tools of a Python module to a paired gateway, or on a Unix socket."""

import asyncio
import importlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_gate.cli.operator import reporting
from agent_gate.cli.output import put
from agent_gate.errors import ConfigError

if TYPE_CHECKING:
    from agent_gate.hosts import Host
    from agent_gate.hosts.server import HostServer, HostSetup

KEY_HELP = "The gateway's public key, as `agent-gate identity` prints it there."


def load_host(spec: str) -> "Host":
    """`package.module:name` or `file.py:name`."""
    from agent_gate.hosts import Host

    module, _, name = spec.partition(":")
    path = Path(module)
    if path.suffix == ".py":
        sys.path.insert(0, str(path.absolute().parent))
        module = path.stem
    else:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name or "host", None)
    except ImportError as error:
        raise ConfigError(f"{module} cannot be imported: {error}") from None
    if not isinstance(found, Host):
        raise ConfigError(f"{spec} is no Host. Write MODULE:NAME, where NAME = Host(…)")
    return found


def split_address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"{listen} is no address to listen on; write HOST:PORT")
    return host.strip("[]"), int(port)


def settings_of(host: "Host", name: str, state: Path, key: str, pair_again: bool) -> "HostSetup":
    from agent_gate.hosts.server import HostSetup
    from agent_gate.peers.encoding import Malformed
    from agent_gate.peers.signing import check_public_key

    if not key:
        raise ConfigError(
            "Which gateway may call this host? Give its key with --gateway-key; `agent-gate identity` prints it there"
        )
    try:
        public = check_public_key(key)
    except Malformed as error:
        raise ConfigError(f"--gateway-key is no public key of a gateway: {error}") from None
    return HostSetup(component_id=name or host.name, folder=state, gateway_key=public, pair_again=pair_again)


def announce(server: "HostServer") -> None:
    """One line for people and programs: where it is, and the fingerprint to pair it with."""
    if server.folder is None:
        put(json.dumps({"socket": server.server.address}))
        return
    where = server.server
    put(
        json.dumps(
            {
                "url": f"wss://{f'[{where.address}]' if ':' in where.address else where.address}:{where.port}",
                "fingerprint": server.folder.identity.fingerprint,
                "paired": server.membership is not None,
            }
        )
    )


@click.group()
def command() -> None:
    """Tools of your own, on this machine or another one."""


@command.command("run")
@click.argument("spec", metavar="MODULE:HOST")
@click.option("--name", default="", help="The NAME it is paired under; otherwise what it calls itself.")
@click.option("--listen", default="127.0.0.1:5225", show_default=True, help="Where the gateway reaches it.")
@click.option("--socket", type=click.Path(path_type=Path), help="A Unix socket instead, for a gateway here.")
@click.option("--gateway-key", envvar="GATEWAY_PUBLIC_KEY_ED25519", default="", help=KEY_HELP)
@click.option(
    "--state", type=click.Path(path_type=Path), help="Its folder of keys; ./NAME.host if not given."
)
@click.option("--pair-again", is_flag=True, help="Forget the gateway it was paired with.")
def run_command(
    spec: str,
    name: str,
    listen: str,
    socket: Path | None,
    gateway_key: str,
    state: Path | None,
    pair_again: bool,
) -> None:
    """Serve until it is stopped. MODULE:HOST is an importable module or a file.py, and the Host in it."""
    with reporting():
        host = load_host(spec)
        settings = None
        if socket is None:
            folder = state or Path(f"{name or host.name}.host")
            settings = settings_of(host, name, folder, gateway_key, pair_again)
        asyncio.run(host.serve(announce, settings=settings, listen=split_address(listen), socket=socket))
