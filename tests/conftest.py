"""What every test may rely on: `async def test_…` runs as it stands, on the event loop that the gateway uses."""

import inspect

import pytest
import uvloop
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # a busy machine is no fault of an example
settings.load_profile("untimed")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    uvloop.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True
