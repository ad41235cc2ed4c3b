"""A lease of a paired component is good on every gateway, until it ends on any."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from types import SimpleNamespace

import pytest
from tests.cluster.several import several
from tests.remote.components import joined
from tests.waiting import wait_until

from agent_gate.cli.remote import RemoteClient
from agent_gate.errors import Forbidden, RateLimited
from agent_gate.peers.leases import MOST_PER_PEER

WANTED = {"capabilities": ["events.subscribe:cron.*"]}


class At(RemoteClient):
    """The same component at another gateway."""

    def __init__(self, folder, gateway):
        super().__init__(folder)
        self._url = gateway.announced["peers"]


@pytest.fixture
def paired(tmp_path, database, api):
    with several(tmp_path, database, api, more="peers: {port: 0}") as gateways:
        one, two = gateways.start("one"), gateways.start("two")
        desk = joined(one, tmp_path, "subscriber", "desk")

        def at(gateway):
            return At(desk.state, gateway)

        wait_until(lambda: any(peer["name"] == "desk" for peer in two.admin.get("/api/peers")))
        yield SimpleNamespace(gateways=gateways, one=at(one), two=at(two), at=at)


def give(client, **more):
    return client.request("POST", "/v1/leases", {**WANTED, **more})["lease_id"]


def counts(client, lease):
    try:
        list(client.events(f"/v1/events?once=1&lease={lease}", endless=False))
    except Forbidden:
        return False
    return True


@contextmanager
def listening(client, lease):
    """A stream that uses a lease, once it has begun."""
    connection = client.connection(20)
    connection.request("GET", f"/v1/events?lease={lease}")
    with closing(connection), connection.getresponse() as response:
        assert response.readline().startswith(b"id: ")
        yield


def test_a_lease_is_good_on_the_other_gateway_at_once_until_it_is_ended_on_either(paired):
    lease = give(paired.one)
    assert counts(paired.two, lease)
    assert counts(paired.one, lease)
    paired.two.request("DELETE", f"/v1/leases/{lease}")
    assert not counts(paired.two, lease)
    wait_until(lambda: not counts(paired.one, lease))


def test_a_lease_outlives_a_restart_of_the_gateway_that_gave_it(paired):
    lease = give(paired.one)
    paired.gateways.stop("one")
    assert counts(paired.two, lease)
    assert counts(paired.at(paired.gateways.start("one")), lease)


def test_a_component_has_as_many_leases_as_it_may_on_both_gateways_together(paired):
    def attempt(number):
        try:
            return give((paired.one, paired.two)[number % 2])
        except RateLimited:
            return None

    with ThreadPoolExecutor(8) as pool:
        given = [one for one in pool.map(attempt, range(MOST_PER_PEER + 8)) if one]
    assert len(set(given)) == MOST_PER_PEER


def test_a_lease_ends_with_its_stream_on_every_gateway_and_with_the_gateway_that_has_the_stream(paired):
    first, second = (give(paired.one, disconnect_bound=True) for _ in range(2))
    with listening(paired.one, first):
        assert counts_without_ending(paired.two, first)
    wait_until(lambda: not counts_without_ending(paired.two, first))
    with listening(paired.one, second):
        assert counts_without_ending(paired.two, second)
        paired.gateways.kill("one")
    wait_until(lambda: not counts_without_ending(paired.two, second))


def counts_without_ending(client, lease):
    """As `counts`, by a request that is no stream."""
    with pytest.raises(Forbidden) as refused:
        client.request("GET", f"/api/status?lease={lease}")
    return "or it has ended" not in str(refused.value)
