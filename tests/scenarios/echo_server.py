"""An MCP server over stdio that answers a call with the arguments that it got."""

import json
import sys

STRING = {"type": "string"}
DEPLOY = {
    "type": "object",
    "properties": {"env": {**STRING, "default": "prod"}, "tag": STRING, "dryRun": {"type": "boolean"}},
    "required": ["env"],
}
ODD = {"type": "object", "properties": {"env": {**STRING, "default": None}}, "required": ["env"]}
TWO = {"type": "object", "properties": {"a": STRING, "b": STRING}, "required": ["a", "b"]}
TOOLS = {"deploy": DEPLOY, "odd": ODD, "two": TWO, "free": {"type": "object"}}
EDIT = {"type": "object", "properties": {"oldText": STRING, "newText": STRING}, "required": ["oldText"]}
TOOLS["edit"] = {
    "type": "object",
    "properties": {
        "edits": {"type": "array", "items": {"$ref": "#/$defs/Edit"}},
        "dryRun": {"type": "boolean"},
    },
    "$defs": {"Edit": EDIT},
}
TOOLS["invites"] = {**TWO, "additionalProperties": STRING}


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": "1"}}  # fmt: skip
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": schema} for name, schema in TOOLS.items()]}
    return {"content": [{"type": "text", "text": json.dumps(params["arguments"])}]}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        if message["method"] in ("initialize", "tools/list", "tools/call", "ping"):
            reply = {"result": answer(message["method"], message.get("params", {}))}
        else:
            reply = {"error": {"code": -32601, "message": "unknown"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
