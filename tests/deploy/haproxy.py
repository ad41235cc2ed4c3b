"""A real HAProxy: the one on this machine, or Debian's package."""

import shutil

import pytest
from tests.debian import unpack

PACKAGES = ("haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1", "libslz0")


def program() -> str:
    found = shutil.which("haproxy") or shutil.which("/usr/sbin/haproxy")
    found = found or next(map(str, unpack("haproxy", PACKAGES).glob("usr/sbin/haproxy")), None)
    if found is None:
        pytest.skip("there is no HAProxy here, and no Debian to fetch it from")
    return found
