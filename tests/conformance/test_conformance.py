"""The protocol's own conformance suites against the gateway, with a server of every feature behind it."""

import asyncio
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.node_packages import node, suite
from tests.surfaces.mcp.mcp_gate import (
    config_text,
    fixture_over_http,
    fixture_over_stdio,
    http_fixture,
    running_gate,
)

HANDSHAKE = ("suite-handshake",)
BOTH_HANDSHAKE = ("suite-both", "--spec-version", "2025-11-25")
BOTH_MODERN = ("suite-both", "--spec-version", "2026-07-28")
RUNS = ((HANDSHAKE, 32), (BOTH_HANDSHAKE, 33), (BOTH_MODERN, 40))
FINE = {"SUCCESS", "INFO", "SKIPPED"}


async def run_suite(url: str, name: str, *options: str, out: Path) -> str:
    """What the suite printed; its checks are then in `out`, a folder per scenario."""
    command = (suite(name), "server", "--url", url, "--suite", "all", *options, "-o", str(out))
    process = await asyncio.create_subprocess_exec(
        node(), *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    async with asyncio.timeout(100):
        printed, _ = await process.communicate()
    return printed.decode(errors="replace")


def scenarios(out: Path) -> dict[str, list[dict[str, Any]]]:
    return {path.parent.name: json.loads(path.read_text()) for path in out.glob("*/checks.json")}


def shortcomings(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    return [
        f"{scenario} {check['id']}: {check['status']} {check.get('errorMessage')}"
        for scenario, checks in sorted(found.items())
        for check in checks
        if check["status"] not in FINE
    ]


async def conform(url: str, folder: Path) -> list[int]:
    """How many scenarios each run passed, in at least as many checks; a run with a shortcoming is the failure."""
    return [
        await pass_all(url, options, folder / f"run-{number}") for number, (options, _) in enumerate(RUNS)
    ]


async def pass_all(url: str, options: tuple[str, ...], out: Path) -> int:
    printed = await run_suite(url, *options, out=out)
    found = scenarios(out)
    assert shortcomings(found) == [], printed
    counts = Counter(check["status"] for checks in found.values() for check in checks)
    assert counts["SUCCESS"] >= len(found), printed
    return len(found)


@pytest.mark.slow
async def test_every_scenario_passes_with_a_server_over_http_behind_the_gateway(tmp_path: Path) -> None:
    async with (
        http_fixture() as upstream,
        running_gate(tmp_path, config_text(fixture_over_http(upstream))) as gate,
    ):
        assert await conform(gate.open_url, tmp_path) == [expected for _, expected in RUNS]


@pytest.mark.slow
async def test_every_scenario_passes_with_a_server_over_stdio_behind_the_gateway(tmp_path: Path) -> None:
    async with running_gate(tmp_path, config_text(fixture_over_stdio())) as gate:
        assert await conform(gate.open_url, tmp_path) == [expected for _, expected in RUNS]
