"""A gateway with one service behind it, as the tests of the page use it."""

import re
import threading
from contextlib import contextmanager

from tests.gateway import Api, in_front_of
from tests.servers import locked
from tests.ui.chromium import CACHE
from tests.waiting import wait_until

CONFIG = """\
gateway: {{id: home, host: 127.0.0.1, port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agents:
  pi: {{token: {token}, rate_limit: {{max_requests_per_minute: 0, max_pending_approvals: 0}}}}
services:
  house:
    url: {url}
    tools: tools.yaml
storage: {{path: ./data/gate.db}}
permissions: permissions.yaml
{more}
"""
TOOLS = """\
tools:
  light_set:
    description: "Set a light"
    signature: "{room}"
    args:
      room: {required: true, description: "The room"}
      note: {required: false, text: true, description: "Why"}
    request: {method: POST, path: /light}
    ask: "Set the light in {room}?"
  light_get:
    description: "Read a light"
    signature: "{room}"
    args: {room: {required: true}}
    request: {method: GET, path: "/light/{room}"}
"""
PERMISSIONS = """\
defaults: [{pattern: "*", action: ask}]
rules:
  - {pattern: "light_get*", action: allow}
  - {pattern: "light_get(kitchen)", action: allow}
"""


@contextmanager
def house(folder, more="", permissions=PERMISSIONS):
    """The running gateway and the API behind it."""
    with Api() as api, in_front_of(api, folder, CONFIG, TOOLS, permissions, more=more) as gateway:
        yield gateway, api


def opened(tab, gateway, name="approvals"):
    """The page of that name, after a fresh login."""
    origin = tab.enter(gateway.admin.request("POST", "/api/logins", {})["url"])
    tab.page.goto(f"{origin}/#/{name}")
    return tab.page


@contextmanager
def one_demo():
    """Only one test at a time runs a demo, which takes its usual ports where they are free."""
    with locked(CACHE / "demo"):
        yield


def printed_link(gateway):
    """The login link that the last start printed."""

    def links():
        return re.findall(r"http://\S+/login#\S+(?=\n)", gateway.stderr[gateway.said_before :])

    return wait_until(links, "the link to the page")[-1]


def calling(gateway, tool, arguments, **options):
    return Calling(lambda: gateway.call(tool, arguments, **options))


class Calling:
    """An agent's request in the background; `reply` waits for what came of it."""

    def __init__(self, work):
        self._reply, self._work = None, work
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        try:
            self._reply = self._work()
        except OSError as error:
            self._reply = error

    def reply(self, seconds=15):
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "the call was not answered in time"
        return self._reply
