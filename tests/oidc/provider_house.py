"""A real OpenID provider in its own process, and a gateway whose people log in there."""

import json
import re
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from tests.oauth.authority import Person
from tests.surfaces.admin.admin_gate import Browser, gate
from tests.typescript.node_tools import installed, node
from tests.waiting import PATIENCE

PROGRAM = Path(__file__).with_name("openid_provider.mjs")
ROLES = "{sre: {role: operator}, house-team: {role: approver, namespaces: [house]}, staff: {role: viewer}}"


class ProviderProcess:
    def __init__(self):
        command = [node(), str(PROGRAM), str(installed())]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        first = next(line for line in self._process.stdout if line.startswith("{"))
        self.issuer = json.loads(first)["issuer"]
        self._reader = threading.Thread(target=self._process.stdout.read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self._process.stdout.close()

    def tell_of(self, name, **said):
        """What the provider says of somebody from now on."""
        with urlopen(f"{self.issuer}/test/person?{urlencode({'id': name, **said})}", timeout=PATIENCE):
            return

    def let_identities_last(self, seconds):
        """The ID tokens that are given from now on."""
        with urlopen(f"{self.issuer}/test/identities?seconds={seconds}", timeout=PATIENCE):
            return

    def register(self, *redirects, base):
        """A client of this provider, as an operator registers the gateway there."""
        wanted = {
            "application_type": "native",
            "redirect_uris": redirects,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "client_secret_basic",
            "post_logout_redirect_uris": [f"{base}/login"],
            "backchannel_logout_uri": f"{base}/oidc/logout",
            "backchannel_logout_session_required": True,
        }
        ask = Request(f"{self.issuer}/reg", json.dumps(wanted).encode(), {"Content-Type": "application/json"})
        with urlopen(ask, timeout=PATIENCE) as reply:
            return json.loads(reply.read())


def oidc(issuer, client, **more):
    """The lines of config.yaml that name the provider."""
    said = {"issuer": issuer, "client_id": client["client_id"], "client_secret": client["client_secret"]}
    lines = "".join(f"    {key}: {value}\n" for key, value in ({"roles": ROLES} | said | more).items())
    return f"auth:\n  oidc:\n{lines}"


@contextmanager
def vouching_gate(folder, provider, more="", **settings):
    """A gateway whose page is known to the provider."""
    with gate(folder, more) as gateway:
        base = gateway.announced["admin"]
        gateway.client = provider.register(f"{base}/oidc/callback", base=base)
        configure(gateway, provider, more, **settings)
        yield gateway


def configure(gateway, provider, more="", **settings):
    config = gateway.folder / "config.yaml"
    before = config.read_text().partition("\nauth:")[0]
    config.write_text(f"{before}\n{oidc(provider.issuer, gateway.client, **settings)}")
    gateway.admin.request("POST", "/api/reload", {})


class PersonAtProvider:
    """Somebody with a browser: the page's and the provider's cookies, and what became of the login."""

    def __init__(self, gateway, provider, name):
        self.page = Browser(gateway.announced["admin"])
        self.there = Person(provider.issuer, name)
        self.flow = None

    def begin(self):
        """Where the page sends the browser; its cookie is kept."""
        reply = self.page.send("GET", "/oidc/login")
        assert reply.status == 303, reply.body
        self.flow = reply.headers["set-cookie"].partition(";")[0]
        return reply.headers["location"]

    def come_back(self, url):
        """Follow the provider's redirect, as the browser that began does."""
        parts = urlsplit(url)
        return self.page.send("GET", f"{parts.path}?{parts.query}", Cookie=self.flow)

    def log_in(self):
        reply = self.come_back(self.there.consent(self.begin()))
        if reply.status == 303:
            assert self.page.follow(reply.headers["location"]).status == 200
        return reply


def said_on(reply):
    return re.sub(r"<[^>]+>", " ", reply.body.decode())
