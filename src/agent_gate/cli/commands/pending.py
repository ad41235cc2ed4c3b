"""`agent-gate pending`: results that came while nobody waited."""

import click
import msgspec

from agent_gate.cli.agent import ConnectOptions, connection_options, run, write_json
from agent_gate.client.client import Client


async def collect(client: Client, timeout: float, keep: bool) -> None:
    """Print first, acknowledge after: what was not written out stays at the gateway."""
    rows = await client.pending(timeout=timeout)
    write_json(msgspec.json.encode(rows))
    if rows and not keep:
        await client.acknowledge([row["request_id"] for row in rows])


@click.command()
@connection_options
@click.option("--keep", is_flag=True, help="Leave the results at the gateway.")
def command(connection: ConnectOptions, keep: bool) -> None:
    """Print results that wait for this agent as a JSON array, and acknowledge them."""
    run(lambda client: collect(client, connection.timeout, keep), connection)
