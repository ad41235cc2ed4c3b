"""Catalogues as real servers list them, and as a hostile one might."""

import asyncio
import json
from pathlib import Path

from tests.typescript.node_tools import installed, node
from tests.typescript.standin import tool
from tests.waiting import PATIENCE

from agent_gate.core.tool import Definition

REAL = {
    "everything": ("@modelcontextprotocol/server-everything/dist/index.js", "stdio"),
    "filesystem": ("@modelcontextprotocol/server-filesystem/dist/index.js", "."),
    "memory": ("@modelcontextprotocol/server-memory/dist/index.js",),
    "thinking": ("@modelcontextprotocol/server-sequential-thinking/dist/index.js",),
    "github": ("@modelcontextprotocol/server-github/dist/index.js",),
    "notion": ("@notionhq/notion-mcp-server/bin/cli.mjs",),
    "playwright": ("@playwright/mcp/cli.js",),
}
HANDSHAKE = (
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "suite", "version": "1"}}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
)  # fmt: skip
EVIL = '*/ globalThis.owned = true; throw new Error("escaped"); /*'
RESERVED = [
    "delete",
    "new",
    "class",
    "default",
    "function",
    "then",
    "constructor",
    "__proto__",
    "await",
    "enum",
    "let",
]


async def listed(entry: str, *arguments: str, home: Path) -> list[Definition]:
    """What a real server answers to `tools/list`."""
    process = await asyncio.create_subprocess_exec(
        node(), str(installed() / entry), *arguments, cwd=home,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "NOTION_TOKEN": "none", "GITHUB_PERSONAL_ACCESS_TOKEN": "none"},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, limit=2**22,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in HANDSHAKE))
    try:
        async with asyncio.timeout(PATIENCE):
            async for line in process.stdout:
                message = json.loads(line)
                if message.get("id") == 1:
                    return [definition(one) for one in message["result"]["tools"]]
    finally:
        process.kill()
        await process.communicate()
    raise AssertionError(f"{entry} ended without listing its tools")


def definition(raw: dict) -> Definition:
    return Definition(
        name=raw["name"],
        description=raw.get("description", ""),
        input_schema=raw["inputSchema"],
        output_schema=raw.get("outputSchema"),
    )


async def real(home: Path) -> dict[str, list[Definition]]:
    found = await asyncio.gather(*(listed(*argv, home=home) for argv in REAL.values()))
    return dict(zip(REAL, found, strict=True))


def deep(levels: int) -> dict:
    schema: dict = {"type": "string"}
    for n in range(levels):
        schema = {"type": "object", "properties": {f"level{n}": schema}, "required": [f"level{n}"]}
    return {"type": "object", "properties": {"root": schema}}


def recursive() -> dict:
    node_ = {"type": "object", "properties": {"value": {"type": "number"}, "children": {
        "type": "array", "items": {"$ref": "#/$defs/node"}}, "parent": {
        "anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}, "pair": {"type": "array", "prefixItems": [
        {"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/node"}}]}, "all": {"$ref": "#"}},
        "required": ["children"]}  # fmt: skip
    json_ = {"anyOf": [{"type": ["string", "number", "boolean", "null"]},
                       {"type": "array", "items": {"$ref": "#/$defs/json"}},
                       {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}}]}  # fmt: skip
    loop = {"allOf": [{"$ref": "#/$defs/pool"}]}
    sum_ = {"anyOf": [{"type": "number"}, {"type": "array", "prefixItems": [
        {"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/sum"}}]}]}  # fmt: skip
    even, odd = (
        {
            "anyOf": [
                {"type": "null"},
                {"type": "array", "prefixItems": [{"type": "array", "items": {"$ref": f"#/$defs/{other}"}}]},
            ]
        }
        for other in ("odd", "even")
    )
    return {
        "type": "object",
        "properties": {
            "tree": {"$ref": "#/$defs/node"},
            "even": {"$ref": "#/$defs/even"},
            "any": {"$ref": "#/$defs/json"},
            "loop": {"$ref": "#/$defs/loop"},
            "sum": {"$ref": "#/$defs/sum"},
            "odd": {"$ref": "#/$defs/a~1b%20c"},
        },
        "$defs": {
            "node": node_,
            "json": json_,
            "loop": loop,
            "sum": sum_,
            "even": even,
            "odd": odd,
            "pool": {"$ref": "#/$defs/loop"},
            "a/b c": {"type": "string"},
        },
    }


def unions() -> dict:
    return {
        "type": "object",
        "properties": {
            "shape": {"oneOf": [{"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}},
                                 "required": ["kind", "r"]},
                                {"type": "object", "properties": {"kind": {"const": "square"}, "a": {"type": "number"}},
                                 "required": ["kind", "a"], "additionalProperties": False}]},
            "both": {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}},
                               {"type": "object", "properties": {"b": {"type": "string"}}}]},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"enum": [1, 2]}], "minItems": 1},
            "maybe": {"type": ["object", "null"], "properties": {"x": {"type": "integer"}},
                      "additionalProperties": {"type": "boolean"}},
            "map": {"type": "object", "patternProperties": {"^s_": {"type": "string"}},
                    "properties": {"n": {"type": "number"}}},
            "either": {"type": "object", "properties": {"a": {}, "b": {}},
                       "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        },
    }  # fmt: skip


def older() -> dict:
    tuple_ = {"type": "array", "items": [{"type": "string"}], "additionalItems": False}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"old": tuple_},
    }


def keys() -> dict:
    odd = [
        "a-b",
        "a b",
        "",
        "`${1}`",
        '"',
        "\\",
        "*/",
        "constructor",
        "__proto__",
        "new",
        "名前",
        "\u2028",
        "0",
        "é",
    ]
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": EVIL} for name in [*odd, *RESERVED]},
    }


def hostile() -> dict[str, list[Definition]]:
    """Each key is a server of its own; some keys fold together."""
    return {
        "comment-escape": [
            tool("escape", description=EVIL),
            tool("lines", description=f"one\n{EVIL}\n@ts-ignore\n"),
        ],
        "backticks": [tool("`${globalThis.owned = true}`", description="`${globalThis.owned = true}`")],
        "quotes\"'\\": [
            tool("a\"b'c\\d", description="\"'\\"),
            tool("line\u2028break", description="\u2028\u2029"),
        ],
        "reserved": [tool(name) for name in RESERVED],
        "class": [tool("class")],
        "then": [tool("then")],
        "fold-er": [tool("get_item"), tool("get-item"), tool("getItem"), tool("get.item"), tool("GET ITEM")],
        "fold_er": [tool("take_item")],
        "fold--er": [tool("x")],
        "名前": [tool("名前"), tool("説明"), tool("ünï")],
        "1st": [tool("1st"), tool("2nd")],
        "deep": [tool("deep", input_schema=deep(90))],
        "recursive": [tool("recursive", input_schema=recursive(), output_schema=recursive())],
        "unions": [
            tool("unions", input_schema=unions(), output_schema=unions()),
            tool("older", input_schema=older()),
        ],
        "keys": [tool("keys", input_schema=keys(), output_schema=keys())],
        "odd-output": [
            tool("bool", output_schema=True),
            tool("never", output_schema={"type": "object", "properties": {"x": False}}),
            tool(
                "broken",
                output_schema={"type": 7, "properties": [], "required": "x", "enum": "y", "anyOf": {}},
            ),
            tool("array", output_schema={"type": "array", "items": {"type": "string"}}),
            tool("remote", output_schema={"$ref": "http://127.0.0.1:9/evil.json"}),
        ],
        "empty": [],
        "a": [tool("b_c")],
        "a_b": [tool("c")],
        "runtime": [
            tool(name) for name in ("callTool", "tools", "AgentGateError", "fetch", "Promise", "CallOptions")
        ],
        "thousand": [
            tool(f"tool_{n}", {"q": {"type": "string"}}, required=["q"], description=f"{n} {EVIL}")
            for n in range(1000)
        ],
    }
