"""Every session in `golden/` is replayed with the real command against a real gateway."""

import io
import os
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.sessions import Step, read, same
from tests.gateway import TOKEN, Api, Gateway, running
from tests.waiting import PATIENCE, wait_until
from tests.wsgate import files

from agent_gate.cli.main import main

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.txt"))


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    api = Api()
    api.replies["/states/sensor.gone"] = (404, {}, b"{}")
    folder = tmp_path_factory.mktemp("golden")
    (folder / "arguments.json").write_text('{"entity_id": "sensor.file"}')
    with running(folder, files(api), "--insecure") as started:
        yield started
    api.close()


def answer(gateway: Gateway, verdict: str) -> None:
    wait_until(lambda: gateway.admin.get("/api/approvals"))
    gateway.answer(verdict)


def answered_before(gateway: Gateway, verdict: str) -> None:
    """For a command that only looks: the answer is given, and its call has ended, before it starts."""
    answer(gateway, verdict)
    wait_until(lambda: not gateway.admin.get("/api/status")["running_calls"])


def words(command: str) -> list[list[str]]:
    """Leading `NAME=value` words one by one, then the arguments."""
    given = shlex.split(command)
    at = given.index("agent-gate")
    return [*([word] for word in given[:at]), given[at + 1 :]]


def play(step: Step, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run one command in this process, with a person at hand where the session has one."""
    *variables, arguments = words(step.command)
    for variable in variables:
        monkeypatch.setenv(*variable[0].split("=", 1))
    person = None
    if step.answer is not None and arguments[0] == "request":
        person = threading.Thread(target=answer, args=(gateway, step.answer))
        person.start()
    elif step.answer is not None:
        answered_before(gateway, step.answer)
    monkeypatch.setattr("sys.stdin", io.StringIO(step.stdin))
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    if person is not None:
        person.join(PATIENCE)
    return int(ended.value.code or 0)


@pytest.mark.parametrize("path", GOLDEN, ids=[path.stem for path in GOLDEN])
def test_a_session_goes_as_it_is_written(
    path: Path, gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.startswith("AGENT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AGENT_GATE_URL", gateway.url)
    monkeypatch.setenv("AGENT_TOKEN", TOKEN)
    monkeypatch.setenv("AGENT_GATE_SESSION", "golden")
    monkeypatch.chdir(gateway.folder)
    for approval in gateway.admin.get("/api/approvals"):
        gateway.admin.request("POST", f"/api/approvals/{approval['id']}", {"verdict": "deny"})
    if path.stem == "pending":
        main_quietly(["pending"])
        capfd.readouterr()
    for step in read(path):
        with monkeypatch.context() as patched:
            code = play(step, gateway, patched)
        out, err = capfd.readouterr()
        assert same(step.stdout, out), f"{step.command}\nstdout:\n{out}\nstderr:\n{err}"
        assert same(step.stderr, err), f"{step.command}\nstderr:\n{err}"
        assert code == step.code, step.command


def main_quietly(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
