"""`agent-gate bridge URL`: a stdio MCP server that forwards everything to a gateway."""

import asyncio
import os
import sys
from pathlib import Path

import click

from agent_gate.cli.seconds import Seconds
from agent_gate.client.bridge import bridge
from agent_gate.client.exchange import Address, Http
from agent_gate.errors import ConfigError


def read_token(file: Path | None) -> str | None:
    """The agent's token: from the named file, else from AGENT_TOKEN."""
    if file is None:
        return os.environ.get("AGENT_TOKEN", "").strip() or None
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"Cannot read the token file {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"The token file {file} holds no text") from None


@click.command()
@click.argument("url", envvar="AGENT_GATE_URL")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="File that holds the agent's token, instead of AGENT_TOKEN.",
)
@click.option("--ca", type=click.Path(path_type=Path), envvar="AGENT_GATE_CA", help="Certificate to trust.")
@click.option("--fingerprint", help="The gateway's certificate, as sha256:HEX; nothing else is trusted.")
@click.option(
    "--patience",
    type=Seconds(open_=False),
    default=300.0,
    show_default=True,
    help="Seconds to wait for a gateway that is away.",
)
def command(
    url: str, token_file: Path | None, ca: Path | None, fingerprint: str | None, patience: float
) -> None:
    """Speak MCP on stdin and stdout and forward it to the gateway at URL.

    `/mcp` is appended to a bare address. The token comes from AGENT_TOKEN.
    """
    try:
        http = Http(Address.parse(url), ca, fingerprint)
        token = read_token(token_file)
    except ConfigError as error:
        from agent_gate.cli.output import say  # a host starts the bridge often, and mostly nothing is wrong

        say(f"Error: {error.message}", err=True)
        sys.exit(error.exit)
    asyncio.run(bridge(http, token, patience))
