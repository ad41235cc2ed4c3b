"""A gateway whose agents come in by their person's login at a real OpenID provider."""

import re
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.gateway import running
from tests.oauth.authority import Person
from tests.sign_in.conftest import PERMISSIONS, files
from tests.sign_in.small_client import CALLBACK, SmallBrowser, SmallClient, follow

AUTH = "auth: {sign_in: true, client_documents: false}"
ROLES = "{sre: {role: operator}, staff: {role: viewer}}"
AGENTS = "{sre: {}, writers: {namespaces: [notes], mode: proxy, days: 7}}"
LEAVING = re.compile(r'http-equiv="refresh" content="0;url=([^"]*)"')


def auth(provider, client, more="", **settings):
    said = {
        "issuer": provider.issuer,
        "client_id": client["client_id"],
        "client_secret": client["client_secret"],
        "scopes": "[profile, email, offline_access]",
        "roles": ROLES,
        "agents": AGENTS,
    } | settings
    lines = "".join(f"    {key}: {value}\n" for key, value in said.items())
    return f"auth:\n  sign_in: true\n  client_documents: false\n{more}  oidc:\n{lines}"


@contextmanager
def login_gate(folder, api, provider, more="", permissions=PERMISSIONS, **settings):
    """One gateway; the provider knows both of its addresses."""
    with running(folder, files(api, more=more, permissions=permissions), "--insecure") as gate:
        gate.registered = provider.register(
            f"{gate.url}/oidc/callback", f"{gate.announced['admin']}/oidc/callback", base=gate.url
        )
        configure(gate, provider, **settings)
        yield gate


def configure(gate, provider, **settings):
    """Take these settings of the provider into use."""
    config = gate.folder / "config.yaml"
    text = config.read_text()
    gate.before = getattr(gate, "before", text)
    assert AUTH in gate.before
    config.write_text(gate.before.replace(AUTH, auth(provider, gate.registered, **settings)))
    gate.admin.request("POST", "/api/reload", {})


class PersonWithAgent:
    """Somebody whose client signs in: their browser, the client, and their pages at the provider."""

    def __init__(self, gate, provider, name, client="Tester", callback=CALLBACK):
        self.gate, self.browser = gate, SmallBrowser(gate.url)
        self.there = Person(provider.issuer, name)
        self.client = SmallClient(gate, name=client, callback=callback)
        assert self.client.register().status == 201

    def begin(self, **changed):
        """Where our page sends the browser: the provider."""
        shown = self.browser.get(self.client.authorize_url(**changed))
        assert shown.status == 200, shown.text
        sent = self.browser.press_continue(shown, way="provider")
        assert sent.status == 200, sent.text
        return LEAVING.search(sent.text)[1].replace("&amp;", "&")

    def come_back(self, url):
        """Follow the provider's redirect, as the browser that began does."""
        parts = urlsplit(url)
        return self.browser.request("GET", f"{parts.path}?{parts.query}")

    def log_in(self, **changed):
        """Up to what our page says after the login."""
        return self.come_back(self.there.consent(self.begin(**changed)))

    def redeem(self, place):
        code = follow(self.browser, place).answer()["code"]
        reply = self.client.redeem(code)
        assert reply.status == 200, reply.body
        return self.client

    def sign_in(self, **changed):
        """The whole way; the client has its tokens."""
        back = self.log_in(**changed)
        assert back.status == 303, back.text
        return self.redeem(back.location)

    @property
    def agent(self):
        """The agent's row, where it is in."""
        rows = self.gate.admin.get("/api/agents")
        mine = [
            row for row in rows if (row["signed_in"] or {}).get("person") == f"{self.there.name}@example.test"
        ]
        return mine[0] if mine else None


def tools_of(client):
    listed = client.list_tools(path="/mcp/full")
    assert listed.status == 200, listed.body
    return {tool["name"] for tool in listed.json["result"]["tools"]}
