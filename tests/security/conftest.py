import pytest
from tests.gateway import Api
from tests.security.house import house


@pytest.fixture
def recorder():
    """An HTTP API for a gateway of the test's own: what that one still sends at its end is no request of the house."""
    with Api() as server:
        yield server


@pytest.fixture(scope="session")
def started(tmp_path_factory):
    """A house whose HTTP API must never be asked for anything but calls."""
    with Api() as server, house(tmp_path_factory.mktemp("house"), server) as made:
        yield made


@pytest.fixture
def home(started):
    started.forget()
    yield started
    started.settle()
