import pytest
from tests.app.small import CONFIG, PERMISSIONS, TOOLS
from tests.gateway import TOKEN, Api


@pytest.fixture
def api():
    with Api() as made:
        yield made


@pytest.fixture
def files(api):
    return {
        "config.yaml": CONFIG.format(token=TOKEN, url=api.url),
        "tools.yaml": TOOLS,
        "permissions.yaml": PERMISSIONS,
    }
