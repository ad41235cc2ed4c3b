"""Asks contextweaver's gateway, in an interpreter that has it: `python weaver.py < questions > answers`.

It gets the tools of a catalog and, for each request, the tools that would serve it; it answers with what its gateway
lists first, what it answers to each browse, and what it says to a first call of a right tool that it showed.
"""

import asyncio
import json
import sys
from typing import Any

from contextweaver.adapters.mcp import mcp_tool_to_selectable
from contextweaver.adapters.mcp_gateway import dispatch_meta_tool, make_gateway_meta_tools
from contextweaver.adapters.mcp_upstream import StubUpstream
from contextweaver.adapters.proxy_runtime import ProxyRuntime


def text_of(result: dict[str, Any]) -> str:
    return "\n".join(part["text"] for part in result["content"] if part["type"] == "text")


async def answer(runtime: ProxyRuntime, ours: dict[str, str], query: str, right: set[str]) -> dict[str, Any]:
    """The ids of the cards it shows, as ours, their text, and the text after which a right tool can be called."""
    shown = text_of(await dispatch_meta_tool(runtime, "tool_browse", {"query": query}))
    cards = json.loads(shown)
    found = [card["id"] for card in cards if isinstance(card, dict)] if isinstance(cards, list) else []
    tool = next((each for each in found if ours.get(each) in right), None)
    first_call = {"tool_id": tool, "args": {}, "dry_run": True}
    said = text_of(await dispatch_meta_tool(runtime, "tool_execute", first_call)) if tool else ""
    return {"found": [ours.get(each, each) for each in found], "shown": shown, "said": said}


async def main() -> None:
    asked = json.load(sys.stdin)
    ours = {mcp_tool_to_selectable(tool["definition"]).id: tool["id"] for tool in asked["tools"]}
    width = {"beam_width": asked["width"]} if asked["width"] else {}
    runtime = ProxyRuntime(StubUpstream([]), **width)
    runtime.register_tool_defs_sync([tool["definition"] for tool in asked["tools"]])
    answers = [await answer(runtime, ours, query, set(right)) for query, right in asked["steps"]]
    json.dump({"listing": make_gateway_meta_tools(runtime), "answers": answers}, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
