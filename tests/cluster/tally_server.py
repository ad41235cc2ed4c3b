"""An MCP server over stdio that may run once only: it counts, and writes down what it did in the file of its argument.

`hold` answers when there is a file of the name that it is given."""

import json
import os
import sys
import threading
import time

journal = sys.argv[1]
INTEGER, STRING = {"type": "integer"}, {"type": "string"}
TOOLS = {
    "tally": {"type": "object", "properties": {"n": INTEGER}, "required": ["n"]},
    "hold": {"type": "object", "properties": {"until": STRING}, "required": ["until"]},
}
printing = threading.Lock()
count = 0


def note(**what):
    with open(journal, "a") as file:
        file.write(json.dumps({"pid": os.getpid(), **what}) + "\n")


def reply(ident, result):
    with printing:
        print(json.dumps({"jsonrpc": "2.0", "id": ident, "result": result}), flush=True)


def said(value):
    return {"content": [{"type": "text", "text": json.dumps(value)}]}


def hold(ident, until):
    while not os.path.exists(until):
        time.sleep(0.01)
    reply(ident, said({"pid": os.getpid()}))


for line in sys.stdin:
    message = json.loads(line)
    method, params, ident = message.get("method"), message.get("params", {}), message.get("id")
    if method == "initialize":
        info = {"name": "tally", "version": "1"}
        reply(
            ident,
            {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info},
        )
    elif method == "tools/list":
        reply(ident, {"tools": [{"name": name, "inputSchema": schema} for name, schema in TOOLS.items()]})
    elif method == "tools/call" and params["name"] == "hold":
        note(did="hold", until=params["arguments"]["until"])
        threading.Thread(target=hold, args=(ident, params["arguments"]["until"]), daemon=True).start()
    elif method == "tools/call":
        count += 1
        note(did="tally", n=params["arguments"]["n"])
        reply(ident, said({"pid": os.getpid(), "count": count}))
    elif method == "notifications/cancelled":
        note(did="cancelled")
    elif ident is not None:
        with printing:
            error = {"code": -32601, "message": "unknown"}
            print(json.dumps({"jsonrpc": "2.0", "id": ident, "error": error}), flush=True)
