"""`agent-gate serve`: run the gateway in the foreground until a signal stops it."""

import asyncio
import contextlib
import ctypes
import gc
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path
from typing import Literal, TextIO

import click
import uvloop

from agent_gate.access.hiding import hide_from_others
from agent_gate.app import Gateway
from agent_gate.cli.advice import complete
from agent_gate.cli.operator import reporting
from agent_gate.cli.output import PATH, USUAL_CONFIG, say
from agent_gate.cli.qrcode import code_for_a_phone
from agent_gate.cli.workers import end_with_parent, serve_workers
from agent_gate.config.options import Options
from agent_gate.config.settings import Settings
from agent_gate.core.call import Caller
from agent_gate.errors import ConfigError, GatewayError
from agent_gate.observe.log import configure
from agent_gate.surfaces.mcp import StdioServer, open_standard_streams

log = logging.getLogger("agent_gate.cli")

STOP = (signal.SIGINT, signal.SIGTERM)
COLLECT = (50_000, 20, 50)
TRIM_SECONDS = 60.0
LEARN_SECONDS = 5.0


async def watch_files(gateway: Gateway, changed: asyncio.Event) -> None:
    """Reload when a file is not as it was read; polling needs no dependency and no descriptor."""
    while True:
        await asyncio.sleep(1.0)
        if gateway.configuration.is_outdated():
            changed.set()


async def reload_when(gateway: Gateway, changed: asyncio.Event) -> None:
    """Reload on every sign of a change. What cannot be taken over is said in the log; the gateway goes on."""
    while True:
        await changed.wait()
        changed.clear()
        try:
            await gateway.reload()
        except ConfigError:
            continue  # `reload` said why
        except GatewayError as error:
            log.error("The reload did not end well: %s", error.message)
        except Exception:  # the boundary: a fault in a reload must not end what runs
            log.exception("The reload failed")


def stdio_caller(gateway: Gateway, agent: str) -> Caller:
    """Who the client on stdin and stdout is: the agent of that name; without a name the only one, or `default`."""
    known = gateway.ways_in.tokens.callers()
    if not agent and len(known) == 1:
        return known[0]
    wanted = agent or "default"
    caller = gateway.ways_in.tokens.caller(wanted)
    if caller is None:
        names = ", ".join(one.name for one in known)
        raise ConfigError(f"There is no agent named {wanted}. Name one with --agent: {names}")
    return caller


async def serve_stdio(gateway: Gateway, caller: Caller, out: TextIO, stop: asyncio.Event) -> None:
    """Serve one MCP client on stdin and stdout; its end is ours.

    Many hosts list once and never again, so at a first start the sources are waited for, as long as such hosts wait.
    """
    await gateway.supervisor.learn(LEARN_SECONDS)
    await StdioServer(gateway.ways_in.mcp, caller).run(await open_standard_streams(out))
    stop.set()


async def give_back_memory(seconds: float = TRIM_SECONDS) -> None:
    """Give back to the system, now and then, what large results took and left between what stays.

    The C library gives back only what is free at the very end of its memory, and what came in the meantime, such as the
    buffers of a connection, lies there. Only the one of GNU can be asked for the rest, page by page.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while trim is not None:
        await asyncio.sleep(seconds)
        await asyncio.to_thread(trim, 0)


def settle_memory() -> None:
    """Keep the collector away from what lives as long as the gateway, and from calls that are still running.

    Calls leave almost no cycles behind; at the default it would walk every call in flight once per few calls.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT)


def limit_of_the_promise(settings: Settings, uid: int) -> str:
    """What an agent could do that runs as the gateway's own user; empty where nothing has to be said."""
    if uid == 0 or settings.approvers.passphrase:
        return ""
    return (
        "An agent with a shell under this user could answer its own questions: "
        "run the gateway as another user, or set approvers.passphrase (docs/security.md)"
    )


def take_stdout() -> TextIO:
    """Stdout for the gateway alone: programs read it, so what a plugin or its children print goes to stderr."""
    sys.stdout.flush()
    # It ends with the process, not before: who waits for the line takes an end for the exit.
    ours = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", closefd=False)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    return ours


def remark(text: str) -> None:
    """Tell people on stderr, which may be a log on a full disk or a pipe that nobody reads any more."""
    with contextlib.suppress(OSError):
        say(text, err=True)


def announce(gateway: Gateway, out: TextIO) -> None:
    """Say that it is up: to people on stderr, to programs in one line on `out`."""
    if not gateway.settings.agents:
        remark(f"No agent is configured; one was made, its token is in {gateway.folder / 'agent.token'}")
    if limit := limit_of_the_promise(gateway.settings, os.geteuid()):
        remark(limit)
    try:
        out.write(json.dumps(gateway.listeners.announcement()) + "\n")
        out.flush()
    except OSError as error:
        log.warning("The line that says where the gateway is cannot be written: %s", error.strerror)


def invite(url: str) -> None:
    """The way to the operator's page: the last thing said, on a line of its own, and as a code for a phone that can
    reach it."""
    remark(f"The operator's page, for the next 15 minutes and once:\n{url}")
    if sys.stderr.isatty() and (code := code_for_a_phone(url)):
        remark(code)


async def offer_link(gateway: Gateway) -> None:
    """Calls are served without a link, too; it may be that the store takes none just now."""
    try:
        invite(await gateway.make_login_url())
    except GatewayError as error:
        remark(
            f"There is no link to the operator's page yet, make one with agent-gate login: {error.message}"
        )


async def run(
    options: Options,
    ready: Callable[[Gateway], None] | None = None,
    stdio_agent: str | None = None,
    log_format: str | None = None,
) -> None:
    """Serve until a signal says stop; `ready` is told once the listeners are up."""
    hide_from_others()
    out = take_stdout()
    gateway = Gateway(options)
    begin_logs(gateway, log_format)
    for warning in gateway.configuration.warnings():
        remark(f"Warning: {warning}")
    stop, changed = (
        hear_signals()
    )  # before the listeners: whoever finds the gateway serving may tell it to stop
    await gateway.start()
    try:
        caller = stdio_caller(gateway, stdio_agent) if stdio_agent is not None else None
    except ConfigError:
        await gateway.stop()
        raise
    settle_memory()
    announce(gateway, out if caller is None else sys.stderr)
    if ready is not None:
        ready(gateway)
    try:
        await offer_link(gateway)
        async with asyncio.TaskGroup() as group:
            beside = [watch_files(gateway, changed), reload_when(gateway, changed), give_back_memory()]
            if caller is not None:
                beside.append(serve_stdio(gateway, caller, out, stop))
            tasks = [group.create_task(work) for work in beside]
            await stop.wait()
            for task in tasks:
                task.cancel()
    finally:
        await gateway.stop()


def begin_logs(gateway: Gateway, log_format: str | None) -> None:
    logs, config = gateway.settings.log, gateway.configuration.options.config
    named = ("--config", str(config)) if config is not None else ()
    configure(
        os.environ.get("LOG_LEVEL", logs.level),
        gateway.redactor,
        log_format or logs.format,
        requests=logs.requests or os.environ.get("LOG_REQUESTS") == "1",
        advise=lambda text: complete(text, named),
    )


def hear_signals() -> tuple[asyncio.Event, asyncio.Event]:
    """That it has to stop, and that the files may have changed."""
    stop, changed = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP:
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, changed.set)
    return stop, changed


def choose_config(config: Path | None, no_config: bool) -> Path | None:
    """The configuration that is meant: the named one, else `config.yaml` of this folder, where there is one."""
    if no_config and config is not None:
        raise click.UsageError("--config and --no-config exclude each other")
    return config or (USUAL_CONFIG if USUAL_CONFIG.exists() and not no_config else None)


@click.command()
@click.option(
    "--config",
    type=PATH,
    help="Configuration file; without it config.yaml of this folder. Without any file, defaults and no sources.",
)
@click.option("--no-config", is_flag=True, help="Read no configuration, even where there is a config.yaml.")
@click.option(
    "--permissions",
    type=PATH,
    help="Rules file, instead of the one the configuration names.",
)
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 takes any free one.")
@click.option("--insecure", is_flag=True, help="Serve plain HTTP and WebSocket, without TLS.")
@click.option(
    "--data",
    type=PATH,
    help="Folder for the store and the admin socket, whatever the configuration says; the admin page takes any free port.",
)
@click.option("--admin-host", help="Address of the operator's page.")
@click.option("--admin-port", type=click.IntRange(0, 65535), help="Port of the operator's page.")
@click.option(
    "--admin-tls",
    type=click.Choice(["auto", "off"]),
    help="off: the page without TLS, for a container whose port is published on loopback alone.",
)
@click.option("--stdio", is_flag=True, help="Also serve one MCP client on stdin and stdout, and end with it.")
@click.option(
    "--agent",
    default="",
    help="With --stdio: the agent that the client is; without it the only one, or `default`.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Processes that serve together on one port, to use several cores; needs PostgreSQL.",
)
@click.option("--worker", type=int, hidden=True)
@click.option("--lender", type=PATH, hidden=True)
def command(
    config: Path | None,
    no_config: bool,
    permissions: Path | None,
    host: str | None,
    port: int | None,
    insecure: bool,
    data: Path | None,
    admin_host: str | None,
    admin_port: int | None,
    admin_tls: Literal["auto", "off"] | None,
    stdio: bool,
    agent: str,
    workers: int,
    worker: int | None,
    lender: Path | None,
) -> None:
    """Run the gateway until it is stopped."""
    if stdio and workers > 1:
        raise click.UsageError("--stdio serves one client in one process; leave --workers away")
    if stdio:
        port, insecure = port or 0, True
    options = Options(
        config=choose_config(config, no_config),
        permissions=permissions,
        host=host,
        port=port,
        insecure=insecure,
        data=data,
        admin_host=admin_host,
        admin_port=admin_port,
        admin_tls=admin_tls,
        worker=worker,
        lender=lender,
    )
    with reporting():
        if workers > 1:
            sys.exit(uvloop.run(serve_workers(options, workers)))
        if worker is not None:
            end_with_parent()
        uvloop.run(run(options, stdio_agent=agent if stdio else None))
