"""At the terminal: answering by a key, following the record, completing names, and advice that helps when followed."""

import io
import json
import logging
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import click
import pytest
from tests import nursery
from tests.gateway import COMMAND, TOKEN, Api, Gateway, running
from tests.waiting import PATIENCE, wait_until
from tests.wsgate import files

from agent_gate.cli.commands.audit import whole
from agent_gate.cli.commands.serve import invite
from agent_gate.cli.commands.status import next_step
from agent_gate.cli.diagnosis import Here, cure
from agent_gate.cli.qrcode import code_for_a_phone
from agent_gate.cli.suggest import complete_approval, list_known_tools
from agent_gate.observe.log import configure
from agent_gate.observe.redact import Redactor


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with Api() as api, running(tmp_path_factory.mktemp("my gate"), files(api), "--insecure") as started:
        yield started


def agent_gate(
    folder: Path, *arguments: str, stdin: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    variables = {"PATH": f"{Path(COMMAND).parent}:{os.environ['PATH']}", "HOME": str(folder), **env}
    return nursery.run(
        [COMMAND, *arguments],
        cwd=folder,
        env=variables,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


class Terminal:
    """A command on a terminal of its own: what it shows, and keys for it."""

    def __init__(self, folder: Path, *command: str) -> None:
        self.ours, theirs = pty.openpty()
        env = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "xterm", "NO_COLOR": "1"}
        self.process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self.shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        os.close(self.ours)

    def until(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown:
            assert select.select([self.ours], [], [], max(0, deadline - time.monotonic()))[0], self.shown
            try:
                self.shown += os.read(self.ours, 65536).decode()
            except OSError:
                raise AssertionError(self.shown) from None

    def press(self, keys: str) -> None:
        self.shown = ""
        os.write(self.ours, keys.encode())


def ask(gateway: Gateway, name: str) -> Any:
    """A call that a person is asked about; its reply comes when it is over."""
    found: list[Any] = []
    thread = threading.Thread(
        target=lambda: found.append(gateway.call("turn_on", {"entity_id": name}, wait=30))
    )
    before = len(gateway.admin.get("/api/approvals"))
    thread.start()
    wait_until(lambda: len(gateway.admin.get("/api/approvals")) > before)
    return lambda: (thread.join(PATIENCE), found[0])[1]


def test_questions_are_answered_by_a_key_one_after_the_other(gateway: Gateway) -> None:
    first = ask(gateway, "light.first")
    with Terminal(gateway.folder, COMMAND, "approvals", "--watch") as terminal:
        terminal.until("a approve once")
        assert "light.first" in terminal.shown
        second = ask(gateway, "light.second")
        terminal.until("1 more waits")
        terminal.press("a")
        terminal.until("approved: turn_on(light.first). It ran.")
        terminal.until("light.second")
        assert first().status == 200
        terminal.until("a approve once")
        terminal.press("d")
        terminal.until("Nothing waits for you")
        assert second().status == 403
        third = ask(gateway, "light.third")
        terminal.until("light.third")
        gateway.answer("deny")
        terminal.until("denied: turn_on(light.third)")
        assert third().status == 403
        terminal.press("q")
        assert terminal.process.wait(PATIENCE) == 0


def test_a_key_that_is_pressed_twice_answers_one_question(gateway: Gateway) -> None:
    first, second = ask(gateway, "light.one"), ask(gateway, "light.two")
    with Terminal(gateway.folder, COMMAND, "approvals", "--watch") as terminal:
        terminal.until("a approve once")
        terminal.press("aaa")
        terminal.until("light.two")
        terminal.until("a approve once")
        assert first().status == 200
        [still] = gateway.admin.get("/api/approvals")
        assert still["signature"] == "turn_on(light.two)"
        terminal.press("d")
        terminal.until("denied: turn_on(light.two)")
        assert second().status == 403


def test_the_keys_are_those_of_the_page() -> None:
    from agent_gate.cli.watching import KEYS

    page = (Path(__file__).parents[2] / "ui" / "pages" / "approvals.js").read_text()
    found = re.findall(r'(\w): \{ does: \(\) => this\.byKey\("(\w+)", "(\w+)"\)', page)
    assert set(found) == {(k, body["verdict"], body.get("lifetime", "once")) for k, body in KEYS.items()}


def test_the_record_is_followed_and_starts_where_one_wants(gateway: Gateway) -> None:
    gateway.call("get_state", {"entity_id": "sensor.before"})
    command = [COMMAND, "audit", "tail", "--follow", "--since", "1h", "--agent", "first"]
    process = nursery.ForkedCommand(command, cwd=gateway.folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    shown = ""
    while "sensor.before" not in shown:
        shown = process.stdout.readline()
    gateway.call("get_state", {"entity_id": "sensor.after"})
    while "sensor.after" not in shown:
        shown = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0
    process.stdout.close()
    assert agent_gate(gateway.folder, "audit", "tail", "--since", "soon").returncode == 4


def test_what_happens_once_somebody_listens_is_told(gateway: Gateway) -> None:
    told = gateway.admin.events("/api/events")
    gateway.call("get_state", {"entity_id": "sensor.between"})
    assert next(kind for kind, _ in told) == "calls"


def test_a_row_is_shown_in_our_own_form() -> None:
    body = {
        "arguments": {"a": True, "of": {"b": [1, 2]}},
        "asked_at": 1_790_000_000.5,
        "nothing": None,
        "list": ["x", "y\x1b"],
        "rows": [{"c": 1}],
    }
    shown = whole({"at": 1.0, "state": "completed", "seq": 1, "chain": "main", "body": body})
    assert "{'" not in shown
    assert "None" not in shown
    assert "True" not in shown
    assert "\x1b" not in shown
    assert "        a: yes" in shown
    assert "    list: x, y\\u001b" in shown


def test_a_suggested_rule_is_written_and_in_force(tmp_path: Path) -> None:
    with Api() as api, running(tmp_path, files(api), "--insecure") as gateway:
        for _ in range(6):
            reply = ask(gateway, "light.often")
            gateway.answer("approve")
            assert reply().status == 200
        no = agent_gate(tmp_path, "policy", "suggest", "--apply", stdin="n\n")
        assert "Nothing was changed" in no.stderr
        done = agent_gate(tmp_path, "policy", "suggest", "--apply", "--yes")
        assert (done.returncode, "Written, and in force." in done.stdout) == (0, True), done.stderr
        assert gateway.call("turn_on", {"entity_id": "light.often"}).status == 200


# Completing


def test_open_questions_are_completed(gateway: Gateway) -> None:
    reply = ask(gateway, "light.completed")
    [question] = gateway.admin.get("/api/approvals")
    parent = click.Context(click.Command("approvals"))
    parent.params = {"admin_socket": gateway.admin.path, "config": None}
    context = click.Context(click.Command("approve"), parent=parent)
    [item] = complete_approval(context, click.Argument(["approval_id"]), question["id"][-8:-6])
    assert item.value == question["id"][-8:]
    assert item.help == "turn_on(light.completed)"
    gateway.answer("deny")
    reply()


def test_tools_are_completed_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Api() as api, running(tmp_path, files(api)) as gateway:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        assert gateway.url.startswith("https")
        names = {tool["name"] for tool in list_known_tools({"url": gateway.url, "token": TOKEN})}
        assert "get_state" in names


def test_a_missing_driver_for_postgresql_is_a_fault_with_the_command_that_installs_it(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("storage: {type: postgres, url: 'postgresql://127.0.0.1/x'}")
    cure = f"{sys.executable} -m pip install 'agent-gate[postgres]'"

    def without_it(command: str) -> str:
        code = f"import sys; sys.modules['psycopg'] = None\nfrom agent_gate.cli.main import main; main(['{command}'])"
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
        return f"{done.returncode} {done.stdout}{done.stderr}"

    said = without_it("check")
    assert said.startswith(
        "8 Fault: config.yaml:1:17: storage.type: the driver for PostgreSQL is not installed"
    )
    assert cure in said
    assert f"fix: {cure}\n" in without_it("doctor")
    assert cure in without_it("serve")


# Advice


def status(**members: Any) -> dict[str, Any]:
    usual = {
        "store_fault": "",
        "reload_fault": "",
        "pending_approvals": 0,
        "sources": [],
        "tools": 0,
        "url": "http://a",
    }
    return usual | members


def test_the_next_step_of_a_running_gateway_works_from_where_it_was_said(
    gateway: Gateway, tmp_path: Path
) -> None:
    config = gateway.folder / "config.yaml"
    for folder, options in ((gateway.folder, []), (tmp_path, ["--config", str(config)])):
        said = agent_gate(folder, "status", *options).stdout
        step = said.rpartition("Next: ")[2].strip()
        assert step.startswith("agent-gate connect")
        done = agent_gate(folder, *shlex.split(step)[1:])
        assert done.returncode == 0, done.stderr
        assert gateway.url in done.stdout


@pytest.mark.parametrize(
    ("state", "command"),
    [
        (status(pending_approvals=1), "approvals"),
        (status(sources=[{"state": "failed"}]), "doctor"),
        (status(tools=3), "connect"),
        (status(), "import"),
    ],
)
def test_every_next_step_runs_in_that_folder(gateway: Gateway, state: dict[str, Any], command: str) -> None:
    config = gateway.folder / "config.yaml"
    step = shlex.split(next_step(state, ["--config", str(config)], config))
    assert step[1] == command
    assert agent_gate(gateway.folder, *step[1:]).returncode in (0, 1)


def test_a_folder_without_a_configuration_is_told_to_write_one(tmp_path: Path) -> None:
    step = shlex.split(next_step(status()))
    assert agent_gate(tmp_path, *step[1:], "--behind", "nothing").returncode == 0


def test_the_doctors_advice_for_a_source_helps_when_it_is_followed(tmp_path: Path) -> None:
    with Api() as api:
        config = files(api)["config.yaml"]
        broken = config + "mcpServers:\n  my server: {command: /nonexistent/program}\n"
        with running(tmp_path, files(api) | {"config.yaml": broken}, "--insecure") as gateway:
            wait_until(lambda: "failed" in {s["state"] for s in gateway.admin.get("/api/status")["sources"]})
            said = agent_gate(tmp_path, "doctor").stdout
            assert "reconnect" not in said
            assert "correct `command` for `my server` in config.yaml" in said
            (tmp_path / "config.yaml").write_text(config)
            wait_until(lambda: "my server" not in agent_gate(tmp_path, "doctor").stdout)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("The program x was not found", "Install its program"),
        ("It answered 401", "Put the right token"),
        ("Connection refused", "Start it there"),
        ("It said something odd", "Look at its settings"),
    ],
)
def test_the_cure_fits_the_reason(reason: str, words: str) -> None:
    assert cure({"key": "a b", "reason": reason}, Here(Path("config.yaml"))).startswith(words)


# The console


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_levels_have_colours_on_a_terminal_and_texts_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen, root = Screen(), logging.getLogger("agent_gate")
    before = root.handlers[:], root.level, root.propagate
    try:
        configure("info", Redactor(), stream=screen)
        logging.getLogger("agent_gate.x").warning("look \x1b[31mred")
    finally:
        root.handlers[:], root.level, root.propagate = before
    line = screen.getvalue()
    assert "\x1b[33mwarning\x1b[0m" in line
    assert "\x1b[31m" not in line


def test_a_denied_call_and_a_source_that_goes_leave_one_line_each(tmp_path: Path) -> None:
    with Api() as api:
        config = files(api)["config.yaml"] + "mcpServers: {gone: {command: /nonexistent/program}}\n"
        with running(tmp_path, files(api) | {"config.yaml": config}, "--insecure") as gateway:
            assert gateway.call("unlock", {"entity_id": "lock.front"}).status == 403
            wait_until(lambda: "A call was denied" in gateway.stderr)
            for _ in range(3):
                gateway.admin.request("POST", "/api/sources/gone/connect")
                wait_until(lambda: gateway.admin.get("/api/status")["sources"])
            lines = [json.loads(line) for line in gateway.stderr.splitlines() if line.startswith("{")]
    [denied] = [line for line in lines if line["event"] == "A call was denied"]
    assert (denied["agent"], denied["tool"]) == ("first", "unlock")
    assert len([line for line in lines if line.get("source") == "gone"]) == 1


def test_the_link_is_the_last_line_whole_and_a_code_where_a_phone_reaches_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], gateway: Gateway
) -> None:
    wait_until(lambda: "/login#" in gateway.stderr)
    words = [line for line in gateway.stderr.splitlines() if not line.startswith("{")]
    assert re.fullmatch(r"https?://\S+/login#\S+", words[-1])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    invite("https://127.0.0.1:9/login#a")
    assert "█" not in capsys.readouterr().err
    invite("https://192.168.1.5:9/login#a")
    assert "█" in capsys.readouterr().err
    assert not code_for_a_phone("http://localhost:1/")


def test_a_fresh_link_is_a_code_too_where_a_phone_reaches_it(tmp_path: Path, gateway: Gateway) -> None:
    with Terminal(gateway.folder, COMMAND, "login") as terminal:
        terminal.until("/login#")
        assert terminal.process.wait(PATIENCE) == 0
        assert "█" not in terminal.shown
    with Api() as api:
        config = files(api)["config.yaml"].replace("admin: {", "admin: {public_url: 'https://gate.example', ")
        assert "gate.example" in config
        with (
            running(tmp_path, files(api) | {"config.yaml": config}, "--insecure") as reached,
            Terminal(tmp_path, COMMAND, "login") as terminal,
        ):
            wait_until(lambda: "https://gate.example/login#" in reached.stderr)
            terminal.until("https://gate.example/login#")
            terminal.until("█")


@pytest.mark.parametrize(("setting", "lines"), [("", 0), ("log: {requests: true}\n", 1)])
def test_a_call_that_went_well_is_one_line_where_that_is_wanted(
    tmp_path: Path, setting: str, lines: int
) -> None:
    with Api() as api:
        config = files(api)["config.yaml"] + setting
        with running(tmp_path, files(api) | {"config.yaml": config}, "--insecure") as gateway:
            assert gateway.call("get_state", {"entity_id": "sensor.logged"}).status == 200
            assert gateway.call("unlock", {"entity_id": "lock.front"}).status == 403
            wait_until(lambda: "A call was denied" in gateway.stderr)
        logged = [json.loads(line) for line in gateway.stderr.splitlines() if line.startswith("{")]
    found = [line for line in logged if line.get("tool") == "get_state"]
    assert [(line["level"], line["tool"], line["seconds"] > 0) for line in found] == [
        ("info", "get_state", True)
    ] * lines
