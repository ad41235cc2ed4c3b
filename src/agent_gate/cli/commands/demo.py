"""`agent-gate demo`: the gateway with something real behind it, on loopback, from one folder."""

import os
from pathlib import Path

import click
import uvloop

from agent_gate.cli.commands.serve import run
from agent_gate.cli.demo.authority import TOKEN_SECONDS
from agent_gate.cli.demo.home import Home
from agent_gate.cli.demo.notes import PATH as NOTES_PATH
from agent_gate.cli.demo.notes import Notes
from agent_gate.cli.demo.shop import Shop
from agent_gate.cli.demo.starter import ensure_secrets, has_browser, write_starter
from agent_gate.cli.operator import reporting
from agent_gate.cli.output import PATH, say
from agent_gate.config.options import Options
from agent_gate.errors import ConfigError
from agent_gate.net.server import Server

HOME_PORT, NOTES_PORT, SHOP_PORT = 8124, 8125, 8126


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

Connect an account: notes is an MCP server that wants a sign-in. Open the link that this prints:
  agent-gate auth start notes --config {folder}/config.yaml
  agent-gate request notes__list_notes                  # its tokens last 30 seconds and renew themselves
  agent-gate auth --config {folder}/config.yaml         # whose account, until when, when it was renewed

{visit_the_shop()}Connect a client, here Claude Code; without a name, connect shows the line for every other:
  agent-gate connect claude-code --config {folder}/config.yaml
Any other MCP client: {url}/mcp with the header Authorization: Bearer $AGENT_TOKEN

Ctrl-C stops everything.
"""


def visit_the_shop() -> str:
    """What to try with a browser, where there is one."""
    if not has_browser():
        return ""
    shop = f"http://{os.environ.get('SHOP_HOST', '')}/"
    return f"""Let an agent visit the shop at {shop} ; what submits the order is asked, with a picture:
  AGENT_GATE_SESSION=shopping                           # a session has a browser of its own
  agent-gate request browser_navigate url={shop}product/1     # allowed
  agent-gate request browser_snapshot                   # the page, with references to click on

"""


async def start_server(server: Server, port: int) -> Server:
    """The server on its usual port, or on any other one when that is taken."""
    try:
        await server.start("127.0.0.1", port)
    except ConfigError:
        await server.start("127.0.0.1", 0)
    return server


async def start_notes(folder: Path, token_seconds: float) -> Server:
    notes = Notes(folder / "data", token_seconds)
    server = await start_server(Server(notes.handle), NOTES_PORT)
    notes.authority.issuer = f"http://127.0.0.1:{server.port}"
    os.environ.setdefault("NOTES_URL", f"{notes.origin}{NOTES_PATH}")
    return server


async def play(folder: Path, port: int | None, token_seconds: float) -> None:
    """Start the home, the notes and the shop, then the gateway in front of them; all end together."""
    # As the gateway reads it: the environment wins, which may still hold another folder's token.
    token = {**ensure_secrets(folder / ".env"), **os.environ}["HOME_TOKEN"]
    home = await start_server(Server(Home(token).handle), HOME_PORT)
    notes = await start_notes(folder, token_seconds)
    shop = await start_server(Server(Shop().handle), SHOP_PORT)
    os.environ.setdefault("HOME_URL", f"http://127.0.0.1:{home.port}")
    os.environ.setdefault("SHOP_HOST", f"127.0.0.1:{shop.port}")
    options = Options(config=folder / "config.yaml", port=port, insecure=True)
    try:
        await run(
            options,
            ready=lambda gateway: say(introduction(folder, gateway.listeners.url()), err=True),
            log_format=os.environ.get("LOG_FORMAT", "text"),
        )
    finally:
        await home.drain(1.0)
        await notes.drain(1.0)
        await shop.drain(1.0)


@click.command()
@click.option(
    "--folder",
    type=PATH,
    default=Path("home"),
    show_default=True,
    help="Where configuration and data live.",
)
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 takes any free one.")
@click.option(
    "--token-seconds",
    type=click.FloatRange(min=1),
    default=TOKEN_SECONDS,
    show_default=True,
    help="How long the tokens of the notes last, to watch them renew.",
)
def command(folder: Path, port: int | None, token_seconds: float) -> None:
    """Run the gateway with a small home and a server of notes behind it, ready to try."""
    if write_starter(folder):
        say(f"Wrote a starter configuration to {folder}/", err=True)
    with reporting():
        uvloop.run(play(folder, port, token_seconds))
