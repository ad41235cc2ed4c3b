"""`agent-gate pair`: pair a component through the gateway's admin socket, phase by phase."""

import asyncio
import json
import secrets
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import unix_connect

from agent_gate.cli.operator import client_of, nobody_answers, reporting, socket_of, socket_options
from agent_gate.cli.output import json_option, print_json, say
from agent_gate.errors import GatewayError, Internal, by_code
from agent_gate.hosts import Host
from agent_gate.hosts.component import HostSetup
from agent_gate.net.unixpath import reachable
from agent_gate.peers.encoding import from_base64

PATIENCE = 180.0
LISTEN_PATIENCE = 900.0
LISTEN_HELP = "Wait ten minutes for a host that dials the peers: listener of this gateway."
PIN_HELP = "The fingerprint of the component's key, as it prints it when it starts."


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    return socket_options(json_option(function))


def ask_person(fingerprint: str) -> bool:
    """Whether somebody at a terminal compared the whole fingerprint; without a terminal it is a no."""
    if not sys.stdin.isatty():
        return False
    say(f"The component's key is\n  {fingerprint}")
    answer: str = click.prompt("Is that what it printed itself? Type yes", default="no", show_default=False)
    return answer.strip() == "yes"


def pair(path: Path, wanted: dict[str, Any], *, quiet: bool, patience: float = PATIENCE) -> dict[str, Any]:
    """The gateway's answer; phases are told as they come, and a person is asked where no pin was given."""
    try:
        with reachable(path) as name:
            socket = unix_connect(name, "ws://localhost/v1/pairings/ws", compression=None)
        with socket:
            socket.send(json.dumps({"action": "pair.start", **wanted}))
            while True:
                said = json.loads(socket.recv(patience))
                if said["action"] == "pair.phase" and not quiet:
                    say(f"{said['phase']}/7 {said['text']}" if said["phase"] else said["text"])
                elif said["action"] == "pair.confirm":
                    yes = ask_person(said["fingerprint"])
                    socket.send(json.dumps({"action": "pair.confirm", "yes": yes}))
                elif said["action"] == "pair.result":
                    return result_of(said)
    except (OSError, ConnectionClosed, InvalidHandshake, TimeoutError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise nobody_answers(path, why) from None


def result_of(said: dict[str, Any]) -> dict[str, Any]:
    if said["ok"]:
        found: dict[str, Any] = said["result"]
        return found
    error: GatewayError = by_code().get(said["error"]["code"], Internal)(said["error"]["message"])
    raise error


@click.group()
def command() -> None:
    """Pair a component: it proves its key, gets a certificate, and is believed from then on."""


@command.command("tool")
@click.argument("url", required=False, default="")
@click.argument("name", required=False, default="")
@click.option("--remote-fingerprint", help=PIN_HELP)
@click.option("--listen", is_flag=True, help=LISTEN_HELP)
@click.option("--pool", default="", help="A namespace that several hosts share; whichever is there answers.")
@click.option("--publish", default="", help="Event types it may publish, with commas: cron.*,heartbeat.tick")
@options
def tool_command(
    url: str,
    name: str,
    remote_fingerprint: str | None,
    listen: bool,
    pool: str,
    publish: str,
    admin_socket: Path | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Pair the tool host at URL and serve its tools in the namespace NAME; with --listen it dials in: NAME alone."""
    if listen and not name:
        url, name = "", url
    if not name or listen == bool(url):
        raise click.UsageError("Say URL NAME, or --listen NAME for a host that can only dial out")
    with reporting():
        wanted = {
            "component_type": "tool_host",
            "component_id": name,
            "endpoint": url,
            "remote_fingerprint": remote_fingerprint,
            "listen": listen,
            "pool": pool,
            "publish": [one.strip() for one in publish.split(",") if one.strip()],
        }
        patience = LISTEN_PATIENCE if listen else PATIENCE
        found = pair(socket_of(admin_socket, config), wanted, quiet=as_json, patience=patience)
        print_json(found) if as_json else say(f"{name} is paired. See `agent-gate peers show {name}`.")


def component(kind: str, what: str) -> None:
    @command.command(kind if kind != "operator" else "cli", help=what)
    @click.argument("url")
    @click.argument("name")
    @click.option("--remote-fingerprint", help=PIN_HELP)
    @options
    def run(
        url: str,
        name: str,
        remote_fingerprint: str | None,
        admin_socket: Path | None,
        config: Path | None,
        as_json: bool,
    ) -> None:
        with reporting():
            wanted = {
                "component_type": kind,
                "component_id": name,
                "endpoint": url,
                "remote_fingerprint": remote_fingerprint,
            }
            found = pair(socket_of(admin_socket, config), wanted, quiet=as_json)
            print_json(found) if as_json else say(f"{name} is paired. See `agent-gate peers show {name}`.")


component("subscriber", "Pair the subscriber at URL under NAME.")
component("listener", "Pair the listener at URL under NAME.")
component("operator", "Pair the CLI at URL under NAME.")


@command.command("test")
@options
def test_command(admin_socket: Path | None, config: Path | None, as_json: bool) -> None:
    """Pair with a host that is made for it on this machine, and leave no peer behind."""
    with reporting():
        found = asyncio.run(try_pairing(socket_of(admin_socket, config), quiet=as_json))
        print_json(found) if as_json else say("Pairing works. Nothing was left behind.")


async def try_pairing(path: Path, *, quiet: bool) -> dict[str, Any]:
    identity = await asyncio.to_thread(client_of(path, None).get, "/v1/identity")
    name, key = f"test-{secrets.token_hex(4)}", from_base64(identity["public_key_ed25519"])
    with tempfile.TemporaryDirectory() as folder:
        setup = HostSetup(component_id=name, folder=Path(folder) / "host", gateway_key=key)
        server = Host("pairing test").server(setup)
        await server.start("127.0.0.1", 0)
        assert server.folder is not None
        wanted = {
            "component_type": "tool_host",
            "component_id": name,
            "endpoint": f"wss://127.0.0.1:{server.server.port}",
            "remote_fingerprint": server.folder.identity.fingerprint,
            "test": True,
        }
        try:
            return await asyncio.to_thread(pair, path, wanted, quiet=quiet)
        finally:
            await server.stop(0.1)
