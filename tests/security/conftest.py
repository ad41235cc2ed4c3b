import pytest
from tests.gateway import Api
from tests.security.house import house


@pytest.fixture(scope="session")
def recorder():
    """An HTTP API that must never be asked for anything but calls."""
    with Api() as server:
        yield server


@pytest.fixture(scope="session")
def started(tmp_path_factory, recorder):
    with house(tmp_path_factory.mktemp("house"), recorder) as made:
        yield made


@pytest.fixture
def home(started):
    started.forget()
    yield started
    started.settle()
