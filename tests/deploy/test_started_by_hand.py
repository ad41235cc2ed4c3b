"""What we ship for several gateways, started as a container engine would: read-only root, no privileges, own networks."""

import json
import os
import re
import resource
import secrets
import shutil
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from ruamel.yaml import YAML
from tests import postgres
from tests.deploy.containers import ROOT, ContainerNetwork, HandMadeContainer
from tests.deploy.haproxy import program
from tests.waiting import PATIENCE, wait_until

GATE = 10001
COMPOSED = YAML(typ="safe").load((ROOT / "compose.ha.yaml").read_text())["services"]
MANIFESTS = list(YAML(typ="safe").load_all((ROOT / "deploy" / "kubernetes" / "agent-gate.yaml").read_text()))
ENV = {
    "AGENT_GATE_SECRET": secrets.token_hex(32),
    "AGENT_TOKEN": secrets.token_hex(24),
    "POSTGRES_PASSWORD": secrets.token_hex(24),
}


def filled(text):
    return re.sub(r"\$\{(\w+)(:\?[^}]*)?\}", lambda found: ENV[found[1]], str(text))


def owned(folder):
    folder.mkdir(parents=True)
    os.chown(folder, GATE, GATE)
    return folder


class DatabaseContainer:
    """PostgreSQL in a network of its own, with a password, as the image makes it; an image of others is not ours to try."""

    def __init__(self, network, env):
        self.space = network.join("database")
        # Not below the test's own folder, which only its user can enter.
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        binaries, user = postgres.find_binaries(), postgres.unprivileged()
        if binaries is None:
            pytest.skip("PostgreSQL is not installed (no initdb found)")
        os.chown(self.folder, postgres.NOBODY, postgres.NOBODY)
        word, data = self.folder / "word", self.folder / "data"
        word.write_text(env["POSTGRES_PASSWORD"])
        os.chown(word, postgres.NOBODY, postgres.NOBODY)
        make = [
            "-U",
            env["POSTGRES_USER"],
            "-A",
            "scram-sha-256",
            f"--pwfile={word}",
            "--no-sync",
            "-E",
            "UTF8",
        ]
        self._run([*user, binaries / "initdb", "-D", data, *make, "--locale=C"])
        with (data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all all scram-sha-256\n")
        enter = ["ip", "netns", "exec", self.space, *user]
        settings = [
            "-c",
            "listen_addresses=*",
            "-c",
            f"unix_socket_directories={self.folder}",
            "-c",
            "fsync=off",
        ]
        self._log = (self.folder / "log").open("wb")
        self.process = subprocess.Popen(
            [*map(str, enter), str(binaries / "postgres"), "-D", str(data), *settings],
            stderr=self._log,
        )
        shell = [*enter, binaries / "psql", "-h", self.folder, "-U", env["POSTGRES_USER"], "-d", "postgres"]
        given = {**os.environ, "PGPASSWORD": env["POSTGRES_PASSWORD"]}
        create = [*map(str, shell), "-c", f"CREATE DATABASE {env['POSTGRES_DB']}"]
        wait_until(lambda: subprocess.run(create, env=given, capture_output=True).returncode == 0)

    def _run(self, command):
        done = subprocess.run(list(map(str, command)), cwd="/", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        self._log.close()
        shutil.rmtree(self.folder)


def mounted(folder, certs, volumes):
    """The mounts of an entry: a named volume is a folder of the image's user, a path is the file or folder of ours."""
    for volume in volumes:
        what, where, *how = volume.split(":")
        if what == "./deploy/ha/certs":
            place = certs
        elif what.startswith("./"):
            place = ROOT / what
        else:
            place = folder / "volumes" / what
            if not place.exists():
                owned(place)
        yield (place, where, "ro" if how == ["ro"] else "rw")


def start_service(folder, network, certs, name, command):
    entry = COMPOSED[name]
    assert entry["read_only"] is True
    assert entry["cap_drop"] == ["ALL"]
    env = {key: filled(value) for key, value in entry.get("environment", {}).items()}
    wanted, there = entry["ulimits"]["nofile"], resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if there < wanted:  # where nobody may raise it, as many as there are
        env |= {"MAX_CONNECTIONS": str(there // 3)}
    user = int(str(entry.get("user", GATE)).partition(":")[0])
    mounts = list(mounted(folder, certs, entry["volumes"]))
    space = f"{network.prefix}-{name}"
    return HandMadeContainer(folder, space, network.hosts(), command, user=user, env=env, mounts=mounts)


def wait_until_ready(gateway):
    def answers():
        assert gateway.process.poll() is None, gateway.said()
        return fetch(gateway, "https://localhost:8443/ready", "--cacert", "/certs/ca.crt")[0] == 200

    wait_until(answers)


@pytest.fixture(scope="module")
def composed(tmp_path_factory):
    """All services of compose.ha.yaml."""
    folder = tmp_path_factory.mktemp("compose")
    with ExitStack() as life:
        network = ContainerNetwork(folder)
        life.callback(network.close)
        certs = folder / "certs"
        made = subprocess.run(
            [ROOT / "deploy" / "ha" / "certificate.sh"],
            env={**os.environ, "CERTS": str(certs)},
            capture_output=True,
            text=True,
        )
        assert made.returncode == 0, made.stderr
        env = {key: filled(value) for key, value in COMPOSED["database"]["environment"].items()}
        database = DatabaseContainer(network, env)
        life.callback(database.stop)
        for name in ("gateway-1", "gateway-2", "haproxy"):
            network.join(name)
        gateways = []
        for name in ("gateway-1", "gateway-2"):
            one = start_service(folder, network, certs, name, ["agent-gate", *COMPOSED[name]["command"]])
            life.callback(one.stop)
            gateways.append(one)
        haproxy = [program(), "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
        proxy = start_service(folder, network, certs, "haproxy", haproxy)
        life.callback(proxy.stop)
        for gateway in gateways:
            wait_until_ready(gateway)
        yield SimpleNamespace(gateways=gateways, proxy=proxy, network=network)


def fetch(container, url, *options):
    """What a program in that network is told, with the status in the last line."""
    code, text = container.run("curl", "-s", "-m", "10", "-w", "\n%{http_code}", *options, url)
    body, _, status = text.rpartition("\n")
    return (int(status) if code == 0 else 0), body


def test_agents_come_in_by_the_load_balancer_and_both_gateways_serve(composed):
    trust = ("--cacert", "/certs/ca.crt", "-H", f"Authorization: Bearer {ENV['AGENT_TOKEN']}")

    def asked():
        return fetch(composed.proxy, "https://localhost:8443/api/tools", *trust)[0]

    wait_until(lambda: asked() == 200 or composed.proxy.process.poll() is not None)
    assert asked() == 200, composed.proxy.said()


def test_a_person_logs_in_by_the_load_balancer_and_sees_both_gateways(composed):
    wait_until(lambda: "/login#" in composed.gateways[1].said())
    [link, *_] = re.findall(r"/login#(\S+)", composed.gateways[1].said())
    page = "http://localhost:3100"
    send = ("-H", f"Origin: {page}", "-H", "Content-Type: application/json", "-i")
    wait_until(lambda: 200 <= fetch(composed.proxy, f"{page}/login")[0] < 400)
    status, text = fetch(composed.proxy, f"{page}/api/session", *send, "-d", json.dumps({"link": link}))
    assert status == 200, text
    [cookie] = re.findall(r"(?im)^set-cookie: ([^;]+)", text)
    [key] = re.findall(r'"key":"([^"]+)"', text)
    come = ("-H", f"Cookie: {cookie}", "-H", f"Agent-Gate-Key: {key}")
    listed = json.loads(fetch(composed.proxy, f"{page}/api/gateways", *come)[1])
    assert [(one["id"], one["state"]) for one in listed] == [
        ("gateway-1", "serving"),
        ("gateway-2", "serving"),
    ]


def test_the_health_check_of_the_image_passes_and_the_root_cannot_be_written(composed):
    check = re.search(r"(?m)^HEALTHCHECK .*CMD (\[.*\])$", (ROOT / "Dockerfile").read_text())
    gateway = composed.gateways[0]
    assert gateway.run(*json.loads(check[1])) == (0, "")
    assert gateway.run("touch", "/written")[0] != 0
    status = Path(f"/proc/{gateway.process.pid}/status").read_text()
    assert re.search(rf"(?m)^Uid:\s+{GATE}\s+{GATE}\s", status)
    assert re.search(r"(?m)^CapEff:\s+0+$", status)
    assert re.search(r"(?m)^CapBnd:\s+0+$", status)
    assert re.search(r"(?m)^NoNewPrivs:\s+1$", status)


def manifest(kind):
    [found] = [one for one in MANIFESTS if one["kind"] == kind and one["metadata"]["name"] == "agent-gate"]
    return found


def test_a_pod_starts_as_the_manifest_says_and_its_probes_answer_as_it_expects(composed, tmp_path):
    pod = manifest("StatefulSet")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    config, tls = tmp_path / "config", tmp_path / "tls"
    config.mkdir()
    for name, text in manifest("ConfigMap")["data"].items():
        (config / name).write_text(text)
    tls.mkdir()
    [certs] = Path(composed.network.folder).glob("certs")
    for name, source in (("tls.crt", "gate.crt"), ("tls.key", "gate.key")):
        shutil.copy(certs / source, tls / name)
        os.chown(tls / name, 0, GATE)  # as fsGroup and defaultMode do
        (tls / name).chmod(0o440)
    address = composed.network.members["database"]
    given = {**ENV, "HOSTNAME": "agent-gate-0"}
    given["DATABASE_URL"] = f"postgresql://gate:{given.pop('POSTGRES_PASSWORD')}@{address}/gate"
    mounts = {"/config": config, "/tls": tls, "/data": owned(tmp_path / "data")}
    composed.network.join("pod")
    started = HandMadeContainer(
        tmp_path,
        f"{composed.network.prefix}-pod",
        composed.network.hosts(),
        ["agent-gate", *container["args"]],
        user=pod["securityContext"]["runAsUser"],
        env=given,
        mounts=[(what, where, "rw" if where == "/data" else "ro") for where, what in mounts.items()],
    )
    try:

        def probe(kind):
            get = container[kind]["httpGet"]
            headers = [f"{one['name']}: {one['value']}" for one in get["httpHeaders"]]
            options = ["-k", *(word for header in headers for word in ("-H", header))]
            return fetch(started, f"{get['scheme'].lower()}://127.0.0.1:8443{get['path']}", *options)[0]

        wait_until(lambda: probe("startupProbe") == 200 or started.process.poll() is not None)
        assert started.process.poll() is None, started.said()
        wait_until(lambda: probe("readinessProbe") == 200)
        assert probe("livenessProbe") == 200
        assert started.run(*container["lifecycle"]["preStop"]["exec"]["command"][:1], "0")[0] == 0
    finally:
        assert started.stop() == 0
