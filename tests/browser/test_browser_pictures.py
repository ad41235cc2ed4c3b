"""Pictures: what must not be seen in them is covered, and each is kept under a handle, whatever the mode."""

import asyncio
import base64
import json
import re
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.browser.browser_house import image_of, page
from tests.browser.pixels import eyes
from tests.gateway import TOKEN
from tests.waiting import PATIENCE, until

GREY, WHITE = 0x44, 255
FIELD = "position:absolute;box-sizing:border-box;width:300px;height:60px;border:0;padding:0;margin:0;background:#fff;font-size:40px"
SECRETS = f"""<!doctype html><title>Secrets</title><body style="margin:0;background:#fff">
<input type=password value=geheim aria-label=Now style="{FIELD};left:0;top:0">
<input id=was type=password value=geheim aria-label=Was style="{FIELD};left:0;top:100px">
<input value=plain aria-label=Plain style="{FIELD};left:0;top:200px">
<div id=shut style="position:absolute;left:0;top:300px;width:300px;height:60px"></div>
<iframe src=/inner style="position:absolute;left:0;top:400px;width:400px;height:100px;border:0"></iframe>
<button id=b style="position:absolute;left:600px;top:0">Show</button><script>
const root = shut.attachShadow({{mode: 'closed'}});
root.innerHTML = `<input type=password value=geheim aria-label=Shut style="{FIELD};left:0;top:0">`;
b.onclick = () => {{ was.type = 'text'; root.firstChild.type = 'text' }}</script>"""
INNER = f"""<body style="margin:0;background:#fff"><input id=i type=password value=geheim aria-label=Inside
style="{FIELD};left:0;top:0"><script>setTimeout(() => {{ i.dataset.x = 1 }})</script>"""
PLACES = {"now": (150, 30), "was": (150, 130), "shut": (150, 330), "inside": (150, 430)}


@pytest.fixture
def colours():
    with eyes() as read:
        yield read


def near(colour, grey):
    return all(abs(part - grey) < 25 for part in colour)


def shown(agent, picture, colours):
    """The names of secret fields that can be seen in a picture."""
    found = dict(zip(PLACES, colours(picture, *PLACES.values()), strict=True))
    return [name for name, colour in found.items() if not near(colour, GREY)]


def test_password_fields_are_covered_in_every_picture_also_when_they_are_made_visible(agent, colours):
    agent.site.replies.update({"/secrets": page(SECRETS), "/inner": page(INNER)})
    first = agent.open("/secrets")
    agent.call("screenshot")
    picture = image_of(agent.blocks[1])
    assert shown(agent, picture, colours) == []
    assert near(colours(picture, (280, 230))[0], WHITE), "a field that is no secret is seen"
    agent.call("click", ref=agent.ref("Show", first))
    agent.call("screenshot", fullPage=True)
    assert shown(agent, image_of(agent.blocks[1]), colours) == []
    [screen] = [one for one in agent.gateway.admin.get("/api/browsers") if one["place"].endswith("/secrets")]
    connection = agent.gateway.admin.connection()
    connection.request("GET", f"/api/browsers/{screen['id']}/picture")
    assert shown(agent, connection.getresponse().read(), colours) == []
    connection.close()


def text_of(result):
    return "\n".join(block.text for block in result.content if block.type == "text")


@asynccontextmanager
async def connected(gateway, mode):
    """A client of MCP in that mode."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http:
        address = f"{gateway.url}/mcp/{mode}"
        async with Client(streamable_http_client(address, http_client=http), mode="legacy") as client:
            yield client


def view(gateway, handle, index):
    """A part of what is kept under a handle."""
    selector = {"handle": handle, "selector": {"type": "part", "index": index}}
    reply = gateway.request("POST", "/api/tools/tool_view", selector)
    assert reply.status == 200, reply.body
    return reply.json["data"]["part"]


def use(client, mode, tool, **arguments):
    """The tool itself where it is listed, else by the tool that runs others."""
    if mode == "full":
        return client.call_tool(tool, arguments)
    return client.call_tool("tool_execute", {"tool_id": f"browser:{tool}", "args": arguments})


@pytest.mark.parametrize("mode", ["full", "proxy"])
async def test_a_screenshot_is_an_image_and_is_kept_under_a_handle(agent, mode):
    agent.site.replies["/here"] = page("<h1>Here</h1>")
    async with connected(agent.gateway, mode) as client:
        await use(client, mode, "browser_navigate", url=f"{agent.site.url}/here")
        result = await use(client, mode, "browser_screenshot")
    [image] = [block for block in result.content if block.type == "image"]
    handle = text_of(result).partition("Kept as ")[2].split()[0]
    assert handle.startswith("result:")
    kept = view(agent.gateway, handle, 1)
    assert kept["type"] == "image"
    assert base64.b64decode(kept["data"]) == base64.b64decode(image.data)


async def test_in_the_mode_of_envelopes_a_screenshot_is_a_handle_that_shows_the_image(agent):
    agent.site.replies["/here"] = page("<h1>Here</h1>")
    async with connected(agent.gateway, "gateway") as client:
        await use(client, "gateway", "browser_navigate", url=f"{agent.site.url}/here")
        said = await use(client, "gateway", "browser_screenshot")
        envelope = said.structured_content or json.loads(text_of(said))
        look = {"handle": envelope["artifacts"][0]["handle"], "selector": envelope["views"][0]}
        seen = await client.call_tool("tool_view", look)
    [image] = [block for block in seen.content if block.type == "image"]
    assert base64.b64decode(image.data)[:3] == b"\xff\xd8\xff"


@pytest.mark.parametrize(("mode", "size"), [("full", 200), ("full", 60_000), ("proxy", 60_000)])
async def test_a_file_is_kept_under_a_handle_and_comes_along_where_it_is_small(agent, mode, size):
    body = b"x" * size
    agent.site.replies["/data.bin"] = page(body, "application/octet-stream")
    agent.site.replies["/files"] = page("<a href=/data.bin download>Data</a>")
    async with connected(agent.gateway, mode) as client:
        opened = await use(client, mode, "browser_navigate", url=f"{agent.site.url}/files")
        ref = agent.ref("Data", text_of(opened))
        calling = asyncio.ensure_future(use(client, mode, "browser_download", ref=ref))
        asked = await until(lambda: asyncio.to_thread(agent.gateway.admin.get, "/api/approvals"))
        await asyncio.to_thread(agent.answer, asked[0])
        result = await calling
    handle = re.search(r"result:[\w-]+", text_of(result))[0]
    resource = view(agent.gateway, handle, 1)["resource"]
    assert base64.b64decode(resource["blob"]) == body
    assert resource["uri"].endswith("/data.bin")
    assert any(block.type == "resource" for block in result.content) is (size == 200)
