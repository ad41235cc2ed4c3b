"""Programs and libraries of Debian's packages for tests: what is installed, or else unpacked below `.cache`."""

import shutil
import subprocess
from pathlib import Path

CACHE = Path(__file__).parents[1] / ".cache"


def unpack(name: str, packages: tuple[str, ...]) -> Path:
    """The folder with what these packages hold; empty where there is no Debian to fetch them from."""
    folder = CACHE / name
    if not folder.exists() and shutil.which("apt-get") and shutil.which("dpkg"):
        folder.mkdir(parents=True)
        for package in packages:
            subprocess.run(["apt-get", "download", package], cwd=folder, capture_output=True, timeout=90)
        for package in folder.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package.name, "."], cwd=folder, check=True)
    return folder
