"""An async test runs as it stands, a property too; one that hangs fails."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import bounded


@pytest.mark.xfail(raises=AssertionError, strict=True)
@given(number=st.integers())
async def test_a_property_that_does_not_hold_fails(number: int) -> None:
    await asyncio.sleep(0)
    assert number < 5


def test_a_test_that_hangs_fails(request: pytest.FixtureRequest) -> None:
    """Its limit is of this test alone: the signal that comes for a real one would end the process on a busy machine."""

    async def hangs() -> None:
        await asyncio.Event().wait()

    limit = SimpleNamespace(args=[0.1])
    item = SimpleNamespace(get_closest_marker=lambda _name: limit, funcargs={}, config=request.config)
    with pytest.raises(TimeoutError):
        bounded(hangs, cast(pytest.Function, item))()
