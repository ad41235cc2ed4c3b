"""`agent-gate connect`: write the gateway into a client's own configuration file, or print how to."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from agent_gate.cli.agent import OWN_CERTIFICATES
from agent_gate.cli.client_tokens import (
    MADE_TOKEN,
    ClientSetup,
    agent_of,
    full_path,
    how_to_set_token,
    shown_gateway,
    state_folder,
    tell_gateway,
)
from agent_gate.cli.importing import (
    carry_out,
    our_servers,
    plan_import,
    still_unset,
    this_place,
    where_here,
)
from agent_gate.cli.operator import DEFAULT_SOCKET, AdminClient, client_of, reporting
from agent_gate.cli.output import PATH, config_option, json_option, print_json, put, say
from agent_gate.config.block import read_block
from agent_gate.config.clients.backup import Backups, connect_file
from agent_gate.config.clients.change import NAME, connect
from agent_gate.config.clients.model import ClientFile, ClientProgram, GatewayEntry, Surroundings
from agent_gate.config.clients.registry import CLIENTS, client, find, read, servers, target
from agent_gate.config.files.dotenv import known_variables
from agent_gate.config.files.yamlfile import read_yaml
from agent_gate.config.settings import GatewaySettings
from agent_gate.errors import ConfigError, Unreachable
from agent_gate.net.tls.trust import made_authority
from agent_gate.surfaces.listeners import opened_at

TYPED = ParameterSource.COMMANDLINE
LEFT_BY_A_GATEWAY = (DEFAULT_SOCKET, MADE_TOKEN, OWN_CERTIFICATES)
NO_GATEWAY = (
    "There is no gateway in this folder. Name its configuration with --config FILE, or its address with --url"
)

CERTIFICATE_TO_COME = "Its own certificate is made at its first start: start it, then run this again, so that {client} trusts it."


def backups(place: Surroundings) -> Backups:
    return Backups(state_folder(place) / "clients")


def program() -> str:
    """The full path of this program: desktop clients do not have the shell's PATH."""
    return shutil.which("agent-gate") or str(Path(sys.argv[0]).absolute())


def card(program_: ClientProgram, gateway: GatewayEntry, place: Surroundings, line: Sequence[str]) -> str:
    """What to run or paste for one client; `line` is the command that does it."""
    file = target(program_.name, place)
    lines = [f"── {program_.title} ({program_.name})", f"   {shlex.join(line)}"]
    if program_.command is not None:
        lines.append(f"   or: {shlex.join(program_.command(gateway))}")
    block = {file.block[0]: {NAME: program_.write(gateway)}}
    shown = program_.syntax.put("", file.block, NAME, program_.write(gateway))
    text = shown if file.path.suffix in (".toml", ".yaml") else json.dumps(block, indent=2)
    lines.append(f"   or, in {file.path}:")
    lines += [f"     {line}" for line in text.rstrip().splitlines()]
    if gateway.token_file and not Path(gateway.token_file).is_file():
        lines.append(f"   {shlex.join(line)} makes the token file; by hand, put a token there")
    return "\n".join([*lines, *([f"   {program_.note}"] if program_.note else [])])


def cards(setup: ClientSetup, where: Sequence[str]) -> str:
    shown = (
        card(one, shown_gateway(one, setup), setup.place, connecting(one.name, where))
        for one in CLIENTS.values()
    )
    return "\n\n".join(shown)


def connecting(name: str, where: Sequence[str]) -> list[str]:
    """The command that connects a client from any folder."""
    return ["agent-gate", "connect", name, *where]


def named_by(
    config: Path, url: str | None, ca: Path | None, fingerprint: str | None, token_file: Path | None
) -> list[str]:
    """The options that name this gateway wherever they are typed."""
    given: dict[str, str | Path | None] = {"--url": url}
    if url is None:
        given = {"--config": full_path(config)} if config.is_file() else {}
    given |= {"--ca": ca and full_path(ca), "--fingerprint": fingerprint}
    given |= {"--token-file": token_file and full_path(token_file)}
    return [part for name, value in given.items() if value for part in (name, str(value))]


def take_over(file: ClientFile, place: Surroundings, config: Path, dry_run: bool) -> list[str]:
    """Import the servers of this file that we do not have yet; all of its servers can then be replaced."""
    if not file.path.is_file():
        return []
    standing = servers(file, read(file.path), place)
    ours = our_servers(config)
    env_file = config.parent / ".env"
    env = {**known_variables(env_file), **os.environ}
    fresh = [server for server in standing if not where_here(server, ours, env)]
    plan = plan_import(fresh, config, env)
    if plan.added and not dry_run:
        carry_out(plan, env_file)
        if needed := still_unset(plan, env_file):
            say(needed, err=True)
    return [server.name for server in standing]


def left_beside(file: ClientFile, place: Surroundings, config: Path) -> str:
    """What to do about servers that the client has in the same file for single folders, which stay there."""
    others = [one for one in find(place, [file.client]) if one.path == file.path and one.block != file.block]
    text = read(file.path)
    left = {server.name: one.project for one in others for server in servers(one, text, place)}
    if not left:
        return ""
    names = ", ".join(f"{name} (in {folder})" for name, folder in left.items())
    taking = shlex.join(["agent-gate", "import", file.client, "--config", str(config)])
    return f"Still there, and not behind the gateway: {names}. Take them over with `{taking}`, then remove them from the client."


def replaced_note(names: Sequence[str], config: Path) -> str:
    return f" and took over {', '.join(names)} into {config}" if names else ""


def admin_of(config: Path) -> AdminClient:
    """The running gateway of this configuration, or of its folder where there is none."""
    return client_of(None, config) if config.is_file() else client_of(config.parent / DEFAULT_SOCKET, None)


def runs(admin: AdminClient) -> bool:
    try:
        admin.get("/api/status")
    except Unreachable:
        return False
    return True


def address(config: Path) -> str:
    """Where the gateway of this configuration is: as it says itself while it runs, else as the file says."""
    try:
        return str(admin_of(config).get("/api/status")["url"])
    except Unreachable:
        pass
    if not config.is_file() and not any((config.parent / path).exists() for path in LEFT_BY_A_GATEWAY):
        raise ConfigError(NO_GATEWAY)
    gateway = read_block(config, "gateway", GatewaySettings) if config.is_file() else GatewaySettings()
    if gateway.port == 0:
        raise ConfigError(f"{config} takes any free port; start the gateway first, or pass --url")
    return opened_at(gateway.host, gateway.port, secure=True)


def entry_of(
    url: str, config: Path, token_file: Path | None, ca: Path | None, fingerprint: str | None, stdio: bool
) -> GatewayEntry:
    """The gateway as clients are told of it; a certificate that it made itself is trusted by name."""
    if ca is None and fingerprint is None and url.startswith("https"):
        ca = made_authority(config.parent / OWN_CERTIFICATES)
    token, trusted = (str(full_path(path)) if path else None for path in (token_file, ca))
    return GatewayEntry(url, program(), token, trusted, fingerprint, stdio)


def trusted_by_nobody(gateway: GatewayEntry, config: Path) -> bool:
    """Whether the gateway will show a certificate that does not exist yet, so that no client can be told to trust it."""
    found = read_yaml(config).get("gateway") if config.is_file() else None
    named = found is not None and found.get("tls") is not None
    return gateway.url.startswith("https") and not (gateway.ca or gateway.fingerprint or named)


def where_the_token_is(program_: ClientProgram, told: GatewayEntry, config: Path) -> str:
    """What a client without a token file needs, which no file of ours can give it."""
    if told.token_file:
        return ""
    made, setting = config.parent / MADE_TOKEN, how_to_set_token(config.parent)
    how = f", as after `{setting}`" if setting else ""
    return f"{program_.title} finds its token in AGENT_TOKEN: start it with that set{how}, or pass --token-file {made if made.is_file() else 'FILE'}."


@click.command()
@click.argument("client_name", metavar="[CLIENT]", required=False, type=click.Choice(list(CLIENTS)))
@click.option(
    "--url",
    envvar="AGENT_GATE_URL",
    help="The gateway's address; by default that of --config, as it runs or as the file says.",
)
@click.option("--project", is_flag=True, help="Write the current project's file instead of the user's.")
@click.option(
    "--replace", is_flag=True, help="Import the client's servers and leave the gateway in their place."
)
@config_option(help="Our configuration file.")
@click.option(
    "--stdio", is_flag=True, help="Let the client start the bridge even where it could connect itself."
)
@click.option("--token-file", type=PATH, help="File that holds the agent's token.")
@click.option("--ca", type=PATH, envvar="AGENT_GATE_CA", help="Certificate to trust.")
@click.option("--fingerprint", help="The gateway's certificate, as sha256:HEX.")
@click.option("--dry-run", is_flag=True, help="Print the new file and change nothing.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    client_name: str | None,
    url: str | None,
    project: bool,
    replace: bool,
    config: Path,
    stdio: bool,
    token_file: Path | None,
    ca: Path | None,
    fingerprint: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Write the gateway into a client's configuration.

    Without a CLIENT, print for each one what to run or paste. `agent-gate disconnect CLIENT` puts the file back.
    """
    with reporting():
        if (
            ctx.get_parameter_source("url") is ParameterSource.ENVIRONMENT
            and ctx.get_parameter_source("config") is TYPED
        ):
            url = None
        where = named_by(config, url, ca, fingerprint, token_file)
        ours, url = url is None, url or address(config)
        gateway = entry_of(url, config, token_file, ca, fingerprint, stdio)
        admin = admin_of(config) if ours and (gateway.needs_bridge or not project) else None
        if admin is not None and (client_name is None or dry_run) and not runs(admin):
            admin = None
        setup = ClientSetup(gateway, this_place(), config, admin)
        if client_name is None:
            show_all(setup, where, as_json)
            return
        write_one(client_name, setup, project=project, replace=replace, dry_run=dry_run, as_json=as_json)
        if ours and trusted_by_nobody(gateway, config):
            say(CERTIFICATE_TO_COME.format(client=client(client_name).title), err=True)


def show_all(setup: ClientSetup, where: Sequence[str], as_json: bool) -> None:
    if not as_json:
        put(cards(setup, where))
        return
    print_json(
        {
            one.name: {
                "title": one.title,
                "file": str(target(one.name, setup.place).path),
                "command": connecting(one.name, where),
                "entry": one.write(shown_gateway(one, setup)),
            }
            for one in CLIENTS.values()
        }
    )


def write_one(
    name: str, setup: ClientSetup, *, project: bool, replace: bool, dry_run: bool, as_json: bool
) -> None:
    program_, place, config = client(name), setup.place, setup.config
    file = target(name, place, project=project)
    told = shown_gateway(program_, setup) if dry_run else tell_gateway(program_, setup)
    entry = program_.write(told)
    names = take_over(file, place, config, dry_run) if replace else []
    if dry_run:
        text = connect(file, read(file.path) if file.path.is_file() else "", entry, names)
        put(text, nl=False)
        return
    connect_file(backups(place), file, entry, names)
    if as_json:
        print_json({"client": name, "file": str(file.path), "entry": entry, "replaced": names})
        return
    say(f"Wrote the gateway into {file.path}{replaced_note(names, config)}.")
    if agent := agent_of(told):
        say(f"{program_.title} is the agent {agent} in questions and in the record.")
    if replace and (left := left_beside(file, place, config)):
        say(left)
    if project and told.needs_bridge:
        say("It names files of this machine: keep it out of what you share.")
    if needed := where_the_token_is(program_, told, config):
        say(needed)
    say(f"`agent-gate disconnect {name}` puts the file back. {program_.note}".rstrip())
