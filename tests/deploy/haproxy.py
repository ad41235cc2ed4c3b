"""A real HAProxy: the one on this machine, or Debian's package."""

import pytest
from tests.debian import find_program


def program() -> str:
    found = find_program("haproxy", "haproxy")
    if found is None:
        pytest.skip("there is no HAProxy here, and no Debian to fetch it from")
    return found
