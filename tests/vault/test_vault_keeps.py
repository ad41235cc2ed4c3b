"""The vault: what it keeps opens only with its key, at its place, unaltered; and survives every change of key."""

import asyncio
import base64
import os
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from hypothesis import given
from hypothesis import strategies as st
from tests import postgres
from tests.rows import opened

from agent_gate.core.ports import SystemClock
from agent_gate.errors import ConfigError
from agent_gate.store import Conflict, Statement, Store, StoreSettings
from agent_gate.vault import master
from agent_gate.vault.master import MasterSecret
from agent_gate.vault.sealing import SealingKey, VaultFault
from agent_gate.vault.vault import Vault

CANARY = b"canary-4f1e-of-the-vault"
SECRET = "a long passphrase of a person"
KEY = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreSettings]:
    if request.param == "sqlite":
        yield StoreSettings(path=tmp_path / "data" / "gate.db", chain="home")
    else:
        yield StoreSettings(type="postgres", url=postgres.server().clean_database(), chain="home")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir(mode=0o700, exist_ok=True)
    return made


async def vault_of(store: Store, folder: Path, env: dict[str, str] | None = None) -> Vault:
    vault = Vault(store, SystemClock(), folder, "home", env or {})
    await vault.open()
    return vault


@asynccontextmanager
async def a_vault(
    settings: StoreSettings, folder: Path, env: dict[str, str] | None = None
) -> AsyncIterator[tuple[Store, Vault]]:
    async with opened(settings) as store:
        yield store, await vault_of(store, folder, env)


async def test_a_value_is_there_again_after_a_restart(settings: StoreSettings, folder: Path) -> None:
    async with a_vault(settings, folder) as (_, vault):
        await vault.put("server:notion", "token", CANARY)
    async with a_vault(settings, folder) as (_, vault):
        found = await vault.get("server:notion", "token")
        assert found is not None
        assert (found.value, found.version) == (CANARY, 1)
        assert await vault.get("server:notion", "other") is None


async def test_what_is_kept_opens_under_the_name_of_its_tenant_alone(
    settings: StoreSettings, folder: Path
) -> None:
    async with a_vault(settings, folder) as (store, vault):
        await vault.put("server:notion", "token", CANARY)
        with pytest.raises(VaultFault):
            await Vault(store, SystemClock(), folder, "elsewhere", {}).open()
        assert await (await vault_of(store, folder)).get("server:notion", "token") is not None


async def test_nothing_on_disk_holds_a_value_or_shows_it(tmp_path: Path, folder: Path) -> None:
    async with a_vault(StoreSettings(path=folder / "gate.db"), folder) as (_, vault):
        await vault.put("server:notion", "token", CANARY)
        await vault.rotate()
        kept = await vault.get("server:notion", "token")
        assert CANARY.decode() not in repr(kept)
        assert KEY not in repr(SealingKey(bytes.fromhex(KEY)))
        assert_absent(folder)
    assert_absent(folder)


def assert_absent(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert [path.name for path in files if CANARY in path.read_bytes()] == []


async def test_the_key_file_is_for_the_owner_alone(folder: Path) -> None:
    settings = StoreSettings(path=folder / "gate.db")
    async with a_vault(settings, folder):
        pass
    assert stat.S_IMODE((folder / "vault.key").stat().st_mode) == 0o600
    (folder / "vault.key").chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        async with a_vault(settings, folder):
            pass


async def test_a_key_file_that_is_a_link_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text(KEY)
    (folder / "vault.key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=r"vault\.key"):
        async with a_vault(StoreSettings(path=folder / "gate.db"), folder):
            pass


@pytest.mark.parametrize("given", [SECRET, KEY])
async def test_another_secret_opens_nothing_and_changes_nothing(
    settings: StoreSettings, folder: Path, given: str
) -> None:
    async with a_vault(settings, folder, {"AGENT_GATE_SECRET": given}) as (_, vault):
        await vault.put("secret:a", "value", CANARY)
        name = vault.master_id
    with pytest.raises(ConfigError, match=name):
        async with a_vault(settings, folder, {"AGENT_GATE_SECRET": given[::-1]}):
            pass
    async with a_vault(settings, folder, {"TOOL_GATEWAY_SECRET": given}) as (_, vault):
        found = await vault.get("secret:a", "value")
        assert found is not None
        assert found.value == CANARY


def test_a_key_may_be_written_in_either_form_and_a_passphrase_goes_through_argon2id() -> None:
    salt = bytes(range(16))
    spelled = [KEY, base64.b64encode(bytes.fromhex(KEY)).decode()]
    assert len({MasterSecret(text, "environment", "x").key(salt).id for text in spelled}) == 1
    stretched = Argon2id(salt=salt, length=32, iterations=3, lanes=1, memory_cost=64 * 1024)
    wanted = SealingKey(stretched.derive(SECRET.encode()))
    sealed = MasterSecret(SECRET, "environment", "x").key(salt).seal(CANARY, "place")
    assert wanted.open(sealed, "place") == CANARY


def test_the_environment_comes_before_the_keyring_and_the_keyring_before_a_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def read_keyring(name: str) -> str:
        asked.append(name)
        return SECRET

    monkeypatch.setattr(master, "read_keyring", read_keyring)
    assert master.find_or_make(folder, {"AGENT_GATE_SECRET": KEY}).origin == "environment"
    assert (master.find_or_make(folder, {}).origin, asked) == ("keyring", ["vault"])
    assert not (folder / "vault.key").exists()


async def test_a_new_secret_counts_once_the_old_one_was_named(settings: StoreSettings, folder: Path) -> None:
    async with a_vault(settings, folder) as (_, vault):
        await vault.put("secret:a", "value", CANARY)
    async with a_vault(settings, folder, {"AGENT_GATE_SECRET": SECRET}) as (_, vault):
        assert vault.where == "AGENT_GATE_SECRET"
    changed = {"AGENT_GATE_SECRET": KEY, "AGENT_GATE_OLD_SECRET": SECRET}
    async with a_vault(settings, folder, changed) as (_, vault):
        assert vault.where == "AGENT_GATE_SECRET"
    async with a_vault(settings, folder, {"AGENT_GATE_SECRET": KEY}) as (_, vault):
        found = await vault.get("secret:a", "value")
        assert found is not None
        assert found.value == CANARY


async def test_a_short_secret_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="16 characters"):
        async with a_vault(StoreSettings(path=folder / "gate.db"), folder, {"AGENT_GATE_SECRET": "short"}):
            pass


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE vault SET sealed = (SELECT sealed FROM vault WHERE field = 'other') WHERE field = 'token'",
        "UPDATE vault SET sealed = substr(sealed, 1, 20) WHERE field = 'token'",
        "UPDATE vault SET key = 'elsewhere' WHERE field = 'token'",
        "UPDATE vault SET sealed = substr(sealed, 1, 0) WHERE field = 'token'",
    ],
)
async def test_a_swapped_cut_or_renamed_value_fails_closed_and_names_its_key(
    settings: StoreSettings, folder: Path, harm: str
) -> None:
    async with a_vault(settings, folder) as (store, vault):
        await vault.put("server:notion", "token", CANARY)
        await vault.put("server:notion", "other", b"another value")
        await store.write(Statement(harm))
        with pytest.raises(VaultFault) as fault:
            await vault.get("server:notion", "token")
        assert vault.key.id in fault.value.message or "elsewhere" in fault.value.message
        assert CANARY.decode() not in fault.value.message
        with pytest.raises(VaultFault):
            await vault.rotate()
        assert await vault.get("server:notion", "other") is not None


@given(value=st.binary(max_size=200), place=st.lists(st.text(max_size=8), max_size=3), bit=st.integers(0))
def test_a_flipped_bit_or_another_place_never_opens(value: bytes, place: list[str], bit: int) -> None:
    key = SealingKey(os.urandom(32))
    sealed = key.seal(value, *place)
    assert key.open(sealed, *place) == value
    harmed = bytearray(sealed)
    harmed[(bit // 8) % len(sealed)] ^= 1 << bit % 8
    for other, where in ((bytes(harmed), place), (sealed, [*place, ""]), (sealed[:-1], place)):
        with pytest.raises(VaultFault):
            key.open(other, *where)


async def test_rotation_seals_everything_anew_with_a_new_key_file(
    settings: StoreSettings, folder: Path
) -> None:
    async with a_vault(settings, folder) as (store, vault):
        for number in range(5):
            await vault.put(f"server:{number}", "token", CANARY)
        before, file = vault.key.id, (folder / "vault.key").read_text()
        assert await vault.rotate() == 5
        assert vault.key.id != before
        assert (folder / "vault.key").read_text() != file
        assert not (folder / "vault.key.next").exists()
        assert await store.read("SELECT DISTINCT key FROM vault") == [(vault.key.id,)]
    async with a_vault(settings, folder) as (_, vault):
        assert len(await vault.read_all("token")) == 5


@pytest.mark.parametrize("durable", [True, False])
async def test_a_rotation_cut_short_leaves_a_vault_that_opens(folder: Path, durable: bool) -> None:
    """A crash on either side of the commit: with the file's rename missing, or with nothing but the new file there."""
    settings = StoreSettings(path=folder / "gate.db")

    async with a_vault(settings, folder) as (_, vault):
        await vault.put("secret:a", "value", CANARY)
        old = (folder / "vault.key").read_text()
        if durable:
            await vault.rotate()
            (folder / "vault.key").rename(folder / "vault.key.next")
        else:
            (folder / "vault.key.next").write_text(KEY)
            (folder / "vault.key.next").chmod(0o600)
        (folder / "vault.key").write_text(old)
        (folder / "vault.key").chmod(0o600)
    async with a_vault(settings, folder) as (_, vault):
        found = await vault.get("secret:a", "value")
        assert found is not None
        assert found.value == CANARY
    assert not (folder / "vault.key.next").exists()


async def test_only_one_of_two_writers_replaces_a_value(settings: StoreSettings, folder: Path) -> None:
    async with a_vault(settings, folder) as (_, vault):
        await vault.put("server:a", "token", b"1")
        await vault.swap("server:a", "token", b"2", 1)
        with pytest.raises(Conflict):
            await vault.swap("server:a", "token", b"3", 1)
        found = await vault.get("server:a", "token")
        assert found is not None
        assert (found.value, found.version) == (b"2", 2)
        assert await vault.remove("server:a", "token")
        assert not await vault.remove("server:a", "token")


async def test_two_gateways_on_one_store_share_one_key(folder: Path) -> None:
    here = StoreSettings(type="postgres", url=postgres.server().clean_database(), chain="a")
    there = replace(here, chain="b")
    env = {"AGENT_GATE_SECRET": SECRET}

    async with (
        a_vault(here, folder, env) as (_, first),
        a_vault(there, folder, env) as (_, second),
    ):
        await first.put("server:a", "token", b"1")
        assert await second.get("server:a", "token") is not None
        await first.rotate()
        found = await second.get("server:a", "token")
        assert found is not None
        assert found.value == b"1"


async def test_a_value_that_comes_while_the_key_is_being_replaced_is_not_lost(
    settings: StoreSettings, folder: Path
) -> None:
    async with a_vault(settings, folder) as (store, vault):
        await vault.put("server:0", "token", CANARY)
        rotating, putting = [], []
        for number in range(1, 20):
            rotating.append(asyncio.ensure_future(vault.rotate()))
            await asyncio.sleep(0)
            putting.append(asyncio.ensure_future(vault.put(f"server:{number}", "token", CANARY)))
            reading = asyncio.ensure_future(vault.read_all("token"))
            await asyncio.gather(rotating[-1], reading)
        await asyncio.gather(*putting)
        assert len(await vault.read_all("token")) == 20
        assert len(await (await vault_of(store, folder)).read_all("token")) == 20
    async with a_vault(settings, folder) as (_, vault):
        assert {kept.value for kept in (await vault.read_all("token")).values()} == {CANARY}


async def test_a_value_is_sealed_with_the_key_that_another_gateway_put_in_place(
    settings: StoreSettings, folder: Path
) -> None:
    async with a_vault(settings, folder) as (store, vault):
        other = await vault_of(store, folder)
        await other.rotate()
        await vault.put("server:notion", "token", CANARY)
        found = await other.get("server:notion", "token")
        assert found is not None
        assert found.value == CANARY


async def test_after_a_rotation_the_key_is_where_the_vault_says(folder: Path) -> None:
    async with a_vault(StoreSettings(path=folder / "gate.db"), folder) as (_, vault):
        before = vault.where
        await vault.rotate()
        assert (vault.where, Path(vault.where).is_file()) == (before, True)


async def test_a_key_is_replaced_again_by_a_gateway_that_did_not_hear_of_the_first_time(
    settings: StoreSettings, folder: Path
) -> None:
    async with a_vault(settings, folder) as (store, vault):
        await vault.put("server:notion", "token", CANARY)
        other = await vault_of(store, folder)
        await other.rotate()
        assert await vault.rotate() == 1
        found = await other.get("server:notion", "token")
        assert found is not None
        assert found.value == CANARY


async def test_a_value_is_swapped_where_another_gateway_replaced_the_key_after_it_was_read(
    settings: StoreSettings, folder: Path
) -> None:
    async with a_vault(settings, folder) as (store, vault):
        other = await vault_of(store, folder)
        await vault.put("server:notion", "token", b"old")
        read = await vault.get("server:notion", "token")
        assert read is not None
        await other.rotate()
        await vault.swap("server:notion", "token", CANARY, read.version)
        found = await other.get("server:notion", "token")
        assert found is not None
        assert (found.value, found.version) == (CANARY, read.version + 1)
        await other.rotate()
        with pytest.raises(Conflict):
            await vault.swap("server:notion", "token", b"late", read.version)


class SlowStore:
    """A store on the way to or from which something happens once: `change`, while there is one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.change: Callable[[], Awaitable[object]] | None = None

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def _let_change(self) -> None:
        change, self.change = self.change, None
        if change is not None:
            await change()

    async def read(self, sql: str, params: tuple[str, ...] = ()) -> list[tuple[object, ...]]:
        rows = await self._store.read(sql, params)
        await self._let_change()
        return rows

    async def write(self, *statements: Statement) -> list[int]:
        await self._let_change()
        return await self._store.write(*statements)


async def test_what_is_read_while_the_key_is_replaced_is_read_again(
    settings: StoreSettings, folder: Path
) -> None:
    async with a_vault(settings, folder) as (store, _):
        slow = SlowStore(store)
        vault = await vault_of(slow, folder)  # type: ignore[arg-type]
        await vault.put("server:notion", "token", CANARY)
        slow.change = vault.rotate
        found = await vault.get("server:notion", "token")
        assert found is not None
        assert (found.value, slow.change) == (CANARY, None)


@pytest.mark.parametrize("put", [Vault.put, Vault.put_once])
async def test_what_is_kept_while_the_key_is_replaced_is_sealed_with_the_new_one(
    settings: StoreSettings, folder: Path, put: Callable[..., Awaitable[None]]
) -> None:
    async with a_vault(settings, folder) as (store, other):
        slow = SlowStore(store)
        vault = await vault_of(slow, folder)  # type: ignore[arg-type]
        slow.change = vault.rotate
        await put(vault, "server:notion", "token", CANARY)
        found = await other.get("server:notion", "token")
        assert found is not None
        assert (found.value, slow.change) == (CANARY, None)


async def test_several_values_of_one_owner_are_kept_together(settings: StoreSettings, folder: Path) -> None:
    async with a_vault(settings, folder) as (_, vault):
        await vault.put_all("pairing", {"key": CANARY, "certificate": b"shown to all"})
        found = [await vault.get("pairing", field) for field in ("key", "certificate")]
        assert [kept and kept.value for kept in found] == [CANARY, b"shown to all"]


class HeldStore:
    """A store whose writes wait until they may go on."""

    def __init__(self, store: Store) -> None:
        self._store, self.go_on, self.asked = store, asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def write(self, *statements: Statement) -> list[int]:
        self.asked.set()
        await self.go_on.wait()
        return await self._store.write(*statements)


async def test_nobody_who_looks_for_the_key_takes_the_next_one_away_from_a_rotation(
    tmp_path: Path, folder: Path
) -> None:
    async with a_vault(StoreSettings(path=folder / "gate.db"), folder) as (store, vault):
        await vault.put("server:notion", "token", CANARY)
        held = HeldStore(store)
        rotating_vault = await vault_of(held, folder)  # type: ignore[arg-type]
        rotation = asyncio.ensure_future(rotating_vault.rotate())
        await held.asked.wait()
        looking = asyncio.ensure_future(rotating_vault.take_renewal())
        await asyncio.wait([looking], timeout=0.2)
        held.go_on.set()
        await asyncio.gather(rotation, looking)
    async with a_vault(StoreSettings(path=folder / "gate.db"), folder) as (_, vault):
        found = await vault.get("server:notion", "token")
        assert found is not None
