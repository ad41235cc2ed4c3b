"""A second real browser for tests: Debian's Firefox, installed once where it is missing and can be."""

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from shutil import which

import pytest
from playwright.sync_api import sync_playwright
from tests.ui.chromium import CACHE, install_package

WIRE = Path(__file__).with_name("firefox_wire.py")
PREFERENCES = {
    "browser.newtabpage.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.startup.page": 0,
    "dom.ipc.keepProcessesAlive.web": 1,
    "dom.ipc.processCount": 1,
    "dom.ipc.processCount.webIsolated": 1,
    "dom.ipc.processPrelaunch.enabled": False,
    "extensions.enabledScopes": 0,
    "extensions.webextensions.remote": False,
    "fission.autostart": False,
    "media.rdd-process.enabled": False,
    "media.utility-process.enabled": False,
    "network.process.enabled": False,
}
"""No processes and pages beside those that are looked at: they take a third of its work."""


def find():
    """The browser's path, or None."""
    return which("firefox-esr") or which("firefox")


def install():
    """Install the distribution's package; why not, where that fails."""
    return install_package("firefox-esr", find)


def launch(playwright):
    """The browser, with the wire of `firefox_wire.py` between it and Playwright."""
    CACHE.mkdir(exist_ok=True)
    script = CACHE / f"firefox-{os.getpid()}"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{WIRE}" "{find()}" "$@"\n')
    script.chmod(0o755)
    try:
        return playwright.firefox.launch(
            channel="moz-firefox", executable_path=script, firefox_user_prefs=PREFERENCES
        )
    finally:
        script.unlink()


@contextmanager
def started():
    if find() is None and (reason := install()):
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = launch(playwright)
        try:
            yield browser
        finally:
            browser.close()
