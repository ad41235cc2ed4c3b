"""Real MCP servers that other people wrote, installed once into `.cache/servers` and reused by every run.

Each Python server has its own environment, because they need different versions of one library; the
Node servers share one folder. `command(name)` installs on first use and returns the argv that starts it.
"""

import fcntl
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "servers"
PYTHON_SERVERS = {
    "time": "mcp-server-time==2026.10.19",
    "git": "mcp-server-git==2026.10.19",
    "mqtt": "amqtt==0.12.1",
}
NODE_SERVERS = {
    "filesystem": ("@modelcontextprotocol/server-filesystem", "2026.8.31"),
    "memory": ("@modelcontextprotocol/server-memory", "2026.8.31"),
    "everything": ("@modelcontextprotocol/server-everything", "2026.8.31"),
    "sequential-thinking": ("@modelcontextprotocol/server-sequential-thinking", "2026.8.31"),
    "github": ("@modelcontextprotocol/server-github", "2025.4.8"),
}


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Only one test process installs; the others wait for it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def run(*argv: str, cwd: Path | None = None) -> None:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{argv[0]} failed while installing a test server: {done.stderr[-2000:]}")


def reference() -> Path:
    """A folder with contextweaver alone: it asks for an older protocol library than the other tests use."""
    folder = CACHE / "reference"
    with locked(folder):
        if not (folder / ".ready").exists():
            argv = ("-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder / "lib"))
            run(sys.executable, *argv, "contextweaver==0.18.2")
            (folder / ".ready").touch()
    return folder / "lib"


def install_python(name: str) -> None:
    folder = CACHE / name
    with locked(folder):
        if (folder / ".ready").exists():
            return
        venv.create(folder, with_pip=False, clear=False)
        into = ("--python", str(folder / "bin" / "python"))
        run(sys.executable, "-m", "pip", *into, "install", "-q", PYTHON_SERVERS[name])
        (folder / ".ready").touch()


def install_node() -> None:
    folder = CACHE / "node"
    wanted = "\n".join(f"{package}@{version}" for package, version in NODE_SERVERS.values())
    with locked(folder):
        ready = folder / ".ready"
        if ready.exists() and ready.read_text() == wanted:
            return
        (folder / "package.json").write_text("{}")
        flags = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        run("npm", "install", *flags, *wanted.splitlines(), cwd=folder)
        ready.write_text(wanted)


def node_entry(name: str) -> str:
    return str(CACHE / "node" / "node_modules" / NODE_SERVERS[name][0] / "dist" / "index.js")


def command(name: str) -> list[str]:
    """The argv of a server, installed if it was not yet."""
    if name in PYTHON_SERVERS:
        install_python(name)
        return [str(CACHE / name / "bin" / f"mcp-server-{name}")]
    install_node()
    return [which("node") or "node", node_entry(name)]


if __name__ == "__main__":
    for server in sys.argv[1:] or [*PYTHON_SERVERS, *NODE_SERVERS]:
        print(*command(server))
