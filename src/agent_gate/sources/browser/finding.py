"""Finds the browser that is installed, and says how to get one where there is none."""

import os
from pathlib import Path
from shutil import which

from agent_gate.errors import DependencyUnavailable

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "microsoft-edge-stable",
    "microsoft-edge",
)
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "/snap/bin/chromium",
    "/opt/google/chrome/chrome",
)
NONE = (
    "There is no Chromium, Chrome or Edge on this machine. Install one (Debian and Ubuntu: apt install chromium; "
    "Fedora: dnf install chromium; macOS: brew install --cask chromium), or name one in browser.executable"
)
NO_EXTRA = "The browser tools need Playwright. Install it with: pip install 'agent-gate[browser]'"
USER_NAMESPACES = Path("/proc/sys/user/max_user_namespaces")


def find_browser(named: Path | None) -> str:
    """The program to start. Raises `DependencyUnavailable` with what to do where there is none."""
    if named is not None:
        if os.access(named, os.X_OK) and named.is_file():
            return str(named)
        raise DependencyUnavailable(f"browser.executable: {named} is not a program that can be started")
    found = next(filter(None, map(which, NAMES)), None)
    found = found or next((place for place in PLACES if os.access(place, os.X_OK)), None)
    if found is None:
        raise DependencyUnavailable(NONE)
    return found


def why_no_sandbox() -> str:
    """What keeps Chromium from running its pages in its own sandbox here; empty where nothing does."""
    if os.name == "posix" and os.geteuid() == 0:
        return "the gateway runs as root"
    try:
        if USER_NAMESPACES.exists() and int(USER_NAMESPACES.read_text()) == 0:
            return "user namespaces are switched off (user.max_user_namespaces is 0)"
    except (OSError, ValueError):
        return ""
    return ""
