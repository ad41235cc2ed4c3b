import pytest
from tests.gateway import Api
from tests.oidc.provider_house import ProviderProcess
from tests.ui import chromium


@pytest.fixture(scope="session")
def api():
    with Api() as server:
        yield server


@pytest.fixture(scope="session")
def provider():
    with ProviderProcess() as started:
        yield started


@pytest.fixture(scope="module")
def chrome():
    with chromium.started() as browser:
        yield browser
