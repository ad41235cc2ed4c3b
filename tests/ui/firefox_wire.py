"""Debian's Firefox as Playwright wants it: started here, with a wire between the two that fills two gaps.

Playwright speaks WebDriver BiDi and asks for a few commands that the long-term release does not know yet, none of which
the tests need: this end of the wire says yes to them. And Playwright has the page evaluate text, which our content
policy refuses, rightly; so here, and nowhere else, the policy of a page lets it. Everything else is passed on.
Playwright runs this file in the place of the browser, whose path is the first argument.
"""

import asyncio
import json
import re
import signal
import sys

from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

MISSING = {
    "network.addDataCollector": {"collector": "none"},
    "browser.setDownloadBehavior": {},
    "emulation.setScreenOrientationOverride": {},
    "emulation.setScreenSettingsOverride": {},
    "emulation.setMediaFeaturesOverride": {},
    "emulation.setUserAgentOverride": {},
}
LISTENS = re.compile(rb"(WebDriver BiDi listening on )(ws://\S+)")
PAGES = [{"type": "pattern", "pathname": path} for path in ("/", "/login", "/gallery")]
HOLD = {"phases": ["responseStarted"], "urlPatterns": PAGES}
OURS = 1_000_000_000  # ids of commands that the wire sends by itself begin here


def loosened(header):
    if header["name"].lower() != "content-security-policy":
        return header
    text = header["value"]["value"].replace("script-src 'self'", "script-src 'self' 'unsafe-eval'")
    return {**header, "value": {"type": "string", "value": text}}


class Wire:
    """One connection of Playwright with the browser."""

    def __init__(self, client, browser):
        self._client, self._browser, self._last = client, browser, OURS

    async def _command(self, method, params):
        self._last += 1
        await self._browser.send(json.dumps({"id": self._last, "method": method, "params": params}))

    async def pass_commands(self):
        async for text in self._client:
            asked = json.loads(text)
            if asked["method"] in MISSING:
                said = {"type": "success", "id": asked["id"], "result": MISSING[asked["method"]]}
                await self._client.send(json.dumps(said))
                continue
            if asked["method"] == "session.subscribe" and self._last == OURS:
                await self._command("network.addIntercept", HOLD)
            await self._browser.send(text)

    async def pass_news(self):
        async for text in self._browser:
            said = json.loads(text)
            if said.get("id", 0) and said["id"] > OURS:
                continue
            if said.get("method") == "network.responseStarted" and said["params"].get("isBlocked"):
                text = await self._loosen(said)
            await self._client.send(text)

    async def _loosen(self, said):
        params = said["params"]
        headers = [loosened(one) for one in params["response"]["headers"]]
        request = params["request"]["request"]
        await self._command("network.continueResponse", {"request": request, "headers": headers})
        return json.dumps({**said, "params": {**params, "isBlocked": False, "intercepts": []}})


async def join(client, address):
    async with connect(address + client.request.path, max_size=None, compression=None) as browser:
        wire = Wire(client, browser)
        ways = [asyncio.create_task(way) for way in (wire.pass_commands(), wire.pass_news())]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()


async def lay_wire(address):
    """The port on which commands for the browser at this address are taken."""
    wire = await serve(lambda client: join(client, address), "127.0.0.1", 0, max_size=None, compression=None)
    return wire.sockets[0].getsockname()[1]


async def run():
    browser = await asyncio.create_subprocess_exec(*sys.argv[1:], stderr=asyncio.subprocess.PIPE)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, browser.terminate)
    async for line in browser.stderr:
        if found := LISTENS.search(line):
            line = b"%sws://127.0.0.1:%d\n" % (found[1], await lay_wire(found[2].decode()))
        sys.stderr.buffer.write(line)
        sys.stderr.flush()
    return await browser.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(run()))
