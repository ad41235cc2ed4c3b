"""An MCP server over stdio with a memory: each call is counted, and says which process counted it."""

import json
import os
import sys

SCHEMA = {"type": "object"}
calls = 0


def answer(method, params):
    global calls
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "counting", "version": "1"}}  # fmt: skip
    if method == "tools/list":
        return {"tools": [{"name": "count", "inputSchema": SCHEMA}]}
    calls += 1
    return {"content": [{"type": "text", "text": json.dumps({"pid": os.getpid(), "calls": calls})}]}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        known = message["method"] in ("initialize", "tools/list", "tools/call", "ping")
        reply = {"result": answer(message["method"], message.get("params", {}))} if known else {"error": {"code": -32601, "message": "unknown"}}  # fmt: skip
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
