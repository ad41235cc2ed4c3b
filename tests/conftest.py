"""What every test may rely on: `async def test_…` runs as it stands, on the event loop that the gateway uses."""

import asyncio
import gc
import inspect
from collections.abc import Callable, Coroutine, Generator
from typing import Any

import pytest
import uvloop
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # a busy machine is no fault of an example
settings.load_profile("untimed")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests stay until the end: looking for garbage among them took a third of the time to find them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def is_coroutine(test: Callable[..., Any]) -> bool:
    examples = getattr(test, "hypothesis", None)
    return inspect.iscoroutinefunction(examples.inner_test if examples else test)


def bounded(test: Callable[..., Coroutine[Any, Any, None]], item: pytest.Function) -> Callable[..., None]:
    """One that hangs ends from within, a little before pytest-timeout: what its signal raises, uvloop logs and forgets."""
    marked = item.get_closest_marker("timeout")
    seconds = marked.args[0] if marked else item.config.getoption("timeout")
    run = item.funcargs.get("run_loop", uvloop.run)

    async def main(*args: Any, **given: Any) -> None:
        async with asyncio.timeout(seconds * 0.9 if seconds else None):
            await test(*args, **given)

    return lambda *args, **given: run(main(*args, **given))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A property gets a loop for each of its examples; the fixture `run_loop` chooses another loop."""
    test = pyfuncitem.obj
    if not is_coroutine(test):
        return None
    wanted = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}
    if examples := getattr(test, "hypothesis", None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(examples, "inner_test", bounded(examples.inner_test, pyfuncitem))
            test(**wanted)
    else:
        bounded(test, pyfuncitem)(**wanted)
    return True
