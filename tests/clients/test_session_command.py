"""`agent-gate session` as Claude Code's hooks run it, with real gateways in the background."""

import json
import os
import subprocess
import urllib.request
from pathlib import Path

import pytest
from tests import nursery
from tests.servers import command
from tests.waiting import PATIENCE, wait_until

from agent_gate.cli.sessions import Sessions, safe, serves

SESSION = [nursery.COMMAND, "session"]


@pytest.fixture
def place(tmp_path):
    """Folders of this test's own; whatever still runs at its end is stopped."""
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in ("SESSION_ID", "CLAUDE_ENV_FILE", "CLAUDE_PROJECT_DIR", "AGENT_TOKEN")
        and not name.startswith(nursery.AT_THE_START)
    }
    env |= {
        "XDG_RUNTIME_DIR": str(tmp_path / "r"),
        "XDG_STATE_HOME": str(tmp_path / "s"),
        "HOME": str(tmp_path),
    }
    yield tmp_path, env
    run(env, "stop", "--all")


def run(env, *args, given="", code=0, cwd=None):
    done = nursery.run(
        [*SESSION, *args],
        input=given,
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def hook(session, event="SessionStart"):
    return json.dumps({"session_id": session, "hook_event_name": event, "cwd": "/"})


def health(url):
    with urllib.request.urlopen(f"{url}/health", timeout=PATIENCE) as answer:
        return answer.status


def test_hooks_start_and_stop_a_gateway_and_tell_scripts_where_it_is(place):
    folder, env = place
    env |= {"CLAUDE_ENV_FILE": str(folder / "env"), "CLAUDE_PROJECT_DIR": str(folder)}
    run(env, "start", given=hook("5f0c-aa"))
    shell = f". {folder}/env; echo $AGENT_GATE_URL $TOOLSCRIPT_GATEWAY_URL $AGENT_GATE_SESSION $AGENT_TOKEN"
    url, old, session, token = subprocess.check_output(["sh", "-c", shell], text=True).split()
    assert url == old
    assert url.startswith("http://127.0.0.1:")
    assert session == "5f0c-aa"
    assert token not in (folder / "env").read_text()
    assert health(url) == 200
    pid_file = folder / "r" / "agent-gate" / "agent-gate-5f0c-aa.pid"
    pid = int(pid_file.read_text())
    assert pid_file.read_text() == str(pid)
    data = folder / "s" / "agent-gate" / "sessions" / "5f0c-aa"
    assert serves(pid, data)
    run(env, "stop", given=hook("5f0c-aa", "SessionEnd"))
    assert not pid_file.exists()
    wait_until(lambda: not serves(pid, data), "the gateway's end")


def test_a_shell_takes_over_what_a_start_prints(place):
    _, env = place
    said = run({**env, "SESSION_ID": "demo"}, "start")
    shell = 'eval "$1"; echo "$AGENT_GATE_URL $AGENT_GATE_SESSION"'
    url, session = subprocess.check_output(["sh", "-c", shell, "sh", said], env=env, text=True).split()
    assert session == "demo"
    assert health(url) == 200


def test_sessions_run_side_by_side_and_stop_one_by_one(place):
    _, env = place
    one = json.loads(run(env, "start", "--session", "one", "--json"))
    two = json.loads(run({**env, "SESSION_ID": "two"}, "start", "--json"))
    again = json.loads(run(env, "start", "--session", "one", "--json"))
    assert again == one
    assert {one["session"], two["session"]} == {"one", "two"}
    for key in ("url", "pid", "socket", "data"):
        assert one[key] != two[key]
    assert [row["session"] for row in json.loads(run(env, "status", "--json"))] == ["one", "two"]
    run(env, "stop", "--session", "one")
    assert [row["session"] for row in json.loads(run(env, "status", "--json"))] == ["two"]
    assert health(two["url"]) == 200


def test_the_projects_configuration_is_served(place):
    folder, env = place
    project = folder / "project"
    project.mkdir()
    (project / "agent-gate.yaml").write_text('agent: {token: "a-token-of-this-project"}\n')
    started = json.loads(
        run({**env, "CLAUDE_PROJECT_DIR": str(project)}, "start", "--session", "p", "--json")
    )
    request = urllib.request.Request(
        f"{started['url']}/status", headers={"Authorization": "Bearer a-token-of-this-project"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        assert answer.status == 200
    assert not (project / "data").exists()


def test_a_script_finds_every_tool_as_soon_as_the_session_has_started(place):
    folder, env = place
    [program, *args] = command("time")
    servers = {"time": {"command": program, "args": args}, "gone": {"command": "/not/there"}}
    config = {"agent": {"token": "a-token-of-this-project"}, "mcpServers": servers}
    (folder / "agent-gate.yaml").write_text(json.dumps(config))
    started = json.loads(run(env, "start", "--session", "s", "--json", cwd=folder))
    request = urllib.request.Request(
        f"{started['url']}/runtime/tools.ts", headers={"Authorization": "Bearer a-token-of-this-project"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        assert b"getCurrentTime" in answer.read()
    assert started["not_connected"] == ["gone"]


def test_files_of_gateways_that_are_gone_are_removed(place):
    folder, env = place
    started = json.loads(run(env, "start", "--session", "killed", "--json"))
    os.kill(started["pid"], 9)
    wait_until(lambda: not serves(started["pid"], Path(started["data"])), "the gateway's end")
    stale = folder / "r" / "agent-gate" / "agent-gate-killed.pid"
    assert stale.exists()
    assert run(env, "status") == "No session has a gateway.\n"
    assert not stale.exists()
    assert "No gateway runs" in run(env, "stop", "--session", "killed")


def test_a_number_that_now_belongs_to_another_program_is_left_alone(place):
    folder, env = place
    runs = folder / "r" / "agent-gate"
    runs.mkdir(parents=True)
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        (runs / "agent-gate-x.pid").write_text(str(bystander.pid))
        run(env, "stop", "--session", "x")
        assert bystander.poll() is None
        assert not (runs / "agent-gate-x.pid").exists()
    finally:
        bystander.kill()
        bystander.wait()


def test_a_number_that_now_belongs_to_another_sessions_gateway_is_left_alone(place):
    folder, env = place
    other = json.loads(run(env, "start", "--session", "other", "--json"))
    stale = folder / "r" / "agent-gate" / "agent-gate-x.pid"
    stale.write_text(str(other["pid"]))
    assert "No gateway runs" in run(env, "stop", "--session", "x")
    assert not stale.exists()
    assert health(other["url"]) == 200
    stale.write_text(str(other["pid"]))
    mine = json.loads(run(env, "start", "--session", "x", "--json"))
    assert mine["pid"] != other["pid"]


def test_a_gateway_that_cannot_start_is_reported_and_leaves_no_file(place):
    folder, env = place
    (folder / "bad.yaml").write_text("nonsense: true\n")
    done = nursery.run(
        [*SESSION, "start", "--session", "bad", "--config", str(folder / "bad.yaml")],
        env=env, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "nonsense" in done.stderr
    assert list((folder / "r" / "agent-gate").glob("*.pid")) == []


@pytest.mark.parametrize("ident", ["../../etc/passwd", "a/b", "x" * 200, "ü", ""])
def test_a_sessions_id_never_leaves_its_folder(ident):
    sessions = Sessions({"XDG_RUNTIME_DIR": "/r", "XDG_STATE_HOME": "/s"})
    session = sessions.session(ident)
    assert session.pid_file.parent == Path("/r/agent-gate")
    assert session.data.parent == Path("/s/agent-gate/sessions")
    assert len(session.pid_file.name) < 80


def test_different_ids_have_different_names():
    assert safe("a/b") != safe("a_b")
    assert safe("5f0c1d2e-aaaa-bbbb-cccc-0123456789ab") == "5f0c1d2e-aaaa-bbbb-cccc-0123456789ab"


@pytest.mark.parametrize("action", [["start", "--session", "x"], ["stop", "--session", "x"], ["status"]])
def test_a_folder_that_others_can_write_into_is_refused(place, action):
    folder, env = place
    runs, precious = folder / "r" / "agent-gate", folder / "precious"
    runs.mkdir(parents=True)
    runs.chmod(0o777)
    precious.write_text("mine")
    (runs / "agent-gate-x.pid").symlink_to(precious)
    done = nursery.run([*SESSION, *action], env=env, capture_output=True, text=True, timeout=PATIENCE)
    runs.chmod(0o700)
    assert done.returncode == 8
    assert f"{runs}: is not a folder that only you can write into" in done.stderr
    assert precious.read_text() == "mine"


def test_two_starts_of_one_session_at_once_share_one_gateway(place):
    _, env = place
    started = [
        nursery.ForkedCommand(
            [*SESSION, "start", "--session", "both", "--json"],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    told = [json.loads(process.communicate(timeout=PATIENCE)[0]) for process in started]
    assert told[0] == told[1]
    assert health(told[0]["url"]) == 200


def test_a_config_yaml_of_the_project_is_not_taken_for_the_gateways(place):
    folder, env = place
    (folder / "config.yaml").write_text("title: a web site")
    told = json.loads(run(env, "start", "--session", "site", "--json", given="", cwd=folder))
    assert health(told["url"]) == 200


def test_a_session_logs_each_request(place):
    _, env = place
    told = json.loads(run(env, "start", "--session", "one", "--json"))
    assert health(told["url"]) == 200
    log = Path(told["data"]) / "serve.log"

    def line():
        return [row for row in log.read_text().splitlines() if "Request ended" in row and "/health" in row]

    [row] = wait_until(line, "the line of the request")
    assert json.loads(row)["level"] == "info"
