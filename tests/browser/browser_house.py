"""A gateway with a real browser behind it, a web site for it to visit, and an agent that uses both."""

import base64
import json
import re
from contextlib import contextmanager
from pathlib import Path

from tests.gateway import TOKEN, Api, Gateway, running
from tests.ui import chromium

ALLOW = 'defaults: [{pattern: "*", action: allow}]\nrules: []\n'


def page(body, kind="text/html; charset=utf-8", status=200, **headers):
    data = body.encode() if isinstance(body, str) else body
    return (status, {"Content-Type": kind, **headers}, data)


def files(permissions=ALLOW, **browser):
    settings = {
        "gateway": {"port": 0},
        "admin": {"port": 0, "socket": "./data/admin.sock"},
        "agents": {
            "pi": {"token": TOKEN, "rate_limit": {"max_requests_per_minute": 0, "max_pending_approvals": 0}}
        },
        "storage": {"path": "./data/gate.db"},
        "permissions": "permissions.yaml",
        "browser": browser,
    }
    return {"config.yaml": json.dumps(settings), "permissions.yaml": permissions}


@contextmanager
def browser_house(folder, permissions=ALLOW, env=None, login_to_site="", also=None, kind=Gateway, **browser):
    """The running gateway and a site that its browser may reach, and nothing else on this machine."""
    chromium.need()
    with Api() as site:
        host = site.url.partition("//")[2]
        more = [also.url.partition("//")[2]] if also else []
        given = {"allow_private": [host, *more], **browser}
        if login_to_site:
            given["logins"] = {site.url: login_to_site}
        with running(Path(folder), files(permissions, **given), "--insecure", env=env, kind=kind) as gateway:
            yield gateway, site


def stop_browsers(gateway):
    """Close whatever the sessions of a test left open, for the next one to find none of it."""
    for screen in gateway.admin.get("/api/browsers"):
        gateway.admin.request("POST", f"/api/browsers/{screen['id']}/stop", {})


class Agent:
    """One session of an agent that sees only what the tools return."""

    def __init__(self, gateway, site, session):
        self.gateway, self.site, self.session, self.last = gateway, site, session, ""

    def reply(self, tool, *, wait=None, **arguments):
        headers = {"Agent-Session": self.session}
        return self.gateway.call(f"browser_{tool}", arguments, wait=wait, headers=headers)

    def call(self, tool, **arguments):
        """What the tool says; fails the test where it does not work."""
        reply = self.reply(tool, **arguments)
        assert reply.status == 200, reply.body.decode()
        self.blocks = reply.json["content"] if "content" in reply.json else reply.json["result"]["content"]
        self.last = self.blocks[0]["text"]
        return self.last

    def refused(self, tool, **arguments):
        """The error that the tool ends in."""
        reply = self.reply(tool, **arguments)
        assert reply.status != 200, reply.body.decode()
        return reply.json["error"]["message"]

    def open(self, path):
        return self.call("navigate", url=self.site.url + path)

    def ref(self, name, said=None):
        """The reference that stands behind a name in what was said last."""
        found = re.search(rf'"{re.escape(name)}" \[(\w+)\]', said if said is not None else self.last)
        assert found, (name, said or self.last)
        return found[1]

    def asks(self, tool, **arguments):
        """The question that a call leads to."""
        reply = self.reply(tool, wait=0, **arguments)
        assert reply.status == 202, reply.body.decode()
        [approval] = [
            one for one in self.gateway.admin.get("/api/approvals") if one["tool"] == f"browser_{tool}"
        ]
        return approval, reply.json

    def answer(self, approval, verdict="approve"):
        return self.gateway.admin.request("POST", f"/api/approvals/{approval['id']}", {"verdict": verdict})


def image_of(block):
    assert block["type"] == "image"
    return base64.b64decode(block["data"])
