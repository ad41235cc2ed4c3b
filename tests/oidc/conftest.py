import pytest
from playwright.sync_api import sync_playwright
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
    if chromium.find() is None and (reason := chromium.install()):
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=list(chromium.FLAGS))
        yield browser
        browser.close()
