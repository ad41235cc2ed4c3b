"""Programs and libraries of Debian's packages for tests: what is installed, or else unpacked below `.cache`.

Unpacked, not installed: a package that brings a service would start it on the machine of whoever runs the tests.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.servers import locked

CACHE = Path(__file__).parents[1] / ".cache"
READY = ".ready"
LIBRARIES = ("usr/lib/*-linux-*", "lib/*-linux-*", "usr/lib", "lib")


def find_program(name: str, package: str) -> str | None:
    """The program on this machine, or the one in the package; None where there is no Debian to fetch it from."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if found is not None:
        return found
    folder = unpack(package)
    packed = next(folder.glob(f"usr/*bin/{name}"), None)
    return str(wrap(folder, packed)) if packed else None


def wrap(folder: Path, packed: Path) -> Path:
    """A script that runs the program with the libraries it was unpacked with."""
    paths = ":".join(str(one) for pattern in LIBRARIES for one in folder.glob(pattern))
    script = folder / packed.name
    with locked(folder):
        if not script.exists():
            script.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH="{paths}" exec "{packed}" "$@"\n')
            script.chmod(0o755)
    return script


def unpack(package: str) -> Path:
    """The folder with what the package holds, and all it depends on that is not installed; empty without Debian."""
    folder = CACHE / "debian" / package
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return folder
    with locked(folder):
        if not (folder / READY).exists():
            fetch(package, folder)
    return folder


def fetch(package: str, folder: Path) -> None:
    """What could not be fetched is tried again the next time."""
    wanted = list_missing(package)
    subprocess.run(["apt-get", "download", *wanted], cwd=folder, capture_output=True, timeout=180)
    fetched = list(folder.glob("*.deb"))
    for one in fetched:
        subprocess.run(["dpkg", "-x", one.name, "."], cwd=folder, check=True)
        one.unlink()
    if len(fetched) == len(wanted):
        (folder / READY).touch()


def list_missing(package: str) -> list[str]:
    """The package and what it needs beside what is installed, as apt would install it."""
    for _ in range(2):
        said = subprocess.run(
            ["apt-get", "install", "--simulate", "--no-install-recommends", package],
            capture_output=True,
            text=True,
            timeout=90,
        )
        if found := re.findall(r"^Inst (\S+)", said.stdout, re.MULTILINE):
            return found
        subprocess.run(["apt-get", "update", "-qq"], capture_output=True, timeout=180)
    return [package]
