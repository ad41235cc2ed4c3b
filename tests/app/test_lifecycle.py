"""The process as its operator knows it: start, reload, crash, restart, stop."""

import contextlib
import http.client
import json
import os
import resource
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests import nursery
from tests.app.small import TOOLS
from tests.gateway import COMMAND, TOKEN, Gateway, running
from tests.waiting import PATIENCE, wait_until

from agent_gate.app import Gateway as RunningGateway
from agent_gate.cli.commands.serve import limit_of_the_promise
from agent_gate.cli.operator import AdminClient
from agent_gate.config.load import load
from agent_gate.config.options import Options
from agent_gate.config.settings import Settings
from agent_gate.errors import GatewayError
from agent_gate.net.tls.certificates import ensure_certificate
from agent_gate.net.tls.trust import fingerprint_der

COUNTING = Path(__file__).with_name("counting_server.py")


def failed_start(folder, *options, env=None):
    """Run `serve` where it must fail; its exit code and what it said."""
    done = nursery.run(
        [COMMAND, "serve", *options],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **(env or {})},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


def test_tls_is_the_default_and_the_announced_fingerprint_is_the_servers(tmp_path, files):
    with running(tmp_path, files) as gateway:
        assert gateway.url.startswith("https://127.0.0.1:")
        port = int(gateway.url.rpartition(":")[2])
        context = ssl.create_default_context(cafile=str(next((tmp_path / "data" / "tls").glob("*.crt"))))
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=PATIENCE)
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200
        assert (
            fingerprint_der(connection.sock.getpeercert(binary_form=True)) == gateway.announced["fingerprint"]
        )
        connection.close()
        first = gateway.announced["fingerprint"]
    with running(tmp_path, files) as again:
        assert again.announced["fingerprint"] == first


def test_what_is_private_can_be_read_by_nobody_else(tmp_path, files):
    with running(tmp_path, files):
        data = tmp_path / "data"
        for path in [
            data / "agent-gate.db",
            data / "audit.key",
            data / "admin.sock",
            *(data / "tls").glob("*.key"),
        ]:
            assert path.stat().st_mode & 0o077 == 0, path


def test_it_starts_without_any_file_and_makes_a_token(tmp_path):
    process = nursery.ForkedCommand(
        [COMMAND, "serve", "--port", "0", "--insecure"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        announced = json.loads(process.stdout.readline())
        assert "peers" not in announced
        token = (tmp_path / "data" / "agent.token").read_text().strip()
        assert len(token) > 40
        assert (tmp_path / "data" / "agent.token").stat().st_mode & 0o077 == 0
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        process.stdout.close()


def pipe_that_is_read(path):
    """The writing end of a named pipe once somebody reads it; None before."""
    with contextlib.suppress(OSError):
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_NONBLOCK), "w")
    return None


def test_calls_go_on_while_a_reload_reads_its_files(tmp_path, files):
    with running(tmp_path, files, "--insecure") as gateway:
        config, text = tmp_path / "config.yaml", files["config.yaml"]
        config.unlink()
        os.mkfifo(config)
        reload = threading.Thread(target=gateway.admin.request, args=("POST", "/api/reload", {}))
        reload.start()
        with wait_until(lambda: pipe_that_is_read(config)) as slow:
            whole = tmp_path / "whole.yaml"
            whole.write_text(text)
            whole.replace(config)
            answered = gateway.call("read").status
            slow.write(text)
        reload.join()
        assert answered == 200


def end_of_silent_gateway(folder, redirections):
    """Run a gateway whose standard files the shell changes, until it serves and is told to stop; its line and its exit code."""
    words = f"exec {COMMAND} serve --insecure {redirections}"
    with subprocess.Popen(
        ["/bin/sh", "-c", words],
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            said = process.stdout.readline()
            admin = AdminClient(folder / "data" / "admin.sock")
            assert wait_until(lambda: process.poll() is not None or served(admin)) is True
            assert admin.get("/api/status")["pid"] == process.pid
        finally:
            process.terminate()
        return said, process.wait(PATIENCE)


def served(admin):
    with contextlib.suppress(GatewayError):
        return bool(admin.get("/api/status"))
    return False


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_a_gateway_started_with_closed_standard_files_serves_and_stops_in_order(tmp_path, files, closed):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert end_of_silent_gateway(tmp_path, closed)[1] == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(("full", "begins"), [("2>/dev/full", "{"), (">/dev/full", "")])
def test_a_gateway_starts_although_nobody_can_take_what_it_says(tmp_path, files, full, begins):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    said, code = end_of_silent_gateway(tmp_path, full)
    assert said[:1] == begins
    assert code in (0, 120)  # Python's own code where stderr cannot be flushed at the end


@contextlib.contextmanager
def limited(folder, files, limit):
    """A gateway under a limit of open files, as the shell's `ulimit` sets it."""
    for name, text in files.items():
        (folder / name).write_text(text)
    process = subprocess.Popen(
        ["/bin/sh", "-c", f"ulimit {limit} && exec {COMMAND} serve --insecure"],
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(PATIENCE)
        process.stdout.close()


def test_strangers_leave_the_operator_a_way_in_however_few_files_may_be_open(tmp_path, files):
    with limited(tmp_path, files, "-n 64") as (_, announced), contextlib.ExitStack() as stack:
        host, port = announced["url"].rpartition("/")[2].split(":")
        for _ in range(100):
            stranger = stack.enter_context(socket.create_connection((host, int(port)), PATIENCE))
            with contextlib.suppress(OSError):
                stranger.sendall(b"GET /health HTTP/1.1")
        with contextlib.suppress(ConnectionError):
            assert stranger.recv(1) == b""  # the last one does not fit any more
        assert AdminClient(Path(announced["socket"])).get("/api/status")["pid"] == announced["pid"]


def test_a_low_limit_of_open_files_is_raised_as_far_as_it_may_be(tmp_path, files):
    with limited(tmp_path, files, "-S -n 64") as (process, _):
        soft, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        assert soft > 64 or hard == 64


def first_line(folder, *arguments):
    """What the gateway announces when it is started in that folder with those arguments; it is stopped again."""
    process = nursery.ForkedCommand(
        [COMMAND, *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    line = process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE)
    return json.loads(line), said


@pytest.mark.parametrize("arguments", [["serve", "--insecure"], ["--insecure"]])
def test_the_config_yaml_of_the_folder_is_served_without_being_named(tmp_path, files, arguments):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    told, said = first_line(tmp_path, *arguments)
    assert told["socket"] == str(tmp_path / "data" / "admin.sock")
    assert '"source": "home"' in said


def test_the_start_says_what_a_shell_under_the_same_user_could_do(tmp_path):
    (tmp_path / "config.yaml").write_text("approvers: {passphrase: open-sesame-all}")
    locked = load(tmp_path / "config.yaml", env={}).settings
    assert "could answer its own questions" in limit_of_the_promise(Settings(), 1000)
    assert limit_of_the_promise(locked, 1000) == ""
    assert limit_of_the_promise(Settings(), 0) == ""
    _, said = first_line(tmp_path, "serve", "--insecure", "--port", "0", "--data", "data", "--no-config")
    assert ("could answer its own questions" in said) == (os.geteuid() != 0)


def test_no_config_leaves_the_config_yaml_of_the_folder_alone(tmp_path):
    (tmp_path / "config.yaml").write_text("somebody: else's")
    code, said = failed_start(tmp_path, "--insecure", "--port", "0")
    assert (code, "somebody" in said) == (8, True)
    told, _ = first_line(tmp_path, "serve", "--insecure", "--port", "0", "--data", "data", "--no-config")
    assert told["url"].startswith("http://127.0.0.1:")
    code, said = failed_start(tmp_path, "--config", "config.yaml", "--no-config")
    assert (code, "exclude each other" in said) == (2, True)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"config.yaml": "gatewya: {}"}, 'did you mean "gateway"'),
        ({"config.yaml": 'agent: {token: "${UNSET_TOKEN_OF_THE_TEST}"}'}, "UNSET_TOKEN_OF_THE_TEST"),
        ({"config.yaml": "services: {home: {url: 'http://x', tools: missing.yaml}}"}, "missing.yaml"),
        ({"permissions.yaml": "rules: [{pattern: x, action: maybe}]"}, "permissions.yaml:1"),
        ({"config.yaml": "agent: {token: a}\nagent: {token: b}"}, "config.yaml:2"),
    ],
)
def test_a_wrong_file_is_exit_8_and_names_the_place(tmp_path, files, change, says):
    for name, text in (files | change).items():
        (tmp_path / name).write_text(text)
    code, said = failed_start(tmp_path, "--config", "config.yaml", "--permissions", "permissions.yaml")
    assert code == 8
    assert says in said
    assert "Traceback" not in said


def test_a_named_file_that_does_not_exist_is_an_error(tmp_path):
    code, said = failed_start(tmp_path, "--config", "nowhere.yaml")
    assert code == 8
    assert "nowhere.yaml" in said


def test_a_taken_port_is_an_exit_that_names_it(tmp_path, files):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        code, said = failed_start(tmp_path, "--config", "config.yaml", "--port", str(port))
    assert code != 0
    assert f"127.0.0.1:{port}" in said


def test_a_page_off_loopback_has_the_certificate_and_its_usual_port_is_no_condition(tmp_path):
    config = "gateway: {port: 0, tls: {names: [127.0.0.2]}}\nadmin: {host: 127.0.0.2}\n"
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.2", 3100))
        taken.listen()
        with running(tmp_path, {"config.yaml": config}) as gateway:
            page = gateway.announced["admin"]
            assert page.startswith("https://127.0.0.2:")
            assert not page.endswith(":3100")
            trusting = ssl.create_default_context(cafile=tmp_path / "data" / "tls" / "ca.crt")
            assert urlopen(f"{page}/login", context=trusting).status == 200


def test_a_second_gateway_on_the_same_store_exits_naming_the_first(tmp_path, files):
    with running(tmp_path, files, "--insecure") as first:
        code, said = failed_start(tmp_path, "--config", "config.yaml", "--insecure")
        assert code != 0
        assert str(first.process.pid) in said
        assert first.call("read").status == 200


def test_a_certificate_that_is_none_is_named_and_the_doctor_mends_it(tmp_path, files):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    made = tmp_path / "data" / "tls" / "gateway.crt"
    made.parent.mkdir(parents=True, mode=0o700)
    made.write_text("")
    made.with_suffix(".key").write_text("")
    code, said = failed_start(tmp_path, "--config", "config.yaml")
    assert (code, "Traceback" in said) == (8, False)
    assert f"cannot use the gateway's own certificate {made}" in said
    doctor = nursery.run([COMMAND, "doctor", "--fix"], cwd=tmp_path, capture_output=True, text=True)
    assert f"fixed: {made} holds no certificate" in doctor.stdout
    with running(tmp_path, files) as gateway:
        assert gateway.announced["fingerprint"]


def test_a_client_on_stdio_that_reads_no_more_ends_the_gateway_in_good_order(tmp_path, files):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    command = [COMMAND, "serve", "--config", "config.yaml", "--stdio"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with nursery.ForkedCommand(command, cwd=tmp_path, env=env, bufsize=0, **pipes) as process:
        ping = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
        process.stdin.write(ping)
        assert b'"result"' in process.stdout.readline()
        process.stdout.close()

        def ended():
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(ping)
            return process.poll() is not None

        wait_until(ended)
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 0
    assert not (tmp_path / "data" / "admin.sock").exists()


CHATTY = """
import subprocess
from agent_gate import ServiceHandler

print("imported")

class Chatty(ServiceHandler):
    async def execute(self, tool, args):
        print("said by the plugin")
        subprocess.run(["echo", "said by its child"])
        return "done"
"""
CHATTY_CONFIG = """
agent: {token: token-of-the-first-agent-in-tests}
gateway: {port: 0}
admin: {port: 0}
plugins: {paths: [.]}
services: {p: {handler: python, handler_class: "chatty:Chatty", tools: {work: {}}}}
permissions: permissions.yaml
"""


def test_what_a_plugin_prints_goes_to_stderr_and_never_between_the_lines_of_stdout(tmp_path):
    (tmp_path / "chatty.py").write_text(CHATTY)
    (tmp_path / "config.yaml").write_text(CHATTY_CONFIG)
    (tmp_path / "permissions.yaml").write_text("rules: [{pattern: work, action: allow}]")
    call = (
        b'{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "work", "arguments": {}}}\n'
    )
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    first = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode() + b"\n"
    ready = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with nursery.ForkedCommand(
        [COMMAND, "serve", "--stdio"], cwd=tmp_path, env=env, bufsize=0, **pipes
    ) as process:
        process.stdin.write(first)
        answers = [json.loads(process.stdout.readline())]
        process.stdin.write(ready + call)
        answers.append(json.loads(process.stdout.readline()))
        rest, said = process.communicate()
    assert [answer["id"] for answer in answers] == [1, 2]
    assert "done" in str(answers[1]["result"]["content"])
    assert rest == b""
    for words in b"imported", b"said by the plugin", b"said by its child":
        assert words in said


def test_what_a_reload_warns_of_is_in_the_log_and_other_code_of_a_plugin_is_named(tmp_path):
    files = {
        "chatty.py": CHATTY,
        "config.yaml": CHATTY_CONFIG,
        "permissions.yaml": "rules: [{pattern: work, action: allow}]",
    }
    with running(tmp_path, files, "--insecure") as gateway:
        assert gateway.admin.get("/api/status")["warnings"] == []
        (tmp_path / "chatty.py").write_text(CHATTY.replace('"done"', '"done in another way"'))
        warning = f"{tmp_path / 'chatty.py'} was changed; it counts after a restart"
        wait_until(lambda: warning in gateway.stderr)
        assert gateway.admin.get("/api/status")["warnings"] == [warning]
        assert gateway.call("work").json["data"] == "done"
        (tmp_path / "empty.yaml").write_text("tools: {}\n")
        empty = "  q: {url: http://127.0.0.1:9, tools: empty.yaml}\n"
        services = CHATTY_CONFIG.replace("services: {p: ", f"services:\n{empty}  p: ").replace(
            "{}}}}", "{}}}"
        )
        (tmp_path / "config.yaml").write_text(services)
        wait_until(lambda: "no tools are defined, so q offers none" in gateway.stderr)
        assert gateway.stderr.count(warning) == 1


def test_a_host_on_stdio_that_lists_once_finds_the_tools_of_a_first_start(tmp_path):
    counting = {"command": sys.executable, "args": ["-I", "-S", str(COUNTING)]}
    servers = {"counting": counting, "gone": {"command": "/not/there"}}
    config = {"gateway": {"port": 0}, "admin": {"port": 0}, "agent": {"token": TOKEN}, "mcpServers": servers}
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    argv = [COMMAND, "serve", "--config", "config.yaml", "--stdio"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with nursery.ForkedCommand(argv, cwd=tmp_path, bufsize=0, **pipes) as process:
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}\n')
        listed = json.loads(process.stdout.readline())["result"]["tools"]
        process.stdin.close()
    assert "counting__count" in [tool["name"] for tool in listed]


def test_serving_stdio_as_an_agent_that_there_is_not_names_those_there_are(tmp_path, files):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    code, said = failed_start(tmp_path, "--config", "config.yaml", "--stdio", "--agent", "nobody")
    assert (code, "Traceback" in said) == (8, False)
    assert "There is no agent named nobody. Name one with --agent: default" in said


@pytest.mark.parametrize(
    "agents", [{}, {"agents": {"coder": {"token": TOKEN}}}], ids=["made-by-itself", "of-another-name"]
)
def test_serving_stdio_without_a_name_serves_the_only_agent(tmp_path, agents):
    config = {"gateway": {"port": 0}, "admin": {"port": 0}, **agents}
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    argv = [COMMAND, "serve", "--config", "config.yaml", "--stdio"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with nursery.ForkedCommand(argv, cwd=tmp_path, bufsize=0, **pipes) as process:
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}\n')
        assert json.loads(process.stdout.readline())["result"]["tools"] == []
        process.stdin.close()


def test_serving_stdio_without_a_name_is_refused_where_there_are_several_agents(tmp_path):
    agents = {name: {"token": name * 32} for name in ("a", "b")}
    config = {"gateway": {"port": 0}, "admin": {"port": 0}, "agents": agents}
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    code, said = failed_start(tmp_path, "--config", "config.yaml", "--stdio")
    assert code == 8
    assert "There is no agent named default. Name one with --agent: a, b" in said


def test_a_certificate_of_another_format_is_named(tmp_path, files):
    config = files["config.yaml"].replace("port: 0}", "port: 0, tls: {cert: c.der, key: c.der}}", 1)
    for name, text in (files | {"config.yaml": config}).items():
        (tmp_path / name).write_text(text)
    (tmp_path / "c.der").write_bytes(b"\x30\x82\xff")
    code, said = failed_start(tmp_path, "--config", "config.yaml")
    assert (code, "Traceback" in said) == (8, False)
    assert "c.der: there is no certificate in this PEM file" in said


def test_a_dead_gateways_socket_and_lock_are_taken_over(tmp_path, files):
    gateway = Gateway(tmp_path, "--insecure")
    with running(tmp_path, files, "--insecure") as first:
        first.kill()
        gateway.start()
        try:
            assert gateway.call("read").status == 200
        finally:
            gateway.stop()


def test_a_good_reload_takes_effect_and_a_bad_one_keeps_the_old_rules(tmp_path, files):
    with running(tmp_path, files, "--insecure") as gateway:
        assert gateway.call("write", wait=0).status == 202
        (tmp_path / "permissions.yaml").write_text('rules: [{pattern: "write", action: allow}]')
        gateway.process.send_signal(signal.SIGHUP)
        wait_until(lambda: gateway.call("write", {"n": 1}, wait=0).status == 200)
        (tmp_path / "permissions.yaml").write_text("rules: [{pattern: write, action: perhaps}]")
        fault = wait_until(lambda: gateway.admin.get("/api/status")["reload_fault"])
        assert "permissions.yaml:1" in fault
        status = nursery.run([COMMAND, "status"], cwd=tmp_path, capture_output=True, text=True)
        assert fault in status.stdout
        assert "permissions.yaml:1" in gateway.stderr
        assert gateway.call("write", {"n": 2}, wait=0).status == 200
        (tmp_path / "permissions.yaml").write_text('rules: [{pattern: "write", action: deny}]')
        wait_until(lambda: gateway.call("write", {"n": 3}, wait=0).status == 403)
        assert gateway.admin.get("/api/status")["reload_fault"] is None


def test_an_allowed_host_counts_after_a_reload_and_what_needs_a_restart_is_named(tmp_path, files):
    def asked():
        return gateway.request("GET", "/health", headers={"Host": "gate.example"}).status

    with running(tmp_path, files, "--insecure") as gateway:
        assert asked() == 403
        changed = files["config.yaml"].replace(
            "{id: t, port: 0}", "{id: t, port: 0, host: 127.0.0.2, allowed_hosts: [gate.example]}"
        )
        (tmp_path / "config.yaml").write_text(changed)
        reloaded = gateway.admin.request("POST", "/api/reload", {})
        assert reloaded["warnings"] == ["gateway.host was changed; it counts after a restart"]
        assert asked() == 200
        assert gateway.admin.get("/api/status")["url"] == gateway.url
        (tmp_path / "config.yaml").write_text(changed.replace("gate.example", '"https://gate.example"'))
        assert "https://gate.example" in wait_until(lambda: gateway.admin.get("/api/status")["reload_fault"])
        assert asked() == 200


@pytest.mark.parametrize("when", ["start", "reload"])
def test_a_call_runs_no_longer_than_the_general_limit(tmp_path, files, api, when):
    over = threading.Event()
    api.replies["/read"] = lambda handler, body: over.wait(PATIENCE) and (200, {}, b"{}")
    limited = files["config.yaml"] + "limits: {timeout: 0.2}\n"
    if when == "start":
        files["config.yaml"] = limited
    try:
        with running(tmp_path, files, "--insecure") as gateway:
            (tmp_path / "config.yaml").write_text(limited)
            assert gateway.admin.request("POST", "/api/reload", {})["warnings"] == []
            late = gateway.call("read")
            assert (late.status, late.json["error"]["code"]) == (504, "TIMEOUT")
            over.set()
    finally:
        over.set()


def test_a_renewed_certificate_is_taken_over_and_its_names_are_answered_to(tmp_path, files):
    def seen():
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=PATIENCE)
        try:
            connection.request("GET", "/health", headers={"Host": "gate.example"})
            shown = fingerprint_der(connection.sock.getpeercert(binary_form=True))
            return shown, connection.getresponse().status
        finally:
            connection.close()

    first, second = (
        ensure_certificate(tmp_path / name, names)
        for name, names in (("first", ["other.example"]), ("second", ["gate.example"]))
    )
    for one, name in ((first.cert, "my.crt"), (first.key, "my.key")):
        shutil.copy(one, tmp_path / name)
    config = files["config.yaml"].replace("port: 0}", "port: 0, tls: {cert: my.crt, key: my.key}}", 1)
    with running(tmp_path, files | {"config.yaml": config}) as gateway:
        port = int(gateway.url.rpartition(":")[2])
        assert seen() == (first.fingerprint, 403)
        (tmp_path / "my.crt").write_text("not yet whole")
        wait_until(lambda: "my.crt" in (gateway.admin.get("/api/status")["reload_fault"] or ""))
        assert seen() == (first.fingerprint, 403)
        shutil.copy(second.key, tmp_path / "my.key")
        shutil.copy(second.cert, tmp_path / "my.crt")
        wait_until(lambda: seen() == (second.fingerprint, 200))
        assert gateway.admin.get("/api/status")["fingerprint"] == second.fingerprint


def test_a_mistake_in_a_file_that_is_new_is_mended_there(tmp_path, files):
    more = (
        "{more: {url: 'http://127.0.0.1', tools: more.yaml, auth: {type: bearer, token: '${MORE_TOKEN}'}}, "
    )
    with running(tmp_path, files, "--insecure") as gateway:

        def fault():
            return gateway.admin.get("/api/status")["reload_fault"] or ""

        config = tmp_path / "config.yaml"
        config.write_text(config.read_text().replace("services: {", f"services: {more}"))
        wait_until(lambda: "MORE_TOKEN is not set" in fault())
        (tmp_path / ".env").write_text("MORE_TOKEN=token-of-more-tools\n")
        wait_until(lambda: "more.yaml does not exist" in fault())
        (tmp_path / "more.yaml").write_text("tols: {}\n")
        wait_until(lambda: "more.yaml:1:1: tols: unknown key" in fault())
        (tmp_path / "more.yaml").write_text("tools: {more_read: {request: {method: GET, path: /more}}}\n")
        wait_until(lambda: "more_read" in str(gateway.admin.get("/api/tools")))
        assert fault() == ""


def test_a_reload_whose_agent_gets_no_token_changes_nothing(tmp_path, files):
    with running(tmp_path, files, "--insecure") as gateway:
        (tmp_path / "data" / "agent.token").mkdir()
        config = files["config.yaml"].replace(f"agent: {{token: {TOKEN}}}\n", "")
        (tmp_path / "permissions.yaml").write_text('rules: [{pattern: "*", action: deny}]')
        (tmp_path / "config.yaml").write_text(config)
        with pytest.raises(GatewayError, match=r"agent\.token cannot be read or made"):
            gateway.admin.request("POST", "/api/reload", {})
        assert gateway.call("read").status == 200
        assert "agent.token" in gateway.admin.get("/api/status")["reload_fault"]


def add_server(files):
    """An MCP server named other, with one tool named look."""
    server = {"command": sys.executable, "args": ["server.py"]}
    files["config.yaml"] += f"servers: {{other: {json.dumps(server)}}}\n"
    files["server.py"] = (
        "from mcp.server.mcpserver import MCPServer\n"
        "server = MCPServer('other')\n"
        "server.tool(name='look')(lambda: 'seen')\n"
        "server.run()\n"
    )


def test_a_reload_whose_tool_has_the_name_of_another_servers_tool_changes_nothing(tmp_path, files):
    add_server(files)
    files["permissions.yaml"] = 'rules: [{pattern: "*", action: allow}]'
    with running(tmp_path, files, "--insecure") as gateway:
        wait_until(lambda: gateway.admin.get("/api/status")["tools"] == 3)
        more = TOOLS + "  other__look: {request: {method: GET, path: /look}}\n"
        (tmp_path / "tools.yaml").write_text(more)
        with pytest.raises(GatewayError, match="Two tools are named other__look"):
            gateway.admin.request("POST", "/api/reload", {})
        assert gateway.call("read").status == gateway.call("other__look").status == 200
        (tmp_path / "tools.yaml").write_text(more.replace("other__look", "look"))
        wait_until(lambda: gateway.admin.get("/api/status")["tools"] == 4)
        assert gateway.call("look").status == 200
        assert gateway.admin.get("/api/status")["reload_fault"] is None


def test_the_doctor_tells_rules_on_tools_that_a_running_server_does_not_have(tmp_path, files):
    add_server(files)
    files["permissions.yaml"] = (
        'rules: [{pattern: "other__look", action: allow},\n        {pattern: "other__lok", action: allow}]'
    )
    with running(tmp_path, files, "--insecure") as gateway:
        wait_until(lambda: gateway.admin.get("/api/status")["tools"] == 3)
        check = nursery.run([COMMAND, "check"], cwd=tmp_path, capture_output=True, text=True)
        assert check.returncode == 0, check.stdout
        doctor = nursery.run([COMMAND, "doctor"], cwd=tmp_path, capture_output=True, text=True)
        assert doctor.returncode == 1
        assert "'allow other__lok' matches no tool; tools are named like other__look" in doctor.stdout
        assert "fix: Edit permissions.yaml:2:9" in doctor.stdout
        assert doctor.stdout.count("matches no tool") == 1


def test_reloads_that_meet_are_done_one_after_the_other(tmp_path, files):
    slow_to_stop = """servers: {{slow: {{command: sh, args: ["-c", "exec sleep {seconds}"]}}}}\n"""
    config = files["config.yaml"]
    files["config.yaml"] = config + slow_to_stop.format(seconds=1000)
    with running(tmp_path, files, "--insecure") as gateway:
        (tmp_path / "config.yaml").write_text(config + slow_to_stop.format(seconds=2000))
        first = threading.Thread(target=gateway.admin.request, args=("POST", "/api/reload", {}))
        first.start()
        assert gateway.admin.get("/api/status")["sources"]
        # Whole at once, because the first may be reading it.
        (tmp_path / "next.yaml").write_text(config)
        (tmp_path / "next.yaml").rename(tmp_path / "config.yaml")
        gateway.admin.request("POST", "/api/reload", {})
        first.join()
        assert [source["key"] for source in gateway.admin.get("/api/status")["sources"]] == ["home"]
        assert gateway.call("read").status == 200
    assert "Traceback" not in gateway.stderr


def test_a_question_survives_the_kill_and_the_same_answer_then_works(tmp_path, files, api):
    gateway = Gateway(tmp_path, "--insecure")
    with running(tmp_path, files, "--insecure") as first:
        call = first.call("write", {"n": 7}, wait=0).json["call"]
        [before] = first.admin.get("/api/approvals")
        first.kill()
    gateway.start()
    try:
        [after] = gateway.admin.get("/api/approvals")
        assert (after["id"], after["expires_at"], after["arguments"]) == (
            before["id"],
            before["expires_at"],
            {"n": 7},
        )
        gateway.answer("approve")
        done = gateway.request("GET", f"/api/calls/{call}?wait=10")
        assert done.json["status"] == "executed"
        assert len(api.requests) == 1
        assert gateway.story(call) == ["pending", "approved", "dispatching", "completed"]
    finally:
        gateway.stop()


def test_a_start_that_fails_lets_the_calls_it_took_up_end(tmp_path, files, api):
    reached, release = threading.Event(), threading.Event()

    def slow(handler, body):
        reached.set()
        release.wait(PATIENCE)
        return 200, {}, b"{}"

    gateway = Gateway(tmp_path, "--insecure", env={"AGENT_GATE_FAILPOINT": "after_approve_commit"})
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    gateway.start()
    call = gateway.call("write", wait=0).json["call"]
    with pytest.raises(GatewayError):
        gateway.answer()
    gateway.stop()
    api.replies["/write"] = slow
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        (tmp_path / "config.yaml").write_text(
            files["config.yaml"].replace("admin: {port: 0", f"admin: {{port: {port}")
        )
        refused = Gateway(tmp_path, "--insecure")
        threading.Thread(target=lambda: reached.wait(PATIENCE) and release.set()).start()
        with pytest.raises(
            AssertionError,
            match=f"cannot listen on 127.0.0.1:{port}: Address already in use; stop what uses it, or choose another port: `admin.port` in the configuration, or --admin-port",
        ):
            refused.start()
    left = (tmp_path / "data" / "admin.sock").exists()
    with running(tmp_path, files, "--insecure") as again:
        assert again.story(call) == ["pending", "approved", "dispatching", "completed"]
    assert (len(api.requests), left) == (1, False)


def test_a_call_that_ran_when_the_gateway_died_is_unknown_and_is_not_run_again(tmp_path, files, api):
    arrived, killed = threading.Event(), threading.Event()

    def hang(handler, body):
        arrived.set()
        killed.wait(PATIENCE)

    api.replies["/read"] = hang
    gateway = Gateway(tmp_path, "--insecure")
    with running(tmp_path, files, "--insecure") as first:
        calling = threading.Thread(target=_ignore, args=(first,))
        calling.start()
        assert arrived.wait(PATIENCE)
        first.kill()
        killed.set()
        calling.join(PATIENCE)
    gateway.start()
    try:
        rows = gateway.admin.get("/api/calls?limit=10")["rows"]
        assert [row["state"] for row in rows] == ["unknown", "dispatching"]
        assert (
            gateway.request("GET", f"/api/calls/{rows[0]['call']}").json["error"]["code"] == "OUTCOME_UNKNOWN"
        )
        assert len(api.requests) == 1
    finally:
        gateway.stop()


def _ignore(gateway):
    try:
        gateway.call("read")
    except (OSError, http.client.HTTPException):
        return


def takes_no_more(gateway):
    try:
        return gateway.request("GET", "/ready", token=None).status == 503
    except (OSError, http.client.HTTPException):
        return True


def test_a_running_call_is_answered_before_the_gateway_stops(tmp_path, files, api):
    arrived = threading.Event()

    def slow(handler, body):
        arrived.set()
        wait_until(lambda: takes_no_more(gateway), "the beginning of the end")

    api.replies["/read"] = slow
    box = []
    with running(tmp_path, files, "--insecure") as gateway:
        calling = threading.Thread(target=lambda: box.append(gateway.call("read")))
        calling.start()
        assert arrived.wait(PATIENCE)
        assert gateway.stop() == 0
        calling.join(PATIENCE)
        assert box[0].status == 200


def test_a_result_and_a_stop_have_the_bounds_that_the_configuration_gives(tmp_path, files, api):
    arrived, over = threading.Event(), threading.Event()

    def slow(handler, body):
        arrived.set()
        over.wait(PATIENCE)

    api.replies["/read"] = (200, {}, b'"' + b"x" * 2048 + b'"')
    api.replies["/write"] = slow
    files["config.yaml"] += "limits: {max_result_bytes: 1024, drain: 0.2}\n"
    files["permissions.yaml"] = 'rules: [{pattern: "*", action: allow}]'
    try:
        with running(tmp_path, files, "--insecure") as gateway:
            large = gateway.call("read")
            assert (large.status >= 500, "larger than 1024 bytes" in large.json["error"]["message"]) == (
                True,
                True,
            )

            def call():
                with contextlib.suppress(OSError, http.client.HTTPException):
                    gateway.call("write")

            calling = threading.Thread(target=call)
            calling.start()
            assert arrived.wait(PATIENCE)
            gateway.process.send_signal(signal.SIGTERM)
            assert gateway.process.wait(PATIENCE) == 0
    finally:
        over.set()
    calling.join(PATIENCE)


def test_nothing_runs_while_the_record_cannot_be_written_and_it_heals_by_itself(tmp_path, files, api):
    with running(tmp_path, files, "--insecure") as gateway:
        blocker = sqlite3.connect(tmp_path / "data" / "agent-gate.db", isolation_level=None, timeout=10)
        blocker.execute("BEGIN IMMEDIATE")
        reply = gateway.call("read")
        assert (reply.status, reply.json["error"]["code"], reply.json["error"]["retryable"]) == (
            503,
            "DEPENDENCY_UNAVAILABLE",
            True,
        )
        assert api.requests == []
        blocker.execute("ROLLBACK")
        blocker.close()
        wait_until(lambda: gateway.call("read").status == 200)


def test_an_approval_nobody_answers_expires(tmp_path, files, api):
    files["config.yaml"] += "approval_timeout: 1\n"
    with running(tmp_path, files, "--insecure") as gateway:
        reply = gateway.call("write", {"n": 1}, wait=20)
        assert (reply.status, reply.json["error"]["code"], reply.json["error"]["message"]) == (
            504,
            "APPROVAL_TIMEOUT",
            "Approval timed out",
        )
        assert api.requests == []


def test_a_changed_tool_voids_what_was_approved_and_granted(tmp_path, files, api):
    with running(tmp_path, files, "--insecure") as gateway:
        call = gateway.call("write", {"n": 1}, wait=0).json["call"]
        gateway.answer("approve", lifetime="always")
        gateway.request("GET", f"/api/calls/{call}?wait=10")
        assert gateway.call("write", {"n": 1}, wait=0).status == 200
        (tmp_path / "tools.yaml").write_text(
            TOOLS.replace("write: {args:", "write: {description: now it does something else, args:")
        )
        wait_until(lambda: gateway.call("write", {"n": 1}, wait=0).status == 202)


@pytest.mark.parametrize(
    "changed",
    [
        TOOLS.replace("write: {args:", "write: {description: now it does something else, args:"),
        TOOLS.replace("path: /write", "path: /erase"),
    ],
    ids=["description", "request"],
)
def test_what_was_asked_about_does_not_run_when_its_tool_changed_before_the_answer(
    tmp_path, files, api, changed
):
    with running(tmp_path, files, "--insecure") as gateway:
        call = gateway.call("write", {"n": 1}, wait=0).json["call"]
        (tmp_path / "tools.yaml").write_text(
            changed + "  another: {request: {method: GET, path: /another}}\n"
        )
        wait_until(lambda: gateway.request("GET", "/api/tools/another").status == 200, "the reload")
        gateway.answer("approve")
        reply = gateway.request("GET", f"/api/calls/{call}?wait=10")
        assert (reply.status, reply.json["error"]["code"]) == (403, "FORBIDDEN")
        assert "definition changed" in reply.json["error"]["message"]
    assert api.requests == []


def test_what_was_asked_about_does_not_run_when_its_arguments_were_changed_in_the_store(tmp_path, files, api):
    with running(tmp_path, files, "--insecure") as gateway:
        call = gateway.call("write", {"n": 1}, wait=0).json["call"]
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "agent-gate.db")) as store, store:
        [(body,)] = store.execute("SELECT body FROM approvals")
        forged = body.replace('"arguments":{"n":1}', '"arguments":{"n":2}')
        assert forged != body
        store.execute("UPDATE approvals SET body = ?", (forged,))
    with running(tmp_path, files, "--insecure") as gateway:
        gateway.answer("approve")
        assert gateway.request("GET", f"/api/calls/{call}?wait=10").status == 403
    assert api.requests == []


def test_a_tool_that_sends_another_request_voids_what_was_granted(tmp_path, files, api):
    with running(tmp_path, files, "--insecure") as gateway:
        call = gateway.call("write", {"n": 1}, wait=0).json["call"]
        gateway.answer("approve", lifetime="always")
        gateway.request("GET", f"/api/calls/{call}?wait=10")
        assert gateway.call("write", {"n": 1}, wait=0).status == 200
        (tmp_path / "tools.yaml").write_text(TOOLS.replace("path: /write", "path: /erase"))
        wait_until(lambda: gateway.call("write", {"n": 1}, wait=0).status == 202)
        assert "/erase" not in [request["path"] for request in api.requests]


def test_the_examples_are_complete_and_load():
    root = Path(__file__).parents[2]
    done = nursery.run(
        [
            COMMAND,
            "check",
            "--config",
            str(root / "config.example.yaml"),
            "--permissions",
            str(root / "permissions.example.yaml"),
            "--json",
        ],
        env={
            "PATH": os.environ["PATH"],
            "AGENT_TOKEN": "x" * 40,
            "HA_TOKEN": "y",
            "PI_TOKEN": "p" * 40,
            "CODER_TOKEN": "c" * 40,
            "BOT_TOKEN": "b",
            "GUARDIAN_BOT_TOKEN": "g",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_a_flood_of_refusals_just_before_the_stop_is_on_record(tmp_path, files):
    limited = f"agent: {{token: {TOKEN}, rate_limit: {{max_requests_per_minute: 1}}}}"
    files["config.yaml"] = files["config.yaml"].replace(f"agent: {{token: {TOKEN}}}", limited)
    with running(tmp_path, files, "--insecure") as gateway:
        assert [gateway.call("read").status for _ in range(4)].count(429) == 3
        assert gateway.stop() == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "agent-gate.db")) as store:
        rows = store.execute("SELECT body FROM record WHERE state = 'refused'").fetchall()
    assert [json.loads(body)["count"] for (body,) in rows] == [3]


def test_the_address_for_phones_counts_at_once_and_that_of_the_page_after_a_restart(tmp_path, files):
    with running(tmp_path, files, "--insecure") as gateway:
        admin = next(line for line in files["config.yaml"].splitlines() if line.startswith("admin:"))
        for more, warnings in (
            ("public_url: https://gate.example", []),
            ("host: 127.0.0.2", ["admin.host was changed; it counts after a restart"]),
        ):
            changed = files["config.yaml"].replace(admin, f"{admin[:-1]}, {more}}}")
            (tmp_path / "config.yaml").write_text(changed)
            assert gateway.admin.request("POST", "/api/reload", {})["warnings"] == warnings


def test_a_gateway_has_few_parts_of_its_own():
    assert len({*RunningGateway.__annotations__, *vars(RunningGateway(Options()))}) <= 15
