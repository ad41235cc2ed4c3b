"""`agent-gate request TOOL key=value …`: call one tool and print its data."""

import difflib
from collections.abc import Sequence
from typing import Any

import click

from agent_gate.cli.agent import (
    Connection,
    connection_options,
    progress_notice,
    render,
    run,
    waiting_notice,
    write_json,
)
from agent_gate.cli.arguments import coerced, parse_arguments, plain_names, types_of
from agent_gate.cli.suggest import complete_argument, complete_tool
from agent_gate.cli.toolhelp import tool_help
from agent_gate.client.client import Client
from agent_gate.errors import GatewayError, InvalidArgs, ToolNotFound


async def fitted(client: Client, tool: str, items: Sequence[str], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments with each `key=value` read as the type that the tool's schema wants."""
    names = plain_names(items)
    found = await client.tools([tool]) if names else []
    if not found:
        return given
    schema = found[0]["input_schema"]
    texts = {name: given[name] for name in names if isinstance(given[name], str)}
    return given | {name: coerced(text, types_of(schema, name)) for name, text in texts.items()}


async def described(client: Client, tool: str) -> str:
    found = await client.tools([tool])
    if not found:
        raise await unknown(client, ToolNotFound(f"Unknown tool: {tool}"), tool)
    return tool_help(found[0])


async def unknown(client: Client, error: ToolNotFound, tool: str) -> ToolNotFound:
    """The same error with the nearest name as advice."""
    names = [found["name"] for found in await client.tools()]
    near = difflib.get_close_matches(tool, names, n=1)
    return ToolNotFound(f"{error.message}\nDid you mean {near[0]}?") if near else error


async def perform(
    client: Client, tool: str, items: Sequence[str], given: dict[str, Any], timeout: float, key: str | None
) -> None:
    """Call, print, and only then tell the gateway that the result arrived."""
    try:
        reply = await client.request(
            tool,
            await fitted(client, tool, items, given),
            timeout=timeout,
            idempotency_key=key,
            on_waiting=waiting_notice(),
            on_progress=progress_notice(),
        )
    except ToolNotFound as error:
        raise await unknown(client, error, tool) from None
    write_json(reply.raw)
    await client.acknowledge([reply.call_id])


@click.command(add_help_option=False)
@click.argument("tool", required=False, shell_complete=complete_tool)
@click.argument("arguments", nargs=-1, shell_complete=complete_argument)
@connection_options
@click.option("--idempotency-key", help="Calls with the same key run once.")
@click.option("-h", "--help", "show_help", is_flag=True, help="This text; with TOOL, the tool's own.")
def command(
    connection: Connection,
    tool: str | None,
    arguments: tuple[str, ...],
    idempotency_key: str | None,
    show_help: bool,
) -> None:
    """Call TOOL and print its data as JSON.

    Arguments are key=value (read as the type the tool wants), key:=json, @file with a JSON object, or - for
    one on standard input.

    Exit codes: 0 done, 1 denied, 2 timeout, 3 no connection, 4 invalid arguments, 5 the tool failed,
    6 too many calls, 7 fault in the gateway, 9 outcome unknown.
    """
    context = click.get_current_context()
    if tool is None:
        if not show_help:
            raise click.UsageError("TOOL is missing", context)
        click.echo(context.get_help())
        return
    if show_help:
        click.echo(run(lambda client: described(client, tool), connection))
        return
    try:
        given = parse_arguments(arguments)
    except InvalidArgs as error:
        fail(context, error)
    run(
        lambda client: perform(client, tool, arguments, given, connection.timeout, idempotency_key),
        connection,
    )


def fail(context: click.Context, error: GatewayError) -> None:
    click.echo(render(error), err=True)
    context.exit(error.exit)
