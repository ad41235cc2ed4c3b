"""An async test runs as it stands, a property too; one that hangs fails."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.xfail(raises=AssertionError, strict=True)
@given(number=st.integers())
async def test_a_property_that_does_not_hold_fails(number: int) -> None:
    await asyncio.sleep(0)
    assert number < 5


@pytest.mark.timeout(2)
@pytest.mark.xfail(raises=TimeoutError, strict=True)
async def test_a_test_that_hangs_fails() -> None:
    await asyncio.Event().wait()
