import pytest
from tests.gateway import Api
from tests.observe.collector import Collector


@pytest.fixture
def collector():
    server = Collector()
    yield server
    server.close()


@pytest.fixture
def api():
    with Api() as server:
        yield server
