"""What the security page says of a gateway that nobody configured, of its files, its servers and its advice."""

import asyncio
import json
import logging
import os
import shutil
import socket
import ssl
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from tests.app.small import CONFIG, TOOLS
from tests.cli.test_gateway_hides import unprivileged
from tests.gateway import TOKEN, running
from tests.rows import opened, step
from tests.waiting import PATIENCE, wait_until

from agent_gate.audit import Heads, Sealer
from agent_gate.audit.seal import NOTE_SECONDS
from agent_gate.cli.diagnosis import of_same_user
from agent_gate.config.load import load
from agent_gate.net.pool import Pool
from agent_gate.sources.mcp.sessions.dial import Dialer
from agent_gate.store import StoreSettings

LISTENING = "0A"
LOOPBACK = {"0100007F", "00000000000000000000000001000000"}
SOMEBODY = 1000
PUBLIC_FILES = {".crt", ".lock"}


@pytest.fixture(scope="module")
def unconfigured(tmp_path_factory):
    """A gateway that was told nothing but a folder and free ports."""
    folder = tmp_path_factory.mktemp("unconfigured")
    argv = unprivileged(
        "-m", "agent_gate", "serve", "--no-config", "--data", "data", "--port", "0", "--admin-port", "0"
    )
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    with subprocess.Popen(
        argv, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield folder, process, json.loads(process.stdout.readline())
        finally:
            process.terminate()


def listening_at(port):
    """The addresses, as the kernel writes them, at which anybody on this machine listens on that port."""
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    return {
        row[1].split(":")[0] for row in rows if row[3] == LISTENING and int(row[1].split(":")[1], 16) == port
    }


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/net")
def test_it_listens_on_loopback_alone(unconfigured):
    _, _, said = unconfigured
    for url in (said["url"], said["admin"]):
        found = listening_at(urlsplit(url).port)
        assert found
        assert found <= LOOPBACK


def test_it_speaks_tls_with_a_certificate_it_made_and_no_plain_http(unconfigured):
    folder, _, said = unconfigured
    trusting = ssl.create_default_context(cafile=folder / "data" / "tls" / "ca.crt")
    assert urlopen(f"{said['url']}/health", context=trusting).status == 200
    address = urlsplit(said["url"])
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as plain:
        plain.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"HTTP/1.1 200" not in plain.recv(4096)


def test_nobody_else_can_read_a_file_that_it_made(unconfigured):
    folder, _, _ = unconfigured
    made = [path for path in (folder / "data").rglob("*") if path.suffix not in PUBLIC_FILES]
    assert {"agent.token", "audit.key", "vault.key", "channels.key", "seal.key", "ca.key"} <= {
        path.name for path in made
    }
    assert [path for path in made if not path.is_dir() and path.stat().st_mode & 0o077] == []
    assert stat.S_IMODE((folder / "data").stat().st_mode) == 0o700


TRACE = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace(16, int(sys.argv[1]), 0, 0) == 0 or sys.exit(ctypes.get_errno())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can hide a process")
def test_no_other_process_of_its_user_traces_it(unconfigured):
    _, process, _ = unconfigured
    seen = subprocess.run(unprivileged("-I", "-S", "-c", TRACE, str(process.pid)), check=False)
    assert seen.returncode == 1, "EPERM"


def test_a_program_that_was_found_stays_that_file(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    one, other = shutil.which("true"), shutil.which("false")
    for folder in (first, second):
        folder.mkdir()
    shutil.copy(one, second / "lab-server")
    monkeypatch.setenv("PATH", f"{first}:{second}")
    (tmp_path / "config.yaml").write_text("servers: {lab: {command: lab-server}}")
    settings = load(tmp_path / "config.yaml", env={}).settings.sources["servers"]["lab"]
    dial = Dialer(settings, Pool(), access=None)
    assert dial.argv == [str(second / "lab-server")]
    shutil.copy(other, first / "lab-server")
    assert dial.argv == [str(second / "lab-server")]


@pytest.mark.parametrize(("locked", "told"), [(False, 1), (True, 0)])
def test_the_doctor_says_that_a_shell_under_the_same_user_could_answer(tmp_path, monkeypatch, locked, told):
    there = tmp_path / "admin.sock"
    there.touch()
    if os.geteuid() == 0:
        assert list(of_same_user({"socket": str(there)}, locked=locked)) == []
        os.chown(there, SOMEBODY, SOMEBODY)
        assert list(of_same_user({"socket": str(there)}, locked=locked)) == []
    monkeypatch.setattr(os, "geteuid", lambda: there.stat().st_uid)
    assert len(list(of_same_user({"socket": str(there)}, locked=locked))) == told


async def test_the_head_of_the_record_is_sealed_every_thousand_rows(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    async with opened(StoreSettings(path=tmp_path / "gate.db")) as store:
        heads = Heads(tmp_path / "audit.head", b"k" * 32)
        async with Sealer(store, b"k" * 32, heads=heads):
            await asyncio.gather(*(store.write(step(f"c{number}")) for number in range(1000)))
            async with asyncio.timeout(PATIENCE):
                while not await store.read("SELECT 1 FROM seals"):
                    await asyncio.sleep(0)
            assert await store.read("SELECT seq FROM seals") == [(1000,)]
        assert heads.known[store.chain].seq == 1000
    assert any(
        getattr(entry, "seq", None) == 1000 or "1000" in entry.getMessage() for entry in caplog.records
    )
    assert NOTE_SECONDS == 5.0


def test_the_record_says_who_what_why_and_how_it_ended(tmp_path, recorder):
    files = {
        "config.yaml": CONFIG.format(url=recorder.url, token=TOKEN),
        "tools.yaml": TOOLS,
        "permissions.yaml": 'rules:\n  - {pattern: "write*", action: ask}\n',
    }
    with running(tmp_path, files, "--insecure") as gateway:
        call = gateway.call("write", {"n": 7}, wait=0).json["call"]
        gateway.answer("approve")
        wait_until(lambda: gateway.story(call)[-1] == "completed")
        asked, answered, sent, ended = gateway.admin.get(f"/api/calls/{call}")
    assert {row["caller"] for row in (asked, answered, sent, ended)} == {"default"}
    assert asked["tool"].startswith("home:write")
    body = asked["body"]
    assert (body["arguments"], body["decision"], body["rule"]) == ({"n": 7}, "ask", "ask write*")
    assert body["where"].endswith("permissions.yaml:2:5")
    assert (answered["body"]["channel"], bool(answered["body"]["by"])) == ("terminal", True)
    assert (ended["state"], ended["body"]["size"] > 0) == ("completed", True)
