"""`agent-gate demo`: the gateway with something real behind it, on loopback, from one folder."""

import os
import sys
from pathlib import Path

import click
import uvloop

from agent_gate.cli.commands.serve import run
from agent_gate.cli.demo.home import Home
from agent_gate.cli.demo.starter import ensure_secrets, write_starter
from agent_gate.cli.output import say
from agent_gate.config.options import Options
from agent_gate.errors import ConfigError, GatewayError
from agent_gate.net.server import Server

HOME_PORT = 8124


def introduction(folder: Path, url: str) -> str:
    """What to do next, in another terminal."""
    return f"""
agent-gate is up at {url} (plain HTTP, on this machine only)
Tokens are in {folder}/.env; configuration and rules are in {folder}/

Try this in another terminal:
  set -a; . {folder}/.env; AGENT_GATE_URL={url}; PATH=$PWD/.venv/bin:$PATH
  agent-gate request ha_get_state entity_id=sensor.living_room_temperature                  # allowed
  agent-gate request ha_call_service domain=lock service=unlock entity_id=lock.front_door   # denied
  agent-gate request ha_call_service domain=light service=turn_on entity_id=light.bedroom   # asked

The last one waits for you. Answer it on the page (the link is below), or in a third terminal:
  PATH=$PWD/.venv/bin:$PATH
  agent-gate approvals approve --config {folder}/config.yaml

Connect a client, here Claude Code; without a name, connect shows the line for every other:
  agent-gate connect claude-code --config {folder}/config.yaml
Any other MCP client: {url}/mcp with the header Authorization: Bearer $AGENT_TOKEN

Ctrl-C stops everything.
"""


async def start_home(token: str) -> Server:
    """The home on its usual port, or on any other one when that is taken."""
    home = Server(Home(token).handle)
    try:
        await home.start("127.0.0.1", HOME_PORT)
    except ConfigError:
        await home.start("127.0.0.1", 0)
    return home


async def play(folder: Path, port: int | None) -> None:
    """Start the home, then the gateway in front of it; both end together."""
    # As the gateway reads it: the environment wins, which may still hold another folder's token.
    home = await start_home({**ensure_secrets(folder / ".env"), **os.environ}["HOME_TOKEN"])
    os.environ.setdefault("HOME_URL", f"http://127.0.0.1:{home.port}")
    options = Options(config=folder / "config.yaml", port=port, insecure=True)
    try:
        await run(
            options,
            ready=lambda gateway: say(introduction(folder, gateway.listeners.url()), err=True),
            log_format=os.environ.get("LOG_FORMAT", "text"),
        )
    finally:
        await home.drain(1.0)


@click.command()
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path("home"),
    show_default=True,
    help="Where configuration and data live.",
)
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 takes any free one.")
def command(folder: Path, port: int | None) -> None:
    """Run the gateway with a small home behind it, ready to try."""
    if write_starter(folder):
        say(f"Wrote a starter configuration to {folder}/", err=True)
    try:
        uvloop.run(play(folder, port))
    except GatewayError as error:
        say(f"Error: {error.message}", err=True)
        sys.exit(error.exit)
