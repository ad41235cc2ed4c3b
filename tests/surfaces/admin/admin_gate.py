"""A running gateway with one service behind it, and the ways in to its admin listener."""

import http.client
import json
from contextlib import contextmanager

from tests.gateway import Api, Reply, in_front_of
from tests.waiting import PATIENCE

CONFIG = """\
gateway: {{id: home, host: 127.0.0.1, port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agents:
  pi: {{token: {token}, rate_limit: {{max_requests_per_minute: 0, max_pending_approvals: 0}}}}
  blind: {{token: {token}-blind, namespaces: [elsewhere]}}
services:
  house: {{url: {url}, tools: tools.yaml}}
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
      room: {required: true}
      note: {required: false, text: true}
      pin: {required: false, secret: true}
    request: {method: POST, path: /light}
    ask: "Set the light in {room}?"
  light_get:
    description: "Read a light"
    signature: "{room}"
    args: {room: {required: true}}
    request: {method: GET, path: "/light/{room}"}
    read_only: true
  siren:
    description: "Make noise"
    request: {method: POST, path: /siren}
"""
PERMISSIONS = """\
defaults: [{pattern: "*", action: ask}]
rules:
  - {pattern: "light_get*", action: allow}
  - {pattern: "light_get(kitchen)", action: allow}
  - {pattern: "siren", action: deny}
  - {pattern: "nothing_like_this*", action: deny}
"""
PEOPLE = """\
people:
  anna: {login: anna@home}
  ben: {login: ben@home, passphrase: open-sesame-ben}
"""


class Browser:
    """What a browser sends: its cookies, its origin, and the key that the page keeps."""

    def __init__(self, url):
        self.host = url.removeprefix("http://")
        self.origin = url
        self.cookie = self.key = None

    def send(self, method, path, body=None, **headers):
        given = {"Host": self.host}
        if self.cookie:
            given["Cookie"] = self.cookie
        if self.key:
            given["Agent-Gate-Key"] = self.key
        if method != "GET":
            given["Origin"] = self.origin
        given = {k: v for k, v in (given | headers).items() if v is not None}
        connection = self.connection()
        try:
            connection.request(method, path, None if body is None else json.dumps(body), given)
            response = connection.getresponse()
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def connection(self):
        return http.client.HTTPConnection(self.host, timeout=PATIENCE)

    def follow(self, link):
        """Open a login link as its page does; the answer to it."""
        reply = self.send("POST", "/api/session", {"link": link.partition("#")[2]})
        if reply.status == 200:
            self.cookie = reply.headers["set-cookie"].partition(";")[0]
            self.key = reply.json["key"]
        return reply

    def get(self, path):
        reply = self.send("GET", path)
        assert reply.status == 200, reply.body
        return reply.json

    def post(self, path, body=None):
        reply = self.send("POST", path, body or {})
        assert reply.status < 300, reply.body
        return reply.json


@contextmanager
def gate(folder, more="", permissions=PERMISSIONS):
    with Api() as api, in_front_of(api, folder, CONFIG, TOOLS, permissions, more=more) as gateway:
        gateway.api = api
        yield gateway


def link(gateway, login=None):
    return gateway.admin.request("POST", "/api/logins", {"login": login})["url"]


def browser(gateway, login=None):
    """Somebody who is logged in on the page."""
    one = Browser(gateway.announced["admin"])
    assert one.follow(link(gateway, login)).status == 200
    return one
