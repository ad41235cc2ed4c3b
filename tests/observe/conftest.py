import pytest

from gateway import Api
from observe.collector import Collector


@pytest.fixture
def collector():
    server = Collector()
    yield server
    server.close()


@pytest.fixture
def api():
    server = Api()
    yield server
    server.close()
