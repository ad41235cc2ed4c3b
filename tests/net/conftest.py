"""Every async test of the rim runs on both event loops: the product's own and the standard one."""

import asyncio

import pytest
import uvloop
from tests.conftest import is_coroutine


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if is_coroutine(metafunc.function):
        metafunc.fixturenames.append("run_loop")
        metafunc.parametrize("run_loop", [uvloop.run, asyncio.run], ids=["uvloop", "asyncio"])
