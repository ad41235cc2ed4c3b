"""A real browser for tests: Debian's chromium, installed once where it is missing and can be.

Pages are tested in its headless shell, the same engine without a window's frame, which takes two thirds of the CPU;
what the shell has not, such as messages that are pushed, in the whole browser.
"""

import fcntl
import os
import subprocess
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from shutil import which

import pytest
from playwright.sync_api import sync_playwright

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
    """The whole browser's path, or None."""
    return which("chromium") or which("chromium-browser") or which("google-chrome")


def find_shell():
    """The path of the headless shell, or None."""
    return which("chromium-headless-shell")


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


@cache
def install():
    """Install both where they are missing; why the whole browser could not be."""
    install_package("chromium-headless-shell", find_shell)
    return install_package("chromium", find)


def need():
    """Skip the test that asks where there is no browser and none can be installed."""
    if not (find() and find_shell()) and (reason := install()):
        pytest.skip(reason)


def launch(playwright, path=None):
    return playwright.chromium.launch(executable_path=path or find(), args=list(FLAGS))


@contextmanager
def started(path=None):
    """The browser at this path, else the shell where there is one."""
    need()
    with sync_playwright() as playwright:
        browser = launch(playwright, path or find_shell())
        try:
            yield browser
        finally:
            browser.close()
