"""Run as a program: an MCP server of the handshake era that misbehaves as its arguments say."""

import json
import os
import signal
import subprocess
import sys
import time

MODES = set(sys.argv[1:])
out = sys.stdout.buffer
DIRECTORY = sys.argv[-1]


def send(message: object) -> None:
    out.write(json.dumps(message).encode() + b"\n")
    out.flush()


def reply(number: object, result: object) -> None:
    send({"jsonrpc": "2.0", "id": number, "result": result})


def text(words: str) -> dict:
    return {"content": [{"type": "text", "text": words}]}


def tools() -> list:
    names = [
        "echo",
        "env",
        "pid",
        "crash",
        "wrong-id",
        "twice",
        "big-line",
        "bad-utf8",
        "hang",
        "ask",
        "held",
        "release",
        "flood",
        "deep",
        "log",
    ]
    listed = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    if "many" in MODES:
        listed += [{"name": f"tool-{n}", "inputSchema": {"type": "object"}} for n in range(6_000)]
    if "broken-tools" in MODES:
        listed += [{"name": "no-schema"}, "not an object", {"name": "bad\u202ename", "inputSchema": {}}]
    return listed


def daemon() -> None:
    """Leave a process that has left this one's group and session, and its parent too."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            sys.stderr.write(f"grandchild {os.getpid()}\n")
            sys.stderr.flush()
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nowhere, stream)
            time.sleep(600)
        os._exit(0)
    os.wait()


def start() -> None:
    if "exits" in MODES:
        sys.stderr.write("cannot find my configuration\n")
        sys.exit(3)
    if "stubborn" in MODES:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "forks" in MODES:
        child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"])
        sys.stderr.write(f"grandchild {child.pid}\n")
        sys.stderr.flush()
    if "daemon" in MODES:
        daemon()
    if "noise" in MODES:
        out.write(b"Starting up...\n\xff\xfe\n[1, 2\n" + b"x" * 100_000 + b"\n")
        out.flush()


def call(number: object, params: dict) -> None:
    name, arguments = params["name"], params.get("arguments", {})
    if name == "echo":
        reply(number, text(arguments.get("text", "")))
    elif name == "env":
        reply(number, text(json.dumps(dict(os.environ))))
    elif name == "pid":
        reply(number, text(str(os.getpid())))
    elif name == "crash":
        os.write(2, b"I cannot go on\n")
        os._exit(9)
    elif name == "wrong-id":
        reply("1", text("not yours"))
        reply(10_000, text("not yours"))
        reply(number, text("yours"))
    elif name == "twice":
        reply(number, text("first"))
        reply(number, text("second"))
    elif name == "big-line":
        block = b"y" * (1 << 20)
        for _ in range(arguments.get("mib", 1024)):
            out.write(block)
    elif name == "bad-utf8":
        out.write(
            b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}\n' % number
        )
        out.flush()
    elif name == "deep":
        nested = b"[" * 100_000 + b"]" * 100_000
        members = [b'"id":%d' % number, b'"result":{"content":%b}' % nested]
        if arguments.get("order") == "result-first":
            members.reverse()
        out.write(b'{"jsonrpc":"2.0",%b}\n' % b",".join(members))
        out.flush()
    elif name == "held":
        held.append(number)
    elif name == "release":
        for one in [*held, number]:
            reply(one, text("released"))
        held.clear()
    elif name == "ask":
        send(
            {
                "jsonrpc": "2.0",
                "id": f"q-{number}",
                "method": "elicitation/create",
                "params": {"message": "who?"},
            }
        )
        waiting[f"q-{number}"] = number
    elif name == "log":
        params = {"level": "error", "data": "careful"}
        send({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
        reply(number, text("logged"))
    elif name == "flood":
        for _ in range(arguments.get("count", 1000)):
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        reply(number, text("flooded"))


waiting: dict = {}
held: list = []
listed = 0
calls: list = []


def handle(message: dict) -> None:
    global listed
    number, method = message.get("id"), message.get("method")
    if method is None:
        reply(waiting.pop(number), text(json.dumps(message.get("result") or message.get("error"))))
    elif method == "server/discover":
        if "dies-on-discover" in MODES:
            os._exit(1)
        if "silent" not in MODES:
            send({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no such method"}})
    elif method == "initialize":
        version = "2024-11-05" if "old" in MODES else "2025-11-25"
        if "future" in MODES:
            version = "2099-01-01"
        reply(
            number,
            {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {}},
        )
    elif method == "tools/list":
        listed += 1
        if "busy-for-a-while" in MODES and listed in (2, 3, 4):
            send({"jsonrpc": "2.0", "id": number, "error": {"code": -32000, "message": "not now"}})
            return
        reply(
            number,
            {"tools": tools()} if "endless" not in MODES else {"tools": tools(), "nextCursor": str(listed)},
        )
    elif method == "tools/call" and message["params"]["name"] == "hang":
        calls.append(number)
    elif method == "tools/call":
        call(number, message["params"])
    elif method == "notifications/cancelled":
        sys.stderr.write(f"cancelled {message['params']['requestId'] in calls} listed {listed}\n")
        sys.stderr.flush()
    elif method == "ping":
        reply(number, {})


start()
for line in sys.stdin.buffer:
    handle(json.loads(line))
if "stubborn" in MODES:
    while True:
        time.sleep(1)
