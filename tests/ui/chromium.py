"""A real browser for tests: Debian's chromium, installed once where it is missing and can be."""

import fcntl
import os
import subprocess
from pathlib import Path
from shutil import which

CACHE = Path(__file__).resolve().parents[2] / ".cache"
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--renderer-process-limit=1",  # a process for each page takes a fifth of the work of a test
)


def find():
    """The browser's path, or None."""
    return which("chromium") or which("chromium-browser") or which("google-chrome")


def install_package(name, find):
    """Install a package of the distribution, one test process at a time; why not, where that fails."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if find():
            return ""
        if os.geteuid() != 0 or which("apt-get") is None:
            return f"there is no {name}, and it cannot be installed without root and apt-get"
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        return "" if find() else f"{name} could not be installed: {done.stderr[-300:]}"


def install():
    return install_package("chromium", find)


def launch(playwright):
    return playwright.chromium.launch(executable_path=find(), args=list(FLAGS))
