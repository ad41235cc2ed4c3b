"""Two gateways for the tests of a module: `one` and `two`, and what stands behind them."""

from types import SimpleNamespace

import pytest
from tests import postgres
from tests.cluster.several import several
from tests.gateway import Api


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two gateways that stay up for the whole module."""
    database = postgres.server().new_database()
    with Api() as api, several(tmp_path_factory.mktemp("pair"), database, api) as gateways:
        one, two = gateways.start("one"), gateways.start("two")
        yield SimpleNamespace(one=one, two=two, api=api, gateways=gateways, database=database)


@pytest.fixture
def api():
    with Api() as one:
        yield one


@pytest.fixture
def database():
    return postgres.server().new_database()
