"""The proxy of a session: it looks a host up once, checks every address, and connects to one that it checked."""

import asyncio
from types import SimpleNamespace

import pytest
from tests.gateway import Api

from agent_gate.net import addresses
from agent_gate.net.addresses import PrivateHosts
from agent_gate.sources.browser.proxy import CheckingProxy


@pytest.fixture
def names(monkeypatch):
    """Names and the answers they get, one after the other; the last one stays."""
    known, asked = {}, []

    async def getaddrinfo(host, port, **_):
        asked.append(host)
        answers = known[host]
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(2, 1, 6, "", (address, port)) for address in found]

    loop = SimpleNamespace(getaddrinfo=getaddrinfo)
    monkeypatch.setattr(addresses, "asyncio", SimpleNamespace(get_running_loop=lambda: loop))
    return SimpleNamespace(known=known, asked=asked)


async def asked(proxy, request):
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
    writer.write(request.encode())
    answer = await reader.read()
    writer.close()
    return answer.decode()


async def test_a_name_with_one_private_address_among_public_ones_is_refused(names):
    names.known["mixed.test"] = [["93.184.216.34", "127.0.0.1"]]
    async with CheckingProxy(PrivateHosts(())) as proxy:
        answer = await asked(proxy, "GET http://mixed.test/ HTTP/1.1\r\nHost: mixed.test\r\n\r\n")
        assert answer.startswith("HTTP/1.1 403")
        assert proxy.why_refused("http://mixed.test/x")
        answer = await asked(proxy, "CONNECT mixed.test:443 HTTP/1.1\r\n\r\n")
        assert answer.startswith("HTTP/1.1 403")


async def test_a_name_that_changes_its_address_is_connected_to_as_it_was_checked(names):
    with Api() as site:
        port = site.url.rpartition(":")[2]
        names.known["rebind.test"] = [["127.0.0.1"], ["10.9.9.9"]]
        async with CheckingProxy(PrivateHosts([f"rebind.test:{port}"])) as proxy:
            host = f"rebind.test:{port}"
            answer = await asked(proxy, f"GET http://{host}/page HTTP/1.1\r\nHost: {host}\r\n\r\n")
        assert answer.startswith("HTTP/1.1 200")
        assert names.asked == ["rebind.test"]


@pytest.mark.parametrize(
    "line", ["GET / HTTP/1.1", "GET file:///etc/passwd HTTP/1.1", "CONNECT  HTTP/1.1", "nonsense"]
)
async def test_what_is_not_a_request_for_a_host_is_refused(line):
    async with CheckingProxy(PrivateHosts(())) as proxy:
        assert (await asked(proxy, f"{line}\r\n\r\n")).startswith("HTTP/1.1 400")


async def test_a_port_that_is_allowed_allows_no_other():
    private = PrivateHosts(["127.0.0.1:8125"])
    assert private.allows("127.0.0.1", "127.0.0.1", 8125)
    assert not private.allows("127.0.0.1", "127.0.0.1", 3100)


def test_a_host_or_a_network_that_is_named_may_be_reached_and_no_other():
    private = PrivateHosts(["wiki.lan", "192.168.7.0/24"])
    assert private.allows("wiki.lan", "10.0.0.9", 80)
    assert private.allows("anything.lan", "192.168.7.20", 80)
    assert not private.allows("other.lan", "192.168.8.20", 80)
