"""`browser.proxy`: what was checked leaves through another proxy, and nothing past it."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.browser.browser_house import Agent, browser_house, page
from tests.browser.test_checking_proxy import asked
from tests.gateway import Api

from agent_gate.errors import ConfigError
from agent_gate.net.addresses import PrivateHosts
from agent_gate.sources.browser.proxy import CheckingProxy, UpstreamProxy, upstream_of

PROGRAM = Path(__file__).with_name("upstream_proxy.py")


class Upstream:
    """The proxy's process, and what it was asked for."""

    def __init__(self, process, log):
        self.process, self.log = process, log
        self.port = int(process.stdout.readline())

    @property
    def asked(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def refuse(self, port):
        Path(f"{self.log}.refused").write_text(f":{port}")


@contextmanager
def upstream(folder, login=""):
    log = folder / "asked.txt"
    command = [sys.executable, str(PROGRAM), str(log), *([login] if login else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Upstream(process, log)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def company(tmp_path_factory):
    """A gateway behind a proxy that wants a login."""
    folder = tmp_path_factory.mktemp("proxy")
    with upstream(folder, "gate:geheim-wort") as proxy, Api() as other:
        address = f"http://gate:geheim-wort@127.0.0.1:{proxy.port}"
        with browser_house(folder, proxy=address, also=other, max_contexts=8) as (gateway, site):
            yield gateway, site, proxy, other


def port_of(api):
    return api.url.rpartition(":")[2]


def test_pages_are_reached_through_the_proxy_with_its_login(company):
    gateway, site, proxy, _ = company
    site.replies["/here"] = page("<h1>Here</h1><img src=/picture>")
    assert "# Here" in Agent(gateway, site, "a").open("/here")
    assert f"CONNECT 127.0.0.1:{port_of(site)}" in proxy.asked
    assert "geheim-wort" not in gateway.stderr


def test_a_host_that_the_proxy_refuses_is_not_reached_past_it(company):
    gateway, site, proxy, other = company
    proxy.refuse(port_of(other))
    said = Agent(gateway, site, "b").call("navigate", url=f"{other.url}/there")
    assert "browser.proxy answered 403" in said
    assert f"CONNECT 127.0.0.1:{port_of(other)}" in proxy.asked
    assert other.requests == []


def test_a_private_address_is_refused_before_the_proxy_is_asked(company):
    gateway, site, proxy, _ = company
    with Api() as secret:
        said = Agent(gateway, site, "c").refused("navigate", url=f"{secret.url}/")
        assert "may not be opened" in said
        assert not any(port_of(secret) in line for line in proxy.asked)


async def test_without_the_proxy_nothing_is_reached(tmp_path):
    with Api() as site, upstream(tmp_path) as proxy:
        through, host = UpstreamProxy("127.0.0.1", proxy.port), site.url.partition("//")[2]
        async with CheckingProxy(PrivateHosts([host]), through) as checking:
            request = f"GET {site.url}/here HTTP/1.1\r\nHost: {host}\r\n\r\n"
            assert (await asked(checking, request)).startswith("HTTP/1.1 200")
            before = len(site.requests)
            proxy.process.kill()
            proxy.process.wait()
            assert (await asked(checking, request)).startswith("HTTP/1.1 502")
        assert len(site.requests) == before


@pytest.mark.parametrize(
    "address", ["socks5://10.0.0.1:1080", "https://10.0.0.1:3128", "10.0.0.1:3128", "http://"]
)
def test_an_address_that_is_no_http_proxy_is_an_error_that_says_so(address):
    with pytest.raises(ConfigError, match=r"browser\.proxy must be an HTTP proxy"):
        upstream_of(address, "config.yaml:3")
