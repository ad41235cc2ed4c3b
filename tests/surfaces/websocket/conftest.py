"""One API for all tests of the folder; each test starts its own gateway on a folder of its own."""

from collections.abc import Iterator

import pytest
from tests.gateway import Api


@pytest.fixture(scope="module")
def shared_api() -> Iterator[Api]:
    with Api() as api:
        yield api


@pytest.fixture
def api(shared_api: Api) -> Api:
    shared_api.reset()
    return shared_api
