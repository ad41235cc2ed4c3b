"""A real HAProxy: the one on this machine, or Debian's package."""

import pytest
from tests.debian import find_program

LIBRARIES = ("liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1", "libslz0")


def program() -> str:
    found = find_program("haproxy", *LIBRARIES)
    if found is None:
        pytest.skip("there is no HAProxy here, and no Debian to fetch it from")
    return found
