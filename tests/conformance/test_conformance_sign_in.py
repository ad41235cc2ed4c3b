"""The suite's scenarios for clients that sign in, with a gateway as the client: its upstream half does the flow."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conformance.node_packages import node, suite
from tests.conformance.test_conformance import shortcomings
from tests.nursery import nursery
from tests.waiting import PATIENCE

CLIENT = Path(__file__).with_name("sign_in_client.py")
BOTH = (
    "metadata-default",
    "metadata-var1",
    "metadata-var2",
    "metadata-var3",
    "scope-from-www-authenticate",
    "scope-from-scopes-supported",
    "scope-omitted-when-undefined",
    "scope-step-up",
    "scope-retry-limit",
    "token-endpoint-auth-basic",
    "token-endpoint-auth-post",
    "token-endpoint-auth-none",
    "pre-registration",
    "basic-cimd",
)
NEWEST = (
    "resource-mismatch",
    "offline-access-scope",
    "offline-access-not-supported",
    "authorization-server-migration",
    "iss-supported",
    "iss-not-advertised",
    "iss-supported-missing",
    "iss-wrong-issuer",
    "iss-unexpected",
    "iss-normalized",
    "metadata-issuer-mismatch",
)
EXTENSIONS = (
    "client-credentials-jwt",
    "client-credentials-basic",
    "enterprise-managed-authorization",
    "wif-jwt-bearer",
    "dpop",
    "dpop-nonce",
)
EARLIER = ("2025-03-26-oauth-metadata-backcompat", "2025-03-26-oauth-endpoint-fallback")
REVISIONS = ("2025-11-25", "2026-07-28")
RUNS = {
    ("backcompat", ""): EARLIER,
    ("auth", "2025-11-25"): BOTH,
    ("auth", "2026-07-28"): BOTH,
    ("draft", "2026-07-28"): NEWEST,
    ("extensions", ""): EXTENSIONS,
}


def test_no_scenario_that_the_suite_has_for_signing_in_is_left_out():
    command = [node(), str(suite("suite-both")), "list", "--client"]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    offered = {
        (name, revision if revision in REVISIONS else "")
        for name, revisions in re.findall(r"^ *- auth/(\S+) \[(.+)\]$", listed, re.MULTILINE)
        for revision in revisions.split(",")
        if revision != "2025-06-18"
    }
    assert offered == {(name, revision) for (_, revision), names in RUNS.items() for name in names}


@pytest.mark.parametrize(("named", "revision"), RUNS)
def test_the_gateway_signs_in_as_every_scenario_wants_it(tmp_path, named, revision):
    nursery()
    (turns := tmp_path / "turns").mkdir()
    version = ("--spec-version", revision) if revision else ()
    command = [node(), str(suite("suite-both")), "client", "--command", f"{sys.executable} {CLIENT} {turns}"]
    said = subprocess.run(
        [*command, "--suite", named, *version, "--timeout", "100000", "-o", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=110,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        check=False,
    )
    passed = re.findall(r"^✓ auth/(\S+):", said.stdout, re.MULTILINE)
    checked = (tmp_path / "out").glob("auth/*/checks.json")
    assert shortcomings({path.parent.name: json.loads(path.read_text()) for path in checked}) == []
    assert sorted(passed) == sorted(RUNS[named, revision]), said.stdout[-2000:] + said.stderr[-2000:]
