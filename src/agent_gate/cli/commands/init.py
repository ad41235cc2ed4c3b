"""`agent-gate init`: at most four questions, a configuration, and a first call that works."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import click

from agent_gate.access.keys import checked_name
from agent_gate.access.tokens import new_token
from agent_gate.cli.demo.starter import write_assistant, write_new, write_starter
from agent_gate.cli.operator import reporting
from agent_gate.cli.output import PATH, say
from agent_gate.client.sync import SyncClient
from agent_gate.config.files.dotenv import add_variables, known_variables, read_dotenv
from agent_gate.config.files.yamledit import flow
from agent_gate.errors import ConfigError, GatewayError, InvalidArgs

HOME, ASSISTANT, NOTHING = "home", "homeassistant", "nothing"
FIRST_TOOL = "ha_get_states"
EMPTY = """\
gateway: {id: home, host: 127.0.0.1, port: 8443}
admin:   {socket: ./data/admin.sock}
agents:
  my-agent: {token: "${AGENT_TOKEN}"}
storage: {type: sqlite, path: ./data/agent-gate.db}
permissions: permissions.yaml

# MCP servers, as they stand in your client's file, or taken over with `agent-gate import`:
mcpServers:
"""
RULES = """\
defaults:
  - {pattern: "*", action: ask}
rules: []
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The answers to the questions."""

    behind: str
    agent: str
    url: str = ""
    token: str = ""


def ask() -> Wanted:
    behind = click.prompt(
        "What should the gateway have behind it: a home to try, your Home Assistant, or nothing yet",
        type=click.Choice([HOME, ASSISTANT, NOTHING]),
        default=HOME,
        err=True,
    )
    url = token = ""
    if behind == ASSISTANT:
        url = click.prompt(
            "Address of your Home Assistant", default="http://homeassistant.local:8123", err=True
        )
        token = click.prompt("Its long-lived access token", hide_input=True, err=True)
    agent = click.prompt("Name of your first agent", default="my-agent", value_proc=agent_name, err=True)
    return Wanted(behind, agent, url, token)


def agent_name(typed: str) -> str:
    """The name as `agents make` takes it; another is asked for again."""
    try:
        return checked_name(typed)
    except InvalidArgs as error:
        raise click.UsageError(error.message) from None


def refuse_existing(folder: Path) -> None:
    if (folder / "config.yaml").exists():
        raise ConfigError(f"{folder / 'config.yaml'} is already there; nothing was changed")


def write(folder: Path, wanted: Wanted) -> None:
    """Write the files; the secrets go into `.env`, which nobody else can read. What is there already stays."""
    refuse_existing(folder)
    given = {"HOME_URL": wanted.url, "HOME_TOKEN": wanted.token} if wanted.behind == ASSISTANT else {}
    refuse_other_values(folder / ".env", given)
    add_variables(folder / ".env", {"AGENT_TOKEN": new_token(), **given})
    write_new(folder / ".gitignore", ".env\ndata/\n")
    if wanted.behind == NOTHING:
        write_new(folder / "permissions.yaml", RULES)
        write_new(folder / "config.yaml", EMPTY)
    elif wanted.behind == ASSISTANT:
        write_assistant(folder)
    else:
        write_starter(folder)
    config = folder / "config.yaml"
    text = config.read_text(encoding="utf-8")
    text = text.replace("  my-agent: {token:", f"  {flow(wanted.agent)}: {{token:")
    config.write_text(text, encoding="utf-8")


def refuse_other_values(path: Path, given: Mapping[str, str]) -> None:
    known = known_variables(path)
    others = [name for name, value in given.items() if known.get(name, value) != value]
    if others:
        raise ConfigError(
            f"already holds {' and '.join(others)} with another value; take it out or choose another --folder",
            where=str(path),
        )


def first_call(folder: Path, wanted: Wanted) -> dict[str, Any]:
    """Start the gateway for a moment and let it answer one call."""
    program = [sys.executable, "-m", "agent_gate"]
    command = (
        ["demo", "--folder", str(folder)]
        if wanted.behind == HOME
        else ["serve", "--config", str(folder / "config.yaml"), "--insecure"]
    )
    process = subprocess.Popen(
        [*program, *command, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=without(known_variables(folder / ".env")),
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise ConfigError((process.communicate()[1] or "the gateway did not start").strip())
        with SyncClient(json.loads(line)["url"], token_of(folder), reconnect=False, patience=20) as gate:
            return cast("dict[str, Any]", gate.call(FIRST_TOOL))
    finally:
        process.terminate()
        process.wait()


def without(names: Iterable[str]) -> dict[str, str]:
    """The environment without what the files say themselves, since it would overrule them."""
    return {name: value for name, value in os.environ.items() if name not in names}


def token_of(folder: Path) -> str:
    return read_dotenv(folder / ".env")["AGENT_TOKEN"]


def told(states: Sequence[Mapping[str, Any]]) -> str:
    example = f", such as {states[0]['entity_id']}" if states else ""
    return f"A first call went through: {len(states)} entities{example}."


def next_steps(folder: Path, wanted: Wanted) -> str:
    """The commands as they can be typed where the person is."""
    config = folder / "config.yaml"
    start = f"demo --folder {folder}" if wanted.behind == HOME else f"serve --config {config}"
    where = "" if folder == Path() else f" --config {config}"
    taking = {f"import{where}": "take over the MCP servers of your clients"}
    steps = {
        **(taking if wanted.behind == NOTHING else {}),
        start: "",
        f"connect{where}": "put it into Claude, Cursor, VS Code, …",
        f"approvals{where}": "answer what waits for you",
    }
    width = max(map(len, steps))
    return "\n".join(
        f"  agent-gate {step:{width}}  {f'# {why}' if why else ''}".rstrip() for step, why in steps.items()
    )


def what_to_mend(folder: Path, wanted: Wanted) -> str:
    env = "" if wanted.behind == HOME else f"Correct HOME_URL or HOME_TOKEN in {folder / '.env'}. "
    return f"{env}Then go on with:\n{next_steps(folder, wanted)}"


@click.command()
@click.option("--folder", type=PATH, default=Path(), help="Where to write the files.")
@click.option(
    "--behind",
    type=click.Choice([HOME, ASSISTANT, NOTHING]),
    help="Answer the first question here; ask nothing.",
)
def command(folder: Path, behind: str | None) -> None:
    """Write a configuration and prove that it works."""
    with reporting():
        refuse_existing(folder)
        wanted = Wanted(behind, "my-agent") if behind is not None and behind != ASSISTANT else ask()
        write(folder, wanted)
        say(
            f"Wrote {folder / 'config.yaml'} and {folder / 'permissions.yaml'}; tokens are in {folder / '.env'}."
        )
        if wanted.behind != NOTHING:
            try:
                states = first_call(folder, wanted)["states"]
            except GatewayError as error:
                raise ConfigError(
                    f"The files are written, but the first call failed: {error.message}\n"
                    f"{what_to_mend(folder, wanted)}"
                ) from None
            say(told(states))
        say(f"\nNext:\n{next_steps(folder, wanted)}")
