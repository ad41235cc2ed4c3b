"""What the scenarios share: an agent that speaks plain JSON-RPC, servers to kill, and waiting for what others do."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from tests import nursery
from tests.gateway import COMMAND, TOKEN, Gateway
from tests.processes import free_port
from tests.servers import command
from tests.waiting import PATIENCE, wait_until

ERA_SERVER = Path(__file__).resolve().parent.parent / "eras" / "era_server.py"
EAGER = ("time", "github-api", "123server", "slow", "lab")
UTC = {"timezone": "UTC"}
ALLOW = 'defaults: [{pattern: "*", action: allow}]'


def child(argv, **more):
    return {"type": "stdio-mcp", "command": argv[0], "args": argv[1:], **more}


def notes(folder):
    return child(command("memory"), env={"MEMORY_FILE_PATH": str(folder / "memory.jsonl")})


def lab(folder):
    return child([sys.executable, str(ERA_SERVER), "modern", str(folder), "stdio"])


class Lab:
    """A server over HTTP that can be killed and started again on its port."""

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, free_port(), None

    @property
    def entry(self):
        return {"type": "remote-mcp", "url": f"http://127.0.0.1:{self.port}/mcp"}

    def start(self):
        argv = [sys.executable, str(ERA_SERVER), "modern", str(self.folder), "http", str(self.port)]
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        wait_until(self.listens, "the server's start")

    def listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self):
        self.process.kill()
        self.process.wait()


def configured(servers, token, **more):
    """The text of a configuration; JSON is YAML too."""
    whole = {
        "gateway": {"id": "t", "port": 0},
        "admin": {"port": 0, "socket": "./data/admin.sock"},
        "agents": {"a": {"token": token, "rate_limit": {"max_requests_per_minute": 0}}},
        "servers": servers,
        "permissions": "permissions.yaml",
    }
    return {"config.yaml": json.dumps(whole | more), "permissions.yaml": ALLOW}


def rpc(gateway, method, **params):
    """One request of a handshake client, in a session of its own."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    first = post(gateway, headers, "initialize", hello)
    if method == "initialize":
        return answer_of(first)
    headers |= {
        "Mcp-Session-Id": first.headers["mcp-session-id"],
        "MCP-Protocol-Version": "2025-11-25",
    }
    post(gateway, headers, "notifications/initialized", {}, number=None)
    return answer_of(post(gateway, headers, method, params))


def post(gateway, headers, method, params, number=1):
    body = {"jsonrpc": "2.0", "method": method, "params": params}
    return gateway.request(
        "POST", "/mcp", body if number is None else {**body, "id": number}, headers=headers
    )


def answer_of(reply):
    """The answer, alone or as the last event of a stream."""
    text = reply.body.decode()
    if reply.headers["content-type"].startswith("text/event-stream"):
        text = [line for line in text.splitlines() if line.startswith("data: {")][-1].removeprefix("data: ")
    return json.loads(text)


def tool_names(gateway):
    return [tool["name"] for tool in rpc(gateway, "tools/list")["result"]["tools"]]


def source(gateway, name):
    return next(row for row in gateway.request("GET", "/status").json["sources"] if row["source"] == name)


def wait_for_sources(gateway, *names):
    wait_until(
        lambda: all(source(gateway, name)["state"] == "ready" for name in names), f"the start of {names}"
    )


def events(gateway):
    """What the gateway logged, line by line."""
    return [json.loads(line) for line in gateway.stderr.splitlines() if line.startswith("{")]


def module(gateway, query=""):
    return gateway.request("GET", f"/runtime/tools.ts{query}")


def exported(gateway, query=""):
    """The part of the generated module that differs from catalog to catalog."""
    return module(gateway, query).body.decode().partition("export const tools = ")[2].strip()


def children(pid):
    """The servers that a gateway runs: every process below it."""
    below = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            below.setdefault(parent, []).append(int(entry.name))
    found, look = set(), [pid]
    while look:
        mine = below.get(look.pop(), [])
        found.update(mine)
        look.extend(mine)
    return found


def running_pids(pids):
    return {pid for pid in pids if Path(f"/proc/{pid}").exists()}


def session_environment(folder):
    """The environment of hooks whose files stay in `folder`."""
    ours = ("SESSION_ID", "CLAUDE_ENV_FILE", "CLAUDE_PROJECT_DIR", "AGENT_TOKEN")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return kept | {
        "XDG_RUNTIME_DIR": str(folder / "r"),
        "XDG_STATE_HOME": str(folder / "s"),
        "HOME": str(folder),
    }


class Hooks:
    """Runs `agent-gate session` as the hooks of a host do, in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.env = session_environment(folder) | {
            "CLAUDE_ENV_FILE": str(folder / "env"),
            "CLAUDE_PROJECT_DIR": str(folder),
        }
        (folder / "agent-gate.yaml").write_text(configured({"notes": notes(folder)}, TOKEN)["config.yaml"])
        (folder / "permissions.yaml").write_text("rules: []")

    def run(self, verb, session, event):
        given = json.dumps({"session_id": session, "hook_event_name": event, "cwd": str(self.folder)})
        done = nursery.run(
            [COMMAND, "session", verb],
            input=given,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, session):
        self.run("start", session, "SessionStart")
        return self.status()[session]

    def stop(self, session):
        self.run("stop", session, "SessionEnd")

    def status(self):
        argv = [COMMAND, "session", "status", "--json"]
        rows = json.loads(subprocess.check_output(argv, env=self.env, text=True))
        return {row["session"]: row for row in rows}

    def exported(self, name):
        """What a command of the host sees after the hook ran."""
        shell = f'. "{self.folder}/env"; printf %s "${name}"'
        return subprocess.check_output(["sh", "-c", shell], env=self.env, text=True)

    def pid_file(self, session):
        return self.folder / "r" / "agent-gate" / f"agent-gate-{session}.pid"

    def reached(self, row):
        reached = Gateway(self.folder)
        reached.url = row["url"]
        return reached
