"""`agent-gate browse`: look around in the catalog, or search it, at the price of a few cards."""

from typing import Any

import click
import msgspec

from agent_gate.cli.agent import ConnectOptions, connection_options, run, write_json


@click.command()
@click.argument("path", default="/")
@connection_options
@click.option("--query", help="What you want to do, in plain English; instead of PATH.")
@click.option("--top-k", type=click.IntRange(1, 50), help="How many cards a query may give.")
def command(connection: ConnectOptions, path: str, query: str | None, top_k: int | None) -> None:
    """Print the cards below PATH, or those that match a query, as a JSON array."""
    params: dict[str, Any] = {"query": query} if query is not None else {"path": path}
    if top_k is not None:
        params["top_k"] = top_k
    found = run(lambda client: client.ask("browse", params, timeout=connection.timeout), connection)
    write_json(msgspec.json.encode(found["cards"]))
