"""No package with a known hole: what is installed is compared with a table of floors."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest

FLOORS = tomllib.loads(Path(__file__).with_name("floors.toml").read_text())
ALL = {name: floor for group in FLOORS.values() for name, (floor, _why) in group.items()}


def numbers(text):
    return tuple(int(part) for part in re.match(r"\d+(?:\.\d+)*", text)[0].split("."))


@pytest.mark.parametrize("name", ALL)
def test_what_is_installed_is_not_older_than_its_floor(name):
    try:
        installed = version(name)
    except PackageNotFoundError:
        assert name in FLOORS["tests"], "every run-time dependency is installed"
        return
    assert numbers(installed) >= numbers(ALL[name])


def test_every_run_time_dependency_has_a_floor():
    needed = {
        re.match(r"[A-Za-z0-9._-]+", line)[0]
        for line in requires("agent-gate") or ()
        if "extra ==" not in line
    }
    assert needed == set(FLOORS["run"])


def test_every_floor_has_a_reason():
    for group in FLOORS.values():
        for floor, why in group.values():
            assert numbers(floor)
            assert why
