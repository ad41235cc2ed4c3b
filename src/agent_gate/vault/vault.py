"""`Vault`: sealed values in the store, found by who they belong to and what they are.

Values are sealed with a key of the vault's own, which stands in the store wrapped by the master key. So a new master
key rewraps one row, and a new key of the vault reseals every value in one transaction.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_gate.core.ports import Clock
from agent_gate.errors import ConfigError
from agent_gate.store.once import replace_whole
from agent_gate.store.statement import Conflict, Statement, Store
from agent_gate.vault import master
from agent_gate.vault.master import MasterSecret
from agent_gate.vault.sealing import KEY_BYTES, SealingKey, VaultFault

log = logging.getLogger("agent_gate.vault")
SALT_BYTES = 16
ROTATIONS = 5
WRAPPED = "vault key"
PUT = (
    "INSERT INTO vault (owner, field, key, sealed, version, updated_at) VALUES (?, ?, ?, ?, 1, ?) "
    "ON CONFLICT (owner, field) DO UPDATE SET key = excluded.key, sealed = excluded.sealed, "
    "version = vault.version + 1, updated_at = excluded.updated_at"
)
PUT_ONCE = (
    "INSERT INTO vault (owner, field, key, sealed, version, updated_at) VALUES (?, ?, ?, ?, 1, ?) "
    "ON CONFLICT (owner, field) DO NOTHING"
)
SWAP = (
    "UPDATE vault SET key = ?, sealed = ?, version = version + 1, updated_at = ? "
    "WHERE owner = ? AND field = ? AND version = ?"
)
RESEAL = "UPDATE vault SET key = ?, sealed = ? WHERE owner = ? AND field = ? AND version = ?"
HOLD = "UPDATE vault_keys SET slot = slot WHERE id = ?"
LEFT = "UPDATE vault SET version = version WHERE key <> ?"
KEEP_KEY = "INSERT INTO vault_keys (slot, id, master, salt, wrapped, created_at) VALUES (1, ?, ?, ?, ?, ?)"
REWRAP = "UPDATE vault_keys SET master = ?, salt = ?, wrapped = ? WHERE id = ?"


@dataclass(frozen=True, slots=True)
class KeptSecret:
    """One value as it was read. `version` is what a `swap` must name."""

    value: bytes
    version: int
    updated_at: float

    def __repr__(self) -> str:
        return f"Kept(version {self.version})"


class Vault:
    """Opened once at the start; every change is durable before it counts."""

    def __init__(self, store: Store, clock: Clock, folder: Path, tenant: str, env: Mapping[str, str]) -> None:
        self._store, self._clock, self._folder, self._tenant, self._env = store, clock, folder, tenant, env
        self._key: SealingKey | None = None
        self._changing = asyncio.Lock()
        self.master_id = ""
        self.where = ""
        self.fault = "The vault is not open"

    async def open(self) -> None:
        """Find the key that the values are sealed with; make one where the vault is new."""
        if not await self._find_key():
            try:
                await self._make_key(master.find_or_make(self._folder, self._env))
            except Conflict:  # another gateway on this store was first
                await self._find_key()

    async def open_or_say_why(self) -> None:
        """A vault that stays shut stops only what needs something of it."""
        try:
            await self.open()
        except ConfigError as error:
            self.fault = f"The vault is shut: {error.message}"
            log.error(self.fault)

    async def _find_key(self) -> bool:
        rows = await self._store.read("SELECT id, master, salt, wrapped FROM vault_keys")
        if not rows:
            return False
        name, wrapped_by, salt, wrapped = rows[0]
        wanted = master.find_or_make(self._folder, self._env)
        for secret in self._candidates(wanted):
            wrapping = secret.key(bytes.fromhex(salt))
            if wrapping.id == wrapped_by:
                self._key = SealingKey(wrapping.open(bytes(wrapped), self._tenant, WRAPPED, name))
                await self._settle(secret, wanted, wrapping)
                return True
        raise ConfigError(
            f"The vault is wrapped by the key {wrapped_by}, and {wanted.where} is another one. Give the gateway the "
            f"secret it had before (as {master.BEFORE} where a new one should count), or restore {master.FILE}"
        )

    def _candidates(self, wanted: MasterSecret) -> Iterable[MasterSecret]:
        return dict.fromkeys([wanted, *master.candidates(self._folder, self._env)])

    async def _settle(self, opened_by: MasterSecret, wanted: MasterSecret, wrapping: SealingKey) -> None:
        """Note what opened the vault; where another secret should, wrap it anew."""
        if opened_by.where.endswith(master.NEXT_FILE):
            (self._folder / master.NEXT_FILE).replace(self._folder / master.FILE)
        elif opened_by == wanted:
            (self._folder / master.NEXT_FILE).unlink(missing_ok=True)
        self.master_id, self.where = wrapping.id, wanted.where
        if opened_by.origin != wanted.origin or opened_by.where == master.BEFORE:
            log.warning("The vault was opened with %s; from now on %s counts", opened_by.where, wanted.where)
            await self._rewrap(wanted)

    async def _make_key(self, secret: MasterSecret) -> None:
        self._key = SealingKey(os.urandom(KEY_BYTES))
        await self._store.write(self._keeping(self._key, secret))

    def _keeping(self, key: SealingKey, secret: MasterSecret) -> Statement:
        wrapping, salt = self._adopt(secret)
        wrapped = wrapping.seal(key.key, self._tenant, WRAPPED, key.id)
        return Statement(KEEP_KEY, (key.id, wrapping.id, salt, wrapped, self._clock.now()))

    def _adopt(self, secret: MasterSecret) -> tuple[SealingKey, str]:
        salt = os.urandom(SALT_BYTES)
        wrapping = secret.key(salt)
        self.master_id, self.where = wrapping.id, secret.where
        return wrapping, salt.hex()

    async def _rewrap(self, secret: MasterSecret) -> None:
        wrapping, salt = self._adopt(secret)
        wrapped = wrapping.seal(self.key.key, self._tenant, WRAPPED, self.key.id)
        await self._store.write(Statement(REWRAP, (wrapping.id, salt, wrapped, self.key.id), expect=1))

    async def forget_all(self) -> None:
        """Give up what nobody can open any more, and begin anew with the master key that is there."""
        self._key = SealingKey(os.urandom(KEY_BYTES))
        await self._store.write(
            Statement("DELETE FROM vault", ()),
            Statement("DELETE FROM vault_keys", ()),
            self._keeping(self._key, master.find_or_make(self._folder, self._env)),
        )

    async def count(self) -> int:
        """How many values it keeps, whether they can be opened or not."""
        return int((await self._store.read("SELECT count(*) FROM vault"))[0][0])

    @property
    def is_open(self) -> bool:
        return self._key is not None

    @property
    def key(self) -> SealingKey:
        if self._key is None:
            raise VaultFault(self.fault)
        return self._key

    def _place(self, owner: str, field: str) -> tuple[str, str, str]:
        return self._tenant, owner, field

    async def get(self, owner: str, field: str) -> KeptSecret | None:
        found = await self._read("owner = ? AND field = ?", (owner, field))
        return found.get((owner, field))

    async def read_all(self, field: str) -> dict[str, KeptSecret]:
        """Every value of one field, by owner."""
        found = await self._read("field = ?", (field,))
        return {owner: kept for (owner, _), kept in found.items()}

    async def _read(self, where: str, params: tuple[str, ...]) -> dict[tuple[str, str], KeptSecret]:
        sql = f"SELECT owner, field, key, sealed, version, updated_at FROM vault WHERE {where} ORDER BY owner"
        rows = await self._read_rows(sql, params, self.take_renewal)
        return {
            (owner, field): KeptSecret(self._opened(name, bytes(sealed), owner, field), version, at)
            for owner, field, name, sealed, version, at in rows
        }

    async def _read_rows(
        self, sql: str, params: tuple[str, ...], find_key: Callable[[], Awaitable[object]]
    ) -> list[tuple[Any, ...]]:
        """Rows of owner, field, key and what is sealed with that key, which is known here. They are read again where the
        key was replaced meanwhile: another gateway did so before, or this one between the reading and now."""
        for _ in range(ROTATIONS):
            rows = await self._store.read(sql, params)
            if all(row[2] == self.key.id for row in rows):
                break
            await find_key()
        return rows

    def _opened(self, name: str, sealed: bytes, owner: str, field: str) -> bytes:
        if name != self.key.id:
            raise VaultFault(
                f"What the vault keeps at {owner} / {field} was sealed with the key {name}, which is not here"
            )
        return self.key.open(sealed, *self._place(owner, field))

    def putting(self, owner: str, field: str, value: bytes) -> Statement:
        """The statement that keeps a value, for those who write more with it in `write_sealed`."""
        sealed = self.key.seal(value, *self._place(owner, field))
        return Statement(PUT, (owner, field, self.key.id, sealed, self._clock.now()))

    def holding(self) -> Statement:
        """Goes before what is sealed with the key of now: the key stays until both are durable. `Conflict` where it was
        replaced."""
        return Statement(HOLD, (self.key.id,), expect=1)

    async def write_sealed(self, seal: Callable[[], Iterable[Statement]]) -> list[int]:
        """Write what `seal` makes with the key of now; it is made anew where the key was replaced before that was
        durable, here or by another gateway. Any other `Conflict` is the caller's."""
        while True:
            key = self.key.id
            try:
                return await self._store.write(self.holding(), *seal())
            except Conflict:
                await self.take_renewal()
                if self.key.id == key:
                    raise

    async def take_renewal(self) -> None:
        """Where another gateway has replaced the key, know the new one."""
        async with self._changing:
            await self._find_key()

    async def put(self, owner: str, field: str, value: bytes) -> None:
        await self.put_all(owner, {field: value})

    async def put_all(self, owner: str, values: Mapping[str, bytes]) -> None:
        """Keep several values of one owner, all or none."""
        await self.write_sealed(
            lambda: [self.putting(owner, field, value) for field, value in values.items()]
        )

    async def put_once(self, owner: str, field: str, value: bytes) -> None:
        """Keep a value where there is none; one that is there stays."""

        def first() -> list[Statement]:
            sealed = self.key.seal(value, *self._place(owner, field))
            return [Statement(PUT_ONCE, (owner, field, self.key.id, sealed, self._clock.now()))]

        await self.write_sealed(first)

    async def swap(self, owner: str, field: str, value: bytes, version: int) -> None:
        """Replace the value that was read as `version`; `Conflict` where somebody else did so first."""

        def change() -> list[Statement]:
            sealed = self.key.seal(value, *self._place(owner, field))
            given = (self.key.id, sealed, self._clock.now(), owner, field, version)
            return [Statement(SWAP, given, expect=1)]

        await self.write_sealed(change)

    async def write(self, *statements: Statement) -> list[int]:
        """Change what is kept by statements of the caller's own."""
        return await self._store.write(*statements)

    async def remove(self, owner: str, field: str) -> bool:
        """Forget a value; false where there was none."""
        counts = await self._store.write(
            Statement("DELETE FROM vault WHERE owner = ? AND field = ?", (owner, field))
        )
        return counts[0] > 0

    async def rotate(self) -> int:
        """A new key for every value, and a new master key where it is a file; how many values were sealed anew.

        The new master key lies beside the old one until the change is durable: whichever of the two a crash leaves
        behind opens the vault at the next start.
        """
        async with self._changing:
            for _ in range(ROTATIONS):
                try:
                    return await self._rotate_once()
                except Conflict:
                    await self._find_key()
        raise VaultFault("The vault changed while its key was being replaced. Try again")

    async def _rotate_once(self) -> int:
        """`Conflict` where a value came or changed between reading and writing: it would be lost with its key."""
        sql = "SELECT owner, field, key, sealed, version FROM vault"
        rows = await self._read_rows(sql, (), self._find_key)
        fresh = SealingKey(os.urandom(KEY_BYTES))
        resealed = [self._resealing(fresh, *row) for row in rows]
        secret = self._next_master()
        await self._store.write(
            Statement("DELETE FROM vault_keys WHERE id = ?", (self.key.id,), expect=1),
            self._keeping(fresh, secret),
            *resealed,
            Statement(LEFT, (fresh.id,), expect=0),
        )
        self._key = fresh
        if secret.where.endswith(master.NEXT_FILE):
            self.where = str((self._folder / master.NEXT_FILE).replace(self._folder / master.FILE))
        return len(resealed)

    def _resealing(
        self, fresh: SealingKey, owner: str, field: str, name: str, sealed: bytes, version: int
    ) -> Statement:
        value = self._opened(name, bytes(sealed), owner, field)
        change = (fresh.id, fresh.seal(value, *self._place(owner, field)), owner, field, version)
        return Statement(RESEAL, change, expect=1)

    def _next_master(self) -> MasterSecret:
        now = master.find_or_make(self._folder, self._env)
        if now.origin != "file":
            return now
        path = self._folder / master.NEXT_FILE
        replace_whole(path, os.urandom(KEY_BYTES).hex())
        return master.read_key_file(path)
