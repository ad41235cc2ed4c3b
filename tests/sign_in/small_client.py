"""A client that signs in by hand, and a browser without windows: every request of both can be looked at and bent."""

import base64
import hashlib
import html
import http.client
import json
import re
import secrets
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.waiting import PATIENCE

CALLBACK = "http://127.0.0.1:3999/callback"
NUMBER = re.compile(r'class="number">(\d+)<')


def challenge_of(verifier):
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


class SmallBrowser:
    """Keeps cookies, follows what it is told to, and no more."""

    def __init__(self, issuer):
        self.issuer, self.cookies = issuer, {}

    def connect(self, host, port):
        return http.client.HTTPConnection(host, port, timeout=PATIENCE)

    def request(self, method, path, form=None, headers=None):
        parts = urlsplit(self.issuer)
        connection = self.connect(parts.hostname, parts.port)
        sent = {"Cookie": "; ".join(f"{k}={v}" for k, v in self.cookies.items())} if self.cookies else {}
        if form is not None:
            sent |= {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.issuer}
            sent |= {"Sec-Fetch-Site": "same-origin"}
        sent = {name: value for name, value in (sent | (headers or {})).items() if value is not None}
        try:
            connection.request(method, path, urlencode(form) if form is not None else None, sent)
            reply = connection.getresponse()
            body = reply.read().decode()
        finally:
            connection.close()
        for name, value in reply.getheaders():
            if name.lower() == "set-cookie":
                key, _, rest = value.partition("=")
                self.cookies[key] = rest.partition(";")[0]
        return PageReply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, body)

    def get(self, url):
        return self.request("GET", url.removeprefix(self.issuer))

    def press_continue(self, page, **changed):
        """Send the page's own form."""
        form = page.fields() | changed
        return self.request("POST", "/authorize", form)


class PageReply:
    def __init__(self, status, headers, text):
        self.status, self.headers, self.text = status, headers, text

    def fields(self):
        found = re.findall(r'name="(\w+)" value="([^"]*)"', self.text)
        return {name: html.unescape(value) for name, value in found}

    @property
    def location(self):
        return self.headers["location"]

    @property
    def number(self):
        return NUMBER.search(self.text)[1]

    def answer(self):
        """What the client's redirect address was told."""
        return {name: values[0] for name, values in parse_qs(urlsplit(self.location).query).items()}


class SmallClient:
    """Does what RFC 6749 says with PKCE, and keeps what it got."""

    def __init__(self, gate, issuer=None, callback=CALLBACK, name="Tester"):
        self.gate, self.issuer, self.callback, self.name = gate, issuer or gate.url, callback, name
        self.verifier, self.state = secrets.token_urlsafe(48), secrets.token_urlsafe(8)
        self.client_id = self.tokens = None

    def register(self, **more):
        reply = self.post_json(
            "/register", {"client_name": self.name, "redirect_uris": [self.callback]} | more
        )
        if reply.status == 201:
            self.client_id = reply.json["client_id"]
        return reply

    def post_json(self, path, body):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.gate.request("POST", path, data, token=None, headers={"Content-Type": "application/json"})

    def post_form(self, path, form, **headers):
        sent = {"Content-Type": "application/x-www-form-urlencoded"} | headers
        return self.gate.request("POST", path, urlencode(form).encode(), token=None, headers=sent)

    def authorize_url(self, **changed):
        wanted = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.callback,
            "state": self.state,
            "code_challenge": challenge_of(self.verifier),
            "code_challenge_method": "S256",
            "scope": "mcp",
            "resource": f"{self.issuer}/mcp",
        } | changed
        given = {name: value for name, value in wanted.items() if value is not None}
        return f"{self.issuer}/authorize?{urlencode(given)}"

    def redeem(self, code, **changed):
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.client_id,
            "redirect_uri": self.callback,
            "code_verifier": self.verifier,
        } | changed
        reply = self.post_form("/token", {name: value for name, value in form.items() if value is not None})
        if reply.status == 200:
            self.tokens = reply.json
        return reply

    def refresh(self, token=None, **changed):
        form = {
            "grant_type": "refresh_token",
            "refresh_token": token or self.tokens["refresh_token"],
            "client_id": self.client_id,
        } | changed
        reply = self.post_form("/token", form)
        if reply.status == 200:
            self.tokens = reply.json
        return reply

    def list_tools(self, token=None, path="/mcp"):
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        return self.mcp(message, token, path)

    def mcp(self, message, token=None, path="/mcp", **headers):
        sent = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        } | headers
        given = token or self.tokens["access_token"]
        return self.gate.request("POST", path, json.dumps(message).encode(), token=given, headers=sent)


def begin(client, browser=None, **changed):
    """Up to the page with the number: (browser, that page)."""
    browser = browser or SmallBrowser(client.issuer)
    shown = browser.get(client.authorize_url(**changed))
    assert shown.status == 200, shown.text
    sent = browser.press_continue(shown)
    assert sent.status == 303, sent.text
    return browser, sent.location


def question(gate):
    [asked] = gate.admin.get("/api/approvals")
    return asked


def say_yes(gate, number, **more):
    return gate.answer(number=number, **more)


def follow(browser, place):
    """Wait on the page until it goes on."""
    while True:
        page = browser.get(place)
        if page.status == 302:
            return page
        assert page.status == 200, page.text


def sign_in(gate, name="Tester", browser=None, terms=None, callback=CALLBACK, **changed):
    """The whole way: a client with tokens."""
    client = SmallClient(gate, name=name, callback=callback)
    assert client.register().status == 201
    browser, place = begin(client, browser, **changed)
    say_yes(gate, browser.get(place).number, **({"terms": terms} if terms else {}))
    told = follow(browser, place).answer()
    reply = client.redeem(told["code"])
    assert reply.status == 200, reply.body
    return client
