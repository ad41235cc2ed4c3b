"""`agent-gate request TOOL key=value …`: call one tool and print its data."""

import asyncio
import difflib
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

import click

from agent_gate.cli.agent import (
    INTERRUPTED,
    ConnectOptions,
    connection_options,
    progress_notice,
    render,
    run,
    waiting_notice,
    write_json,
)
from agent_gate.cli.arguments import coerced, parse_arguments, plain_names, types_of
from agent_gate.cli.output import put, say
from agent_gate.cli.suggest import complete_argument, complete_tool
from agent_gate.cli.toolhelp import tool_help
from agent_gate.client.awaited import Awaited
from agent_gate.client.client import Client
from agent_gate.client.wire import Reply
from agent_gate.errors import (
    CallTimeout,
    GatewayError,
    InvalidArgs,
    OutcomeUnknown,
    ToolNotFound,
    Unreachable,
)

ACKNOWLEDGE_SECONDS = 5.0
REFUSAL_SECONDS = 0.5
LAST_WORD_SECONDS = 5.0
NOT_SAID = "Stopped. The gateway did not say what became of the call: it may still be asked about, or run"
STILL_RUNS = "Stopped. The call could not be taken back and goes on; its result is kept: agent-gate pending"


async def fit_arguments(
    client: Client, tool: str, items: Sequence[str], given: dict[str, Any]
) -> dict[str, Any]:
    """The arguments with each `key=value` read as the type that the tool's schema wants."""
    names = plain_names(items)
    found = await client.tools([tool]) if names else []
    if not found:
        return given
    schema = found[0]["input_schema"]
    texts = {name: given[name] for name in names if isinstance(given[name], str)}
    return given | {name: coerced(text, types_of(schema, name)) for name, text in texts.items()}


async def describe_tool(client: Client, tool: str) -> str:
    found = await client.tools([tool])
    if not found:
        raise await advise(client, ToolNotFound(f"Unknown tool: {tool}"), tool)
    return tool_help(found[0])


async def advise(client: Client, error: ToolNotFound, tool: str) -> ToolNotFound:
    """The same error with the nearest name as advice."""
    names = [found["name"] for found in await client.tools()]
    near = difflib.get_close_matches(tool, names, n=1)
    return ToolNotFound(f"{error.message}\nDid you mean {near[0]}?") if near else error


class Errand(NamedTuple):
    """What the command line asks for."""

    tool: str
    items: Sequence[str]
    given: dict[str, Any]
    key: str | None
    detach: bool


async def perform(client: Client, errand: Errand) -> None:
    """Call, print, and only then tell the gateway that the result arrived."""
    arguments = await fit_arguments(client, errand.tool, errand.items, errand.given)
    started = client.start(
        errand.tool,
        arguments,
        idempotency_key=errand.key,
        on_waiting=None if errand.detach else waiting_notice(),
        on_progress=None if errand.detach else progress_notice(),
    )
    try:
        if errand.detach:
            put(await start_detached(client, started))
        else:
            await deliver(client, await client.reply(started))
    except ToolNotFound as error:
        raise await advise(client, error, errand.tool) from None
    except asyncio.CancelledError:
        await give_up(client, started)


async def deliver(client: Client, reply: Reply) -> None:
    """A gateway that does not take the acknowledgement keeps the result; what was printed stays true."""
    write_json(reply.raw)
    with suppress(GatewayError):
        await client.acknowledge([reply.call_id], timeout=ACKNOWLEDGE_SECONDS)


async def start_detached(client: Client, started: Awaited) -> str:
    """The call's id, once the gateway has it; a refusal that comes at once is still an error."""
    heard = asyncio.ensure_future(started.heard.wait())
    try:
        reply = asyncio.ensure_future(client.reply(started))
        await asyncio.wait([heard, reply], return_when=asyncio.FIRST_COMPLETED)
        if not (reply.done() or started.asked):
            await asyncio.wait([reply], timeout=REFUSAL_SECONDS)
        if reply.done():
            return reply.result().call_id
        reply.cancel()
        return started.call_id
    finally:
        heard.cancel()


async def give_up(client: Client, started: Awaited) -> NoReturn:
    """Ctrl-C: take the call back, and say what became of it, as far as that is known."""
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
    withdrawn = False
    try:
        withdrawn = await client.withdraw(started)
        reply = await client.reply(started, LAST_WORD_SECONDS)
    except CallTimeout:
        say(STILL_RUNS if started.call_id else NOT_SAID, err=True)
    except (OutcomeUnknown, Unreachable) as error:
        say(f"{NOT_SAID} ({error.message})", err=True)
    except GatewayError as error:
        say(f"Withdrawn: {error.message}" if withdrawn else render(error), err=True)
    else:
        await deliver(client, reply)
        sys.exit(0)
    sys.exit(INTERRUPTED)


@click.command(add_help_option=False)
@click.argument("tool", required=False, shell_complete=complete_tool)
@click.argument("arguments", nargs=-1, shell_complete=complete_argument)
@connection_options
@click.option("--idempotency-key", help="Calls with the same key run once.")
@click.option(
    "--detach", is_flag=True, help="Print the call's id and leave; `agent-gate pending` has the result later."
)
@click.option("-h", "--help", "show_help", is_flag=True, help="This text; with TOOL, the tool's own.")
def command(
    connection: ConnectOptions,
    tool: str | None,
    arguments: tuple[str, ...],
    idempotency_key: str | None,
    detach: bool,
    show_help: bool,
) -> None:
    """Call TOOL and print its data as JSON.

    Arguments are key=value (read as the type the tool wants), key:=json, @file with a JSON object, or - for
    one on standard input.

    Exit codes: 0 done, 1 denied, 2 timeout, 3 no connection, 4 invalid arguments, 5 the tool failed,
    6 too many calls, 7 fault in the gateway, 9 outcome unknown, 130 interrupted.

    Ctrl-C withdraws the call; a second one leaves at once.
    """
    context = click.get_current_context()
    if tool is None:
        if not show_help:
            raise click.UsageError("TOOL is missing", context)
        put(context.get_help())
        return
    if show_help:
        say(run(lambda client: describe_tool(client, tool), connection))
        return
    try:
        given = parse_arguments(arguments)
    except InvalidArgs as error:
        fail(context, error)
    errand = Errand(tool, arguments, given, idempotency_key, detach)
    run(lambda client: perform(client, errand), connection)


def fail(context: click.Context, error: GatewayError) -> None:
    say(render(error), err=True)
    context.exit(error.exit)
