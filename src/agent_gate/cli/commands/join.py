"""`agent-gate join`: offer a pairing endpoint of this machine's own, until a gateway has paired it."""

import asyncio
import json
from pathlib import Path

import click

from agent_gate.cli.commands.host import KEY_HELP, public_key, split_address
from agent_gate.cli.operator import reporting
from agent_gate.cli.output import PATH, put, say
from agent_gate.hosts.component import HostSetup
from agent_gate.hosts.kept import save_setup
from agent_gate.hosts.server import HostServer

KINDS = {"subscriber": "subscriber", "listener": "listener", "cli": "operator"}


@click.command()
@click.argument("kind", type=click.Choice(tuple(KINDS)))
@click.argument("name")
@click.option("--listen", default="127.0.0.1:7443", show_default=True, help="Where the gateway pairs it.")
@click.option("--gateway", required=True, help="The gateway's peers: listener, as wss://HOST:PORT.")
@click.option("--gateway-key", envvar="GATEWAY_PUBLIC_KEY_ED25519", default="", help=KEY_HELP)
@click.option("--state", type=PATH, help="Its folder of keys; ./NAME.peer if not given.")
def command(kind: str, name: str, listen: str, gateway: str, gateway_key: str, state: Path | None) -> None:
    """Be paired as NAME: `agent-gate pair KIND URL NAME` on the gateway does it. Ends once that is done."""
    with reporting():
        if not gateway.startswith("wss://"):
            raise click.UsageError("--gateway is wss://HOST:PORT, the peers: listener of the gateway")
        setup = HostSetup(
            component_id=name,
            folder=(state or Path(f"{name}.peer")).absolute(),
            gateway_key=public_key(gateway_key),
            pair_again=True,
            component_type=KINDS[kind],  # type: ignore[arg-type]
            gateway_url=gateway,
        )
        asyncio.run(join_gateway(setup, *split_address(listen)))
        say(f"Paired. Use it with --remote {setup.folder}")


async def join_gateway(setup: HostSetup, host: str, port: int) -> None:
    server = HostServer(setup.component_id, {}, setup)
    assert server.folder is not None
    save_setup(setup)
    await server.start(host, port)
    where = server.server
    name = f"[{where.address}]" if ":" in where.address else where.address
    put(
        json.dumps(
            {"url": f"wss://{name}:{where.port}/v1/pair", "fingerprint": server.folder.identity.fingerprint}
        )
    )
    try:
        await server.wait_until_paired()
    finally:
        await server.stop(1.0)
