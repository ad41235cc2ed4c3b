"""A real authorization server in its own process, and the person who consents at it, by HTTP or in a browser."""

import http.client
import json
import re
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit
from urllib.request import urlopen

from tests.typescript.node_tools import installed, node
from tests.waiting import PATIENCE, wait_until

from agent_gate.net.tls.files import CertificateFiles

ANY_AUTHORITY = ssl._create_unverified_context()
PROGRAM = Path(__file__).with_name("authorization_server.mjs")


class AuthorizationProcess:
    """Its issuer, and how often it was asked for what."""

    def __init__(self, seconds: int = 3600, port: int = 0, tls: CertificateFiles | None = None) -> None:
        command = [node(), str(PROGRAM), str(installed()), str(seconds), str(port)]
        command += [str(tls.cert), str(tls.key)] if tls is not None else []
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        first = next(line for line in self._process.stdout if line.startswith("{"))
        self.issuer = json.loads(first)["issuer"]
        # It also prints notices for developers, which nobody needs.
        self._reader = threading.Thread(target=self._process.stdout.read, daemon=True)
        self._reader.start()

    def count(self, path: str) -> int:
        """How often this path was asked for."""
        with urlopen(
            f"{self.issuer}/test/count?path={path}", timeout=PATIENCE, context=ANY_AUTHORITY
        ) as reply:
            return int(reply.read())

    def let_tokens_last(self, seconds: int) -> None:
        """Those that are given from now on."""
        with urlopen(
            f"{self.issuer}/test/lifetime?seconds={seconds}", timeout=PATIENCE, context=ANY_AUTHORITY
        ):
            return

    def has_served(self, path: str, times: int) -> None:
        """Fails unless it has, or soon has: what it prints comes after its answer."""
        wait_until(lambda: self.count(path) == times, f"service number {times} of {path}")

    def close(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()


def connection_to(url: str) -> http.client.HTTPConnection:
    """A connection of the tests themselves, which trust every authority."""
    parts = urlsplit(url)
    if parts.scheme == "https":
        host = parts.hostname or ""
        return http.client.HTTPSConnection(host, parts.port, timeout=PATIENCE, context=ANY_AUTHORITY)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)


@contextmanager
def authorization_server(
    seconds: int = 3600, tls: CertificateFiles | None = None
) -> Iterator[AuthorizationProcess]:
    made = AuthorizationProcess(seconds, tls=tls)
    try:
        yield made
    finally:
        made.close()


class Person:
    """Clicks through the server's own pages as a browser would: cookies, forms, redirects; stops where a redirect
    leaves the server."""

    def __init__(self, issuer: str, name: str = "alice") -> None:
        self.issuer, self.name = issuer, name
        self._cookies: dict[str, str] = {}

    def consent(self, url: str) -> str:
        """Where the browser is sent in the end: the redirect address with its code."""
        form: dict[str, str] | None = None
        for _ in range(20):
            if not url.startswith(self.issuer):
                return url
            location, page = self._visit(url, form)
            if location is not None:
                url, form = urljoin(url, location), None
            else:
                url, form = self._fill(url, page)
        raise AssertionError("the pages lead in a circle")

    def enter_device_code(self, url: str) -> None:
        """Types nothing: the complete address carries the code; confirms, logs in, consents."""
        form: dict[str, str] | None = None
        for _ in range(20):
            location, page = self._visit(url, form)
            if location is not None:
                url, form = urljoin(url, location), None
            elif "<form" not in page:
                return
            else:
                url, form = self._fill(url, page)
        raise AssertionError("the pages lead in a circle")

    def log_out(self) -> None:
        """At the server itself, as its own page does."""
        url, form = f"{self.issuer}/session/end", None
        location, page = self._visit(url, form)
        assert location is None
        url, fields = self._fill(url, page)
        self._visit(url, {**fields, "logout": "yes"})

    def _visit(self, url: str, form: dict[str, str] | None) -> tuple[str | None, str]:
        parts = urlsplit(url)
        connection = connection_to(url)
        headers = {"Cookie": "; ".join(f"{k}={v}" for k, v in self._cookies.items())}
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        if form is None:
            connection.request("GET", path, headers=headers)
        else:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            connection.request("POST", path, urlencode(form), headers)
        reply = connection.getresponse()
        page = reply.read().decode()
        for name, value in reply.getheaders():
            if name.lower() == "set-cookie":
                key, _, rest = value.partition("=")
                self._cookies[key] = rest.partition(";")[0]
        connection.close()
        assert reply.status < 400, f"{reply.status} at {url}: {re.sub('<[^>]+>', ' ', page)[:400]}"
        return (reply.getheader("Location"), page) if 300 <= reply.status < 400 else (None, page)

    def _fill(self, url: str, page: str) -> tuple[str, dict[str, str]]:
        form = re.search(r"<form[^>]*>.*?</form>", page, re.DOTALL)
        assert form is not None, re.sub("<[^>]+>", " ", page)[:400]
        action = re.search(r'action="([^"]*)"', form[0])
        fields = {}
        for found in re.finditer(r"<input([^>]*)>", form[0]):
            name = re.search(r'name="([^"]*)"', found[1])
            value = re.search(r'value="([^"]*)"', found[1])
            if name is not None:
                fields[name[1]] = unescape(value[1]) if value else ""
        fields.update({name: self.name for name in ("login",) if name in fields})
        fields.update({name: "anything" for name in ("password",) if name in fields})
        return urljoin(url, unescape(action[1]) if action else url), fields


def answer_in(url: str) -> dict[str, str]:
    """The parameters with which the browser came back."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
