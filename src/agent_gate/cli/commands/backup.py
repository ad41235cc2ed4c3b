"""`agent-gate backup`: the store and its keys as of one moment, while the gateway runs or not."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import click

from agent_gate.cli.diagnosis import SECRETS
from agent_gate.cli.operator import reporting
from agent_gate.cli.output import print_json
from agent_gate.config.load import load
from agent_gate.errors import ConfigError

KEPT = (*SECRETS, "tls/gateway.crt")


def copy_store(store: Path, copy: Path) -> int:
    """Everything that was committed when it began; the number of rows on record."""
    try:
        with (
            closing(sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True)) as old,
            closing(sqlite3.connect(copy)) as new,
        ):
            old.backup(new)
            (rows,) = new.execute("SELECT count(*) FROM record").fetchone()
            return int(rows)
    except sqlite3.Error as error:
        raise ConfigError(f"{store} cannot be copied: {error}") from None


def copy_keys(folder: Path, copy: Path) -> list[str]:
    """The files beside the store without which its seals and open questions are worth nothing."""
    found = [name for name in KEPT if (folder / name).is_file()]
    for name in found:
        (copy / name).parent.mkdir(mode=0o700, exist_ok=True)
        shutil.copy2(folder / name, copy / name)
    return found


def empty_folder(folder: Path) -> Path:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is not empty; name a new folder")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    default=Path("config.yaml"),
    show_default=True,
    help="Configuration whose store to copy.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(folder: Path, config: Path, as_json: bool) -> None:
    """Copy the store and its keys into FOLDER, which must be new or empty."""
    with reporting():
        storage = load(config, None).settings.storage
        if storage.type != "sqlite":
            raise ConfigError(
                "The store is in PostgreSQL; copy it with pg_dump, and the keys in the data folder"
            )
        if not storage.path.is_file():
            raise ConfigError(f"There is no store at {storage.path}")
        copy = empty_folder(folder)
        rows = copy_store(storage.path, copy / storage.path.name)
        (copy / storage.path.name).chmod(0o600)
        keys = copy_keys(storage.path.parent, copy)
        if as_json:
            print_json({"folder": str(copy), "store": storage.path.name, "rows": rows, "keys": keys})
            return
        click.echo(f"Wrote {rows} rows of the record and {len(keys)} keys to {copy}.")
        click.echo(
            f"To restore it, stop the gateway and put this folder in the place of {storage.path.parent}."
        )
