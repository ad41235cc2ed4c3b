"""A running gateway keeps what it holds from the other processes of its user."""

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT_PRIVILEGE = """
import ctypes, os, sys
PR_CAPBSET_DROP = 24
for capability in range(64):
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability)
os.execv(sys.argv[1], sys.argv[1:])
"""
LOOK = "import sys; print(len(open(sys.argv[1], 'rb').read(10)))"
KEPT_FROM_OTHERS = ("environ", "maps", "mem")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can hide a process")


def unprivileged(*argv: str) -> list[str]:
    """A program that the kernel lets look at its own user's processes only; root could look at all."""
    return [sys.executable, "-I", "-S", "-c", WITHOUT_PRIVILEGE, sys.executable, *argv]


def look_at(process: int, name: str) -> "subprocess.CompletedProcess[bytes]":
    """What another process of the same user sees."""
    argv = unprivileged("-I", "-S", "-c", LOOK, f"/proc/{process}/{name}")
    return subprocess.run(argv, capture_output=True, check=False)


def test_no_other_process_of_its_user_reads_the_gateways_environment_or_memory(
    tmp_path: Path,
) -> None:
    listening = ["--insecure", "--port", "0", "--admin-port", "0", "--data", str(tmp_path / "data")]
    argv = unprivileged("-m", "agent_gate", "serve", "--no-config", *listening)
    quiet = subprocess.DEVNULL
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=quiet) as gateway:
        try:
            assert b"url" in gateway.stdout.readline()
            for name in KEPT_FROM_OTHERS:
                seen = look_at(gateway.pid, name)
                assert seen.returncode, name
                assert b"PermissionError" in seen.stderr
            assert look_at(gateway.pid, "cmdline").returncode == 0
        finally:
            gateway.terminate()
