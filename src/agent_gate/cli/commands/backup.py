"""`agent-gate backup`: the store and its keys as of one moment, while the gateway runs or not."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import click

from agent_gate.cli.diagnosis import SECRETS
from agent_gate.cli.operator import reporting
from agent_gate.cli.output import PATH, config_option, json_option, print_json, say
from agent_gate.config.block import read_block
from agent_gate.config.options import STORE
from agent_gate.config.settings import StorageSettings
from agent_gate.errors import ConfigError
from agent_gate.store.copied import MARK

KEPT = (*SECRETS, "tls/gateway.crt", "tls/ca.crt")
VAULT_KEY = "vault.key"


def store_of(config: Path, data: Path | None) -> Path:
    """The file that a gateway with these options keeps its store in."""
    if data is not None:
        return data / STORE
    storage = read_block(config, "storage", StorageSettings)
    if storage.type != "sqlite":
        raise ConfigError("The store is in PostgreSQL; copy it with pg_dump, and the keys in the data folder")
    return storage.path


def copy_store(store: Path, copy: Path) -> int:
    """Everything that was committed when it began, marked as a copy; the number of rows on record."""
    try:
        with (
            closing(sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True)) as old,
            closing(sqlite3.connect(copy)) as new,
        ):
            old.backup(new)
            new.execute(MARK)
            new.commit()
            (rows,) = new.execute("SELECT count(*) FROM record").fetchone()
            return int(rows)
    except sqlite3.Error as error:
        raise ConfigError(f"{store} cannot be copied: {error}") from None


def copy_keys(folder: Path, copy: Path, *, vault_key: bool) -> list[str]:
    """The files beside the store without which its seals and open questions are worth nothing."""
    wanted = [name for name in KEPT if name != VAULT_KEY or vault_key]
    found = [name for name in wanted if (folder / name).is_file()]
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


def copy_all(store: Path, copy: Path, *, vault_key: bool) -> tuple[int, list[str]]:
    """The store and its keys; the store gets its name last, so that what has it is whole."""
    draft = copy / f"{store.name}.part"
    rows = copy_store(store, draft)
    draft.chmod(0o600)
    keys = copy_keys(store.parent, copy, vault_key=vault_key)
    draft.replace(copy / store.name)
    return rows, keys


@contextmanager
def nothing_half(folder: Path) -> Iterator[None]:
    """Empties the folder again where the copy could not be finished."""
    try:
        yield
    except (ConfigError, OSError):
        for made in folder.iterdir():
            shutil.rmtree(made) if made.is_dir() else made.unlink()
        raise


@click.command()
@click.argument("folder", type=PATH)
@config_option(help="Configuration whose store to copy.")
@click.option(
    "--data",
    type=PATH,
    help="Folder of the store where `serve` was told it with --data; the configuration is not read.",
)
@click.option(
    "--with-vault-key",
    is_flag=True,
    help="Copy the vault's key too; whoever has this copy can then read every credential in it.",
)
@json_option
def command(folder: Path, config: Path, data: Path | None, with_vault_key: bool, as_json: bool) -> None:
    """Copy the store and its keys into FOLDER, which must be new or empty."""
    with reporting():
        store = store_of(config, data)
        if not store.is_file():
            raise ConfigError(f"There is no store at {store}")
        copy = empty_folder(folder)
        with nothing_half(copy):
            rows, keys = copy_all(store, copy, vault_key=with_vault_key)
        if as_json:
            print_json({"folder": str(copy), "store": store.name, "rows": rows, "keys": keys})
            return
        say(f"Wrote {rows} rows of the record and {len(keys)} keys to {copy}.")
        if not with_vault_key and (store.parent / VAULT_KEY).is_file():
            say(
                f"The vault's key is not in it; keep {store.parent / VAULT_KEY} elsewhere, or use --with-vault-key."
            )
        say(f"To restore it, stop the gateway and put this folder in the place of {store.parent}.")
