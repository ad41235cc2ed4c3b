"""Fetches what tests install from package registries, while the tests that need none of it run.

A test that comes first waits, or fetches by itself: each of these is done once, by whoever begins.
"""

from collections.abc import Callable

from tests import servers
from tests.conformance import node_packages
from tests.debian import find_program
from tests.typescript import node_tools
from tests.ui import chromium, firefox

SOONEST_FIRST: list[Callable[[], object]] = [
    servers.reference,
    chromium.install,
    node_tools.installed,
    lambda: node_packages.installed("clients"),
    servers.install_node,
    *(lambda name=name: servers.install_python(name) for name in servers.PYTHON_SERVERS),
    *(lambda name=name: node_packages.installed(name) for name in node_packages.PACKAGES),
    firefox.install,
    lambda: find_program("haproxy", "haproxy"),
    lambda: find_program("nginx", "nginx"),
]


def main() -> None:
    for fetch in SOONEST_FIRST:
        try:
            fetch()
        except Exception as error:  # noqa: BLE001
            print(f"{error}; the test that needs it says more")


if __name__ == "__main__":
    main()
