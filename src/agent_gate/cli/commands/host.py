"""`agent-gate host run`: serve the tools of a Python module to a paired gateway, or on a Unix socket."""

import asyncio
import importlib
import json
import sys
from pathlib import Path

import click

from agent_gate.cli.operator import reporting
from agent_gate.cli.output import PATH, put
from agent_gate.errors import ConfigError
from agent_gate.hosts import Host
from agent_gate.hosts.component import HostSetup
from agent_gate.hosts.server import HostServer
from agent_gate.peers.encoding import Malformed
from agent_gate.peers.signing import check_public_key

KEY_HELP = "The gateway's public key, as `agent-gate identity` prints it there."


def load_host(spec: str) -> Host:
    """`package.module:name` or `file.py:name`."""
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


def public_key(key: str) -> bytes:
    """The gateway's key, as it was given on the command line."""
    if not key:
        raise ConfigError(
            "Which gateway may call this host? Give its key with --gateway-key; `agent-gate identity` prints it there"
        )
    try:
        return check_public_key(key)
    except Malformed as error:
        raise ConfigError(f"--gateway-key is no public key of a gateway: {error}") from None


def announce(server: HostServer) -> None:
    """One line for people and programs: where it is, and the fingerprint to pair it with."""
    if server.folder is None:
        put(json.dumps({"socket": server.server.address}))
        return
    where = server.server
    told: dict[str, object] = {}
    if where.address:
        name = f"[{where.address}]" if ":" in where.address else where.address
        told["url"] = f"wss://{name}:{where.port}"
    told |= {"fingerprint": server.folder.identity.fingerprint, "paired": server.membership is not None}
    put(json.dumps(told))


@click.group()
def command() -> None:
    """Tools of your own, on this machine or another one."""


@command.command("run")
@click.argument("spec", metavar="MODULE:HOST")
@click.option("--name", default="", help="The NAME it is paired under; otherwise what it calls itself.")
@click.option("--listen", default="127.0.0.1:5225", show_default=True, help="Where the gateway reaches it.")
@click.option("--socket", type=PATH, help="A Unix socket instead, for a gateway here.")
@click.option("--gateway", default="", help="The gateway's peers: listener, wss://HOST:PORT, to publish to.")
@click.option("--dial", is_flag=True, help="Do not listen: dial --gateway, and be called through that.")
@click.option("--gateway-key", envvar="GATEWAY_PUBLIC_KEY_ED25519", default="", help=KEY_HELP)
@click.option("--state", type=PATH, help="Its folder of keys; ./NAME.host if not given.")
@click.option("--pair-again", is_flag=True, help="Forget the gateway it was paired with.")
def run_command(
    spec: str,
    name: str,
    listen: str,
    socket: Path | None,
    gateway: str,
    dial: bool,
    gateway_key: str,
    state: Path | None,
    pair_again: bool,
) -> None:
    """Serve until it is stopped. MODULE:HOST is an importable module or a file.py, and the Host in it."""
    if (dial or gateway) and not gateway.startswith("wss://"):
        raise click.UsageError("--gateway is wss://HOST:PORT, the peers: listener of the gateway")
    with reporting():
        host = load_host(spec)
        settings = None
        if socket is None:
            settings = HostSetup(
                component_id=name or host.name,
                folder=state or Path(f"{name or host.name}.host"),
                gateway_key=public_key(gateway_key),
                pair_again=pair_again,
                gateway_url=gateway,
            )
        place = None if dial else split_address(listen)
        asyncio.run(host.serve(announce, settings=settings, listen=place, socket=socket))
