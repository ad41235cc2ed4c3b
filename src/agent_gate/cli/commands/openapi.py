"""`agent-gate openapi`: the tools of an HTTP API, made from its OpenAPI document, as a file that a person looks through."""

import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from agent_gate.approval.render import visible
from agent_gate.cli.operator import reporting
from agent_gate.cli.output import PATH, config_option, json_option, print_json, put, say, table
from agent_gate.config.decode import Reading
from agent_gate.config.files.dotenv import known_variables
from agent_gate.config.files.edit import Edit
from agent_gate.config.files.variables import Variables
from agent_gate.config.files.yamledit import add_entry, flow, save
from agent_gate.config.files.yamlfile import parse_yaml, read_yaml
from agent_gate.config.openapi.document import read_document
from agent_gate.config.openapi.toolfile import ToolFile, make, service_name
from agent_gate.config.services.read import read_services
from agent_gate.config.services.tools import load_tools_file
from agent_gate.errors import ConfigError, DependencyUnavailable

MOST_BYTES = 64 << 20
SECONDS = 30
MANY = 64
NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")


def read_source(source: str) -> str:
    """The text of a document in a file or behind an address."""
    if not source.startswith(("http://", "https://")):
        return as_text(read_file(Path(source)), source)
    request = urllib.request.Request(source, headers={"Accept": "application/json, application/yaml, */*"})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as reply:
            return as_text(reply.read(MOST_BYTES + 1), source)
    except urllib.error.HTTPError as error:
        raise DependencyUnavailable(f"{source} answered with HTTP status {error.code}") from None
    except urllib.error.URLError as error:
        why = getattr(error.reason, "strerror", None) or error.reason
        raise DependencyUnavailable(f"{source} cannot be reached: {why}") from None
    except (OSError, ValueError) as error:
        raise DependencyUnavailable(f"{source} cannot be read: {error}") from None


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"the file cannot be read ({error.strerror})", where=str(path)) from None


def as_text(data: bytes, source: str) -> str:
    if len(data) > MOST_BYTES:
        raise ConfigError(f"the document is larger than {MOST_BYTES >> 20} MiB", where=source)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError("the document is not UTF-8", where=source) from None


def write_new(path: Path, text: str, *, force: bool) -> None:
    """Write the file and read it as the gateway will; one that stands there may have been worked on."""
    if path.exists() and not force:
        raise ConfigError("the file is already there; pass --force to replace it", where=str(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save(path, text)
    except OSError as error:
        raise ConfigError(f"the file cannot be written ({error.strerror})", where=str(path)) from None
    load_tools_file(path, path.stem, Reading(Variables({})))


def report(made: ToolFile, file: Path, config: Path, edit: Edit | None, *, dry_run: bool) -> None:
    """What was made and what was not, and what is left to do."""
    rows = [
        (name, tool["request"]["method"], tool["request"]["path"], tool["description"])
        for name, tool in made.tools.items()
    ]
    say(table(("tool", "method", "path", "what"), rows))
    for title, why in made.left_out.items():
        say(visible(f"Left out: {title}: {why}"), err=True)
    for name, parts in made.dropped.items():
        say(visible(f"Without a part: {name}: {'; '.join(parts)}"), err=True)
    say(f"{'Would write' if dry_run else 'Wrote'} {len(made.tools)} tools to {file}")
    if edit is not None:
        say(f"{'Would add' if dry_run else 'Added'} the service to {config}:")
        put(edit.diff, nl=False)
    env_file = config.parent / ".env"
    unset = set(made.variables) - {*os.environ, *known_variables(env_file)}
    if unset:
        say(f"Set {' and '.join(sorted(unset))} in {env_file}; the gateway does not start without")
    if len(made.tools) > MANY:
        say("Many tools cost agents much context: take fewer with --only, or serve them in the mode gateway")
    if not dry_run:
        say("Next: look through the file, then agent-gate check")


@click.command()
@click.argument("document", metavar="DOCUMENT")
@click.option("--service", metavar="NAME", help="Name of the service; by default from the document's title.")
@click.option("--url", help="Address of the service, where the document has none or another one.")
@click.option(
    "--only",
    multiple=True,
    metavar="PATTERN",
    help="Take what this names: 'GET *', '/pets*', an operationId, a tag.",
)
@click.option("--output", type=PATH, help="Tool file; by default tools/NAME.yaml.")
@config_option(help="Our configuration file, to which the service is added.")
@click.option("--force", is_flag=True, help="Replace the tool file; a service that is there stays as it is.")
@click.option("--dry-run", is_flag=True, help="Show what would be made and write nothing.")
@json_option
def command(
    document: str,
    service: str | None,
    url: str | None,
    only: tuple[str, ...],
    output: Path | None,
    config: Path,
    force: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make a tool file from an OpenAPI document (2.0, 3.0 or 3.1; JSON or YAML).

    DOCUMENT is a file or an address. Every operation becomes a tool, but for those that take an upload; the file is
    yours to change from then on, and the gateway never reads the document again.
    """
    with reporting():
        read = read_document(read_source(document), document)
        name = service or service_name(read)
        if not NAME.fullmatch(name):
            raise click.UsageError(
                "A service's name has small letters, digits, _ and -, and starts with a letter"
            )
        file = output or config.parent / "tools" / f"{name}.yaml"
        made = make(read, name, os.path.relpath(file, config.parent), only)
        edit = plan_edit(made, config, name, url, force=force)
        if not dry_run:
            write_new(file, made.text, force=force)
            if edit is not None:
                save(config, edit.text)
        if as_json:
            print_json(
                {
                    "service": name,
                    "tools": list(made.tools),
                    "left_out": dict(made.left_out),
                    "dropped": {key: list(parts) for key, parts in made.dropped.items()},
                    "variables": list(made.variables),
                    "file": str(file),
                    "config": str(config) if edit is not None else None,
                    "written": not dry_run,
                }
            )
        else:
            report(made, file, config, edit, dry_run=dry_run)


def plan_edit(made: ToolFile, config: Path, name: str, url: str | None, *, force: bool) -> Edit | None:
    """The service in our configuration; None where it is there already and only its tools are made anew."""
    if not made.tools:
        whys = [f"{title}: {why}" for title, why in made.left_out.items()] or ["no pattern names one"]
        more = f"; and {len(whys) - 3} more" if len(whys) > 3 else ""
        raise ConfigError(f"no operation can become a tool: {'; '.join(whys[:3])}{more}")
    settings = {**made.service, **({"url": url} if url else {})}
    if not settings["url"].startswith(("http://", "https://")):
        raise ConfigError("the document does not say where the service is; pass --url https://…")
    check_entry(name, settings, made.variables)
    try:
        return add_entry(config, "services", name, settings)
    except ConfigError:
        if force and config.exists():
            return None
        held = read_yaml(config).get("services") if config.exists() else None
        if held is None or held.get(name) is None:
            raise
        raise ConfigError(
            f"services.{name} is already there; make its tools anew with --force, or name another service with "
            "--service",
            where=str(config),
        ) from None


def check_entry(name: str, settings: Mapping[str, Any], variables: Iterable[str]) -> None:
    """Read the service as the gateway will, so that no document makes a configuration that does not load."""
    entry = {key: value for key, value in settings.items() if key != "tools"}
    reading = Reading(Variables(dict.fromkeys(variables, "a-value-to-be-set")))
    node = parse_yaml(flow({name: entry}), "the document")
    read_services(reading.variables.fill(node), reading)
