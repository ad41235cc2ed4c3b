"""What we ship to run several gateways: Kubernetes manifests, a compose file, HAProxy's configuration, a systemd unit."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML
from tests import nursery
from tests.deploy.haproxy import program
from tests.deploy.published import compose_schema, kubernetes_definitions
from tests.nursery import COMMAND

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
MANIFESTS = [
    one
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for one in YAML(typ="safe").load_all(path.read_text())
]
COMPOSED = YAML(typ="safe").load((ROOT / "compose.ha.yaml").read_text())
SECRETS = {
    "DATABASE_URL": "postgresql://gate@nowhere/gate",
    "AGENT_TOKEN": "token-of-the-first-agent-in-tests",
    "AGENT_GATE_SECRET": "0" * 64,
}


def manifest(kind, name="agent-gate"):
    [found] = [one for one in MANIFESTS if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


@pytest.mark.parametrize("one", MANIFESTS, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_a_manifest_is_what_kubernetes_takes(one):
    group, _, version = one["apiVersion"].rpartition("/")
    group = (group or "core").removesuffix(".k8s.io")
    name = f"io.k8s.api.{group}.{version}.{one['kind']}"
    schema = {"$ref": f"#/$defs/{name}", "$defs": kubernetes_definitions()["$defs"]}
    faults = [fault.message for fault in jsonschema.Draft202012Validator(schema).iter_errors(one)]
    assert faults == []


def test_a_pod_has_no_root_no_writable_root_and_no_token_of_the_cluster():
    pod = manifest("StatefulSet")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] != 0
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    places = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert places == {"/data", "/tmp"}


def test_there_are_two_and_one_of_them_stays_while_the_other_stops():
    spec = manifest("StatefulSet")["spec"]
    pod = spec["template"]["spec"]
    [container] = pod["containers"]
    assert spec["replicas"] == 2
    assert manifest("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert container["livenessProbe"]["httpGet"]["path"] != "/ready"
    config = YAML(typ="safe").load(manifest("ConfigMap")["data"]["config.yaml"])
    before = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert before + config["limits"]["drain"] < pod["terminationGracePeriodSeconds"]


def test_only_agents_come_in_and_only_what_is_named_goes_out():
    policy = manifest("NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["podSelector"]["matchLabels"] == manifest("StatefulSet")["spec"]["selector"]["matchLabels"]
    assert all(rule["from"] and rule["ports"] for rule in policy["ingress"])
    assert {port["port"] for rule in policy["egress"] for port in rule["ports"]} == {53, 443, 5432}


def checked(folder, env):
    """What `agent-gate check` says of the configuration in a folder."""
    return nursery.run(
        [COMMAND, "check", "--config", "config.yaml"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **SECRETS, **env},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certs")
    made = subprocess.run(
        [DEPLOY / "ha" / "certificate.sh", "gate.example"],
        env={**os.environ, "CERTS": str(folder)},
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    return folder


def test_the_configuration_in_the_manifests_is_one_that_the_gateway_takes(tmp_path, certs):
    for name, text in manifest("ConfigMap")["data"].items():
        (tmp_path / name).write_text(text.replace("/tls/tls.", f"{certs}/gate."))
    done = checked(tmp_path, {"HOSTNAME": "agent-gate-0"})
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_configuration_of_the_composed_gateways_is_one_that_the_gateway_takes(tmp_path, certs):
    for name in ("config.yaml", "permissions.yaml"):
        shutil.copy(DEPLOY / "ha" / name, tmp_path)
    done = checked(tmp_path, {"GATE_ID": "gateway-1", "CERTS": str(certs)})
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_compose_file_is_what_compose_takes():
    faults = [fault.message for fault in jsonschema.Draft7Validator(compose_schema()).iter_errors(COMPOSED)]
    assert faults == []


def test_the_composed_gateways_differ_in_their_name_and_their_volume_alone():
    first, second = (COMPOSED["services"][f"gateway-{number}"] for number in (1, 2))
    assert first["environment"]["GATE_ID"] == "gateway-1"
    assert second["environment"]["GATE_ID"] == "gateway-2"
    told = [
        str(one).replace("gateway-1", "gateway-N").replace("gateway-2", "gateway-N")
        for one in (first, second)
    ]
    assert told[0] == told[1]
    assert first["read_only"] is True
    assert first["cap_drop"] == ["ALL"]


def test_nothing_of_the_composed_is_reached_from_other_machines():
    published = [port for one in COMPOSED["services"].values() for port in one.get("ports", ())]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert COMPOSED["networks"]["inside"]["internal"] is True
    assert COMPOSED["services"]["database"]["networks"] == ["inside"]


def test_no_secret_stands_in_what_we_ship():
    for path in [*DEPLOY.rglob("*"), ROOT / "compose.ha.yaml"]:
        if path.is_file() and "certs" not in path.parts:
            assert not re.search(r"(TOKEN|SECRET|PASSWORD)\s*[:=]\s*[A-Za-z0-9]{8}", path.read_text()), path


def test_haproxy_takes_its_configuration(certs):
    assert (certs / "gate.key").stat().st_mode & 0o077 == 0
    places = {f"{kind}_{number}": "127.0.0.1:1" for kind in ("GATEWAY", "PAGE") for number in (1, 2)}
    done = subprocess.run(
        [program(), "-c", "-f", DEPLOY / "ha" / "haproxy.cfg"],
        env={**os.environ, "CERTS": str(certs), **places},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_unit_is_one_that_systemd_takes(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd here")
    text = (DEPLOY / "systemd" / "agent-gate@.service").read_text()
    unit = tmp_path / "agent-gate@.service"
    unit.write_text(text.replace("/opt/agent-gate/bin/agent-gate", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    ours = [line for line in done.stderr.splitlines() if "agent-gate@" in line]
    assert (done.returncode, ours) == (0, [])
