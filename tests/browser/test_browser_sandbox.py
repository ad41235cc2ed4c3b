"""Chromium's own sandbox, around every page, where the gateway runs as a user without privileges."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from tests.browser.browser_house import Agent, browser_house, page
from tests.gateway import Gateway

NOBODY = pwd.getpwnam("nobody")
ROOT = os.geteuid() == 0
ALONE = ["setpriv", f"--reuid={NOBODY.pw_uid}", f"--regid={NOBODY.pw_gid}", "--clear-groups"] if ROOT else []
"""What makes a command one of a user without privileges."""


def start_alone(command, **options):
    return subprocess.Popen([*ALONE, sys.executable, *command], **options)


class NobodysGateway(Gateway):
    """One that runs as the user `nobody`, or as whoever runs the tests where that is not root."""

    process_of = staticmethod(start_alone)


def why_not():
    """What keeps a gateway with a sandboxed browser from running without privileges here; empty where nothing does."""
    if ROOT and shutil.which("setpriv") is None:
        return "there is no setpriv"
    with tempfile.TemporaryDirectory() as there:
        Path(there).chmod(0o755)

        def fails(*words):
            return subprocess.run([*ALONE, *words], cwd=there, capture_output=True, check=False).returncode

        if fails("unshare", "--user", "true"):
            return "this system gives unprivileged users no user namespaces"
        if fails(sys.executable, "-c", "import playwright, agent_gate.app"):
            return "another user cannot read this Python"
    return ""


@pytest.fixture
def gateway():
    """Its folder is that user's: the folders of the tests are closed to others."""
    if reason := why_not():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="gate-"))
    try:
        if ROOT:
            os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
        with browser_house(folder, kind=NobodysGateway) as made:
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def status(process):
    """What the kernel says of a process."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_every_page_runs_in_chromiums_sandbox(gateway):
    running, site = gateway
    site.replies["/here"] = page("<h1>Here</h1>")
    assert "# Here" in Agent(running, site, "a").open("/here")
    below = psutil.Process(running.process.pid).children(recursive=True)
    commands = {process: process.cmdline() for process in below}
    assert not any("--no-sandbox" in words for words in commands.values())
    renderers = [process for process, words in commands.items() if "--type=renderer" in words]
    assert renderers
    for renderer in renderers:
        said = status(renderer)
        assert said["Seccomp"] == "2", "system calls are filtered"
        assert said["NoNewPrivs"] == "1"
        assert len(said["NSpid"].split()) > 1, "it sees no process but its own"
    assert "without its sandbox" not in running.stderr
