"""The gateways that the scenarios share."""

import json
import os
import subprocess
from functools import partial
from types import SimpleNamespace

import pytest
from tests.gateway import COMMAND, TOKEN, Gateway, running
from tests.nursery import ForkedCommand
from tests.scenarios.gateway_scenes import (
    EAGER,
    Lab,
    child,
    configured,
    lab,
    notes,
    wait_for_sources,
)
from tests.servers import command

FAULTY = """
from agent_gate import ServiceHandler

class Faulty(ServiceHandler):
    def execute(self, tool_name, args):
        raise ZeroDivisionError("the plugin's own mistake")
"""
FAULTY_TOOLS = "tools: {break_it: {args: {}, signature: break_it}}"


@pytest.fixture(scope="package")
def gateway(tmp_path_factory):
    """In front of servers that all work; it logs everything."""
    folder = tmp_path_factory.mktemp("gateway")
    servers = {
        "time": child(command("time")),
        "github-api": notes(folder),
        "123server": child(command("time")),
        "slow": child([*command("everything"), "stdio"], timeout=0.5),
        "lab": lab(folder),
    }
    services = {
        "faulty": {
            "url": "none://",
            "handler": "python",
            "handler_class": "faulty:Faulty",
            "tools": "faulty.yaml",
        }
    }
    files = configured(servers, TOKEN, services=services, plugins={"paths": ["."]})
    files |= {"faulty.py": FAULTY, "faulty.yaml": FAULTY_TOOLS}
    with running(folder, files, "--insecure", env={"LOG_LEVEL": "debug"}) as started:
        wait_for_sources(started, *EAGER)
        yield started


@pytest.fixture(scope="package")
def troubled(tmp_path_factory):
    """In front of a server that can be killed, and of one that never starts."""
    folder = tmp_path_factory.mktemp("troubled")
    server = Lab(folder)
    server.start()
    servers = {"lab": server.entry, "broken": child(["false"]), "notes": notes(folder)}
    with running(folder, configured(servers, TOKEN), "--insecure") as started:
        wait_for_sources(started, "lab", "notes")
        yield SimpleNamespace(gateway=started, lab=server)
    server.kill()


@pytest.fixture
def revived(troubled):
    """The troubled gateway; its server runs again at the end."""
    yield troubled
    if troubled.lab.process.poll() is not None:
        troubled.lab.start()
    wait_for_sources(troubled.gateway, "lab")


@pytest.fixture(scope="package")
def empty(tmp_path_factory):
    """Started with no file at all; it makes its own token and keeps it beside its store."""
    folder = tmp_path_factory.mktemp("empty")
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    argv = [COMMAND, "serve", "--port", "0", "--insecure", "--data", "data"]
    with (
        (folder / "stderr.txt").open("wb") as log,
        ForkedCommand(argv, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        started = Gateway(folder)
        started.process, started.announced = process, json.loads(process.stdout.readline())
        started.url = started.announced["url"]
        made = (folder / "data" / "agent.token").read_text().strip()
        started.request = partial(started.request, token=made)
        yield started
        process.terminate()
