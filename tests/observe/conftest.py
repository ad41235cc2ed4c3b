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
    with Api() as server:
        yield server
