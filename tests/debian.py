"""Programs and libraries of Debian's packages for tests: what is installed, or else unpacked below `.cache`."""

import shutil
import subprocess
from pathlib import Path

from tests.servers import locked

CACHE = Path(__file__).parents[1] / ".cache"
WRAPPED = '#!/bin/sh\nLD_LIBRARY_PATH="{libraries}" exec "{program}" "$@"\n'


def unpack(name: str, packages: tuple[str, ...]) -> Path:
    """The folder with what these packages hold; empty where there is no Debian to fetch them from."""
    folder = CACHE / name
    with locked(folder):
        if not (folder / ".ready").exists() and shutil.which("apt-get") and shutil.which("dpkg"):
            for package in packages:
                subprocess.run(["apt-get", "download", package], cwd=folder, capture_output=True, timeout=90)
            for archive in folder.glob("*.deb"):
                subprocess.run(["dpkg", "-x", archive.name, "."], cwd=folder, check=True)
            if any(folder.glob(f"{packages[0]}_*.deb")):
                (folder / ".ready").touch()
    return folder


def find_program(name: str, *needed: str) -> str | None:
    """Where a program is: installed, or of the package of its name, started with the libraries of the packages it needs."""
    if found := shutil.which(name) or shutil.which(f"/usr/sbin/{name}"):
        return found
    folder = unpack(name, (name, *needed))
    program, start = folder / "usr" / "sbin" / name, folder / "start"
    if not program.exists():
        return None
    with locked(folder):
        if not start.exists():
            libraries = ":".join(map(str, folder.glob("usr/lib/*-linux-gnu")))
            start.write_text(WRAPPED.format(libraries=libraries, program=program))
            start.chmod(0o755)
    return str(start)
