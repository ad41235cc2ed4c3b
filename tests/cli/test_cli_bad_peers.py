"""The command against peers that are no gateway, or a bad one: it ends in time, with its code, and says what is known."""

import json
import os
import pty
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests import nursery
from tests.gateway import COMMAND, TOKEN, Api, Gateway, running
from tests.waiting import PATIENCE, wait_until
from tests.wsgate import files
from websockets.server import ServerProtocol
from websockets.sync.server import ServerConnection, serve

from agent_gate.cli.output import cleaned
from agent_gate.cli.toolhelp import tool_help

GIVEN = 2.0
NOT_KNOWN = "Whether the gateway has the call is not known"
ESCAPES = "\x1b]0;owned\x07\x9b2J\u202e"
CALL = ("request", "get_state", 'entity_id:="sensor.a"')
Talk = Callable[[ServerConnection, dict[str, Any]], None]


@contextmanager
def tcp_peer(behave: Callable[[socket.socket], None]) -> Iterator[int]:
    """A listener that does the same to everybody who connects."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                one, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=behave, args=(one,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


@contextmanager
def websocket_peer(talk: Talk) -> Iterator[int]:
    """A WebSocket server that opens properly and then behaves as `talk` does on each request."""

    def handle(connection: ServerConnection) -> None:
        for text in connection:
            message = json.loads(text)
            if message.get("id") is not None:
                talk(connection, message)

    with serve(handle, "127.0.0.1", 0, max_size=1 << 20) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.socket.getsockname()[1]
        server.shutdown()
        thread.join()


def ask(port: int, *arguments: str, scheme: str = "ws", timeout: str = str(GIVEN), **env: str) -> Any:
    """Run the command; what it needs beyond its own deadline is the start of Python and a goodbye."""
    variables = {"PATH": os.environ["PATH"], "HOME": "/", "AGENT_TOKEN": TOKEN, **env}
    done = nursery.run(
        [COMMAND, *arguments, "--url", f"{scheme}://127.0.0.1:{port}", "--timeout", timeout],
        cwd="/",
        env=variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert "Traceback" not in done.stderr
    return done


def silent(one: socket.socket) -> None:
    with one:
        while one.recv(65536):
            pass


def tool(**schema: Any) -> dict[str, Any]:
    return {"name": "get_state", "description": "", "input_schema": schema, "args": {}}


def send(connection: ServerConnection, message: dict[str, Any], **members: Any) -> None:
    connection.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], **members}))


def listing(connection: ServerConnection, message: dict[str, Any]) -> bool:
    """Answer the list of tools honestly; whether it was that."""
    if message["method"] != "list_tools":
        return False
    send(connection, message, result={"tools": [tool(properties={"days": {"type": "integer"}})]})
    return True


@pytest.mark.parametrize("scheme", ["ws", "wss"])
@pytest.mark.parametrize("command", [CALL, ("tools",), ("pending",), ("browse",)])
def test_silence_after_the_accept_is_no_connection(scheme: str, command: tuple[str, ...]) -> None:
    with tcp_peer(silent) as port:
        done = ask(port, *command, scheme=scheme)
    assert done.returncode == 3
    assert done.stderr == (
        f"Error: Connection failed: {scheme}://127.0.0.1:{port}/ did not answer within {GIVEN:g} s\n"
    )


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"\x00" * 4096,
        b"HTTP/1.1 502 " + b"x" * 100_000,
    ],
)
@pytest.mark.parametrize("scheme", ["ws", "wss"])
def test_what_is_no_gateway_is_no_connection(scheme: str, said: bytes) -> None:
    def behave(one: socket.socket) -> None:
        one.recv(65536)
        one.sendall(said)
        one.close()

    with tcp_peer(behave) as port:
        done = ask(port, *CALL, scheme=scheme)
    assert done.returncode == 3
    assert done.stderr.startswith("Error: Connection failed: ")


@pytest.mark.parametrize("command", [("tools",), ("pending",), ("browse",), ("request", "get_state", "a=b")])
def test_silence_after_the_handshake_ends_with_the_time(command: tuple[str, ...]) -> None:
    with websocket_peer(lambda _connection, _message: None) as port:
        done = ask(port, *command)
    assert done.returncode == 2
    assert done.stderr == f"Error: Timeout: No answer within {GIVEN:g} s\n"


def test_a_call_that_nobody_confirmed_is_not_said_to_go_on() -> None:
    with websocket_peer(lambda _connection, _message: None) as port:
        done = ask(port, *CALL)
    assert done.returncode == 2
    assert NOT_KNOWN in done.stderr
    assert "goes on" not in done.stderr


def test_a_call_that_was_confirmed_is_said_to_go_on() -> None:
    def talk(connection: ServerConnection, message: dict[str, Any]) -> None:
        params = {"id": message["id"], "request_id": "c1"}
        connection.send(json.dumps({"jsonrpc": "2.0", "method": "accepted", "params": params}))

    with websocket_peer(talk) as port:
        done = ask(port, *CALL)
    assert done.returncode == 2
    assert "The call goes on; its result is kept: agent-gate pending" in done.stderr


def test_a_close_in_the_middle_of_a_reply_ends_with_the_time() -> None:
    def behave(one: socket.socket) -> None:
        protocol = ServerProtocol()
        while data := one.recv(65536):
            protocol.receive_data(data)
            for event in protocol.events_received():
                if type(event).__name__ == "Request":
                    protocol.send_response(protocol.accept(event))
                    one.sendall(b"".join(protocol.data_to_send()))
                else:
                    one.sendall(b'\x81\x7e\x10\x00{"jsonrpc": "2.0"')
                    one.close()
                    return

    with tcp_peer(behave) as port:
        done = ask(port, *CALL)
    assert done.returncode == 2
    assert NOT_KNOWN in done.stderr


@pytest.mark.parametrize("junk", ["not JSON", "[]", '{"id": {}}', "[" * 100_000, '"', '{"error": 5}'])
def test_a_peer_that_sends_anything_but_messages_is_left_at_once(junk: str) -> None:
    with websocket_peer(lambda connection, _message: connection.send(junk)) as port:
        listed, called = ask(port, "tools", timeout="20"), ask(port, *CALL, timeout="20")
    assert (listed.returncode, called.returncode) == (3, 9)
    assert "this is no gateway" in listed.stderr
    assert "the call may have run" in called.stderr


@pytest.mark.parametrize(
    "result", [None, 5, [], {}, {"tools": 5}, {"tools": [5]}, {"tools": [{"name": "a"}]}]
)
def test_a_list_that_is_none_is_a_fault_of_the_gateway(result: Any) -> None:
    with websocket_peer(lambda connection, message: send(connection, message, result=result)) as port:
        done = ask(port, "tools")
    assert done.returncode == 7
    assert "cannot be read" in done.stderr


@pytest.mark.parametrize("result", [5, [], "text", {"request_id": 5}])
def test_a_reply_that_is_none_leaves_the_outcome_unknown(result: Any) -> None:
    with websocket_peer(lambda connection, message: send(connection, message, result=result)) as port:
        done = ask(port, *CALL)
    assert done.returncode == 9
    assert "the call may have run" in done.stderr


@pytest.mark.parametrize(
    "data", [{"code": "RATE_LIMITED", "retry_after": "soon", "details": 5}, {"code": []}]
)
def test_an_error_with_odd_members_is_still_an_error(data: Any) -> None:
    error = {"code": -32006, "message": "no", "data": data}
    with websocket_peer(lambda connection, message: send(connection, message, error=error)) as port:
        done = ask(port, *CALL)
    assert done.returncode == 6
    assert done.stderr == "Error: Rate limited (-32006): no\n"


def test_a_request_that_is_too_large_is_sent_once_and_nothing_untrue_is_said(tmp_path: Path) -> None:
    big = tmp_path / "big.json"
    big.write_text(json.dumps({"entity_id": "x" * 2_000_000}))
    with Api() as api, running(tmp_path, files(api), "--insecure") as gateway:
        port = int(gateway.url.rpartition(":")[2])
        done = ask(port, "request", "get_state", f"@{big}", timeout="20")
    assert done.returncode == 4
    assert "bytes, which is more than one message may have. Nothing was called" in done.stderr
    assert "kept" not in done.stderr


def test_a_result_that_was_printed_stands_though_its_acknowledgement_is_not_taken() -> None:
    def talk(connection: ServerConnection, message: dict[str, Any]) -> None:
        if message["method"] == "tool_request":
            send(connection, message, result={"status": "executed", "data": {"a": 1}, "request_id": "c1"})

    with websocket_peer(talk) as port:
        done = ask(port, *CALL)
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, {"a": 1}, "")


@pytest.mark.parametrize(
    "url", ["ws://[::1", "ws://host:port", "ws://h:99999", "ws://", "ftp://h", "://", "ws://a\nb", "ws://ü"]
)
def test_an_address_that_is_none_is_refused(url: str, tmp_path: Path) -> None:
    for command in (["tools", "--url", url], ["bridge", url]):
        env = {"PATH": os.environ["PATH"], "AGENT_TOKEN": TOKEN}
        done = nursery.run([COMMAND, *command], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert (done.returncode, "Traceback" in done.stderr) == (8, False), (command, done.stderr)


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "0", "-1", "1e300"])
def test_a_time_that_no_clock_reaches_is_refused(seconds: str) -> None:
    done = run_timeout(seconds)
    assert done.returncode == 4
    assert done.stderr.startswith("Error: Invalid argument format: ")


def run_timeout(seconds: str) -> subprocess.CompletedProcess[str]:
    command = [COMMAND, "tools", "--url", "ws://127.0.0.1:1", "--timeout", seconds]
    return nursery.run(command, env={"AGENT_TOKEN": TOKEN}, capture_output=True, text=True, timeout=PATIENCE)


def test_a_name_that_is_too_long_for_a_host_is_no_connection(tmp_path: Path) -> None:
    command = [COMMAND, "tools", "--url", f"ws://{'a' * 70}.localhost:1"]
    done = nursery.run(command, env={"AGENT_TOKEN": TOKEN}, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)


# What is printed


def test_no_text_of_a_tool_reaches_the_terminal_as_it_is() -> None:
    evil = {
        "name": f"get{ESCAPES}",
        "description": ESCAPES,
        "args": {f"a{ESCAPES}": {"validate": ESCAPES}},
        "input_schema": {
            "required": [f"a{ESCAPES}"],
            "properties": {
                f"a{ESCAPES}": {
                    "type": [f"string{ESCAPES}"],
                    "description": ESCAPES,
                    "enum": [ESCAPES],
                    "default": ESCAPES,
                },
                f"b c{ESCAPES}": {"default": [ESCAPES]},
            },
        },
    }
    shown = tool_help(evil)
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert "\u202e" not in shown


@pytest.mark.parametrize(
    "properties", [[], 5, {"a": 5}, {"a": {"type": 5, "enum": 5, "anyOf": 5, "examples": 5}}]
)
def test_help_survives_any_schema(properties: Any) -> None:
    assert "agent-gate request get_state" in tool_help(tool(properties=properties, required=5))


def test_only_the_module_for_output_prints() -> None:
    """Whatever prints words cleans them; so nothing else prints at all."""
    folder = Path(__file__).parents[2] / "src" / "agent_gate" / "cli"
    own_words = {"output.py", "main.py", "completion.py"}
    printing = {
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if path.name not in own_words
        and ("click.echo(" in path.read_text() or "    print(" in path.read_text())
    }
    assert printing == set()


def test_colours_of_ours_stay_and_those_of_others_do_not() -> None:
    assert cleaned("\x1b[32mready\x1b[0m") == "\x1b[32mready\x1b[0m"
    assert cleaned("\x1b[8mhidden\x1b[0m") == "\\u001b[8mhidden\\u001b[0m"


def on_a_terminal(command: list[str], **env: str) -> str:
    """What the command writes to standard output where that is a terminal."""
    ours, theirs = pty.openpty()
    variables = {"PATH": os.environ["PATH"], "AGENT_TOKEN": TOKEN, **env}
    process = nursery.ForkedCommand(command, env=variables, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # how a terminal says that nobody writes any more
        pass
    process.wait(PATIENCE)
    os.close(ours)
    return shown.decode()


def test_a_result_on_a_terminal_moves_no_cursor_and_means_the_same() -> None:
    def talk(connection: ServerConnection, message: dict[str, Any]) -> None:
        if message["method"] == "ack_results":
            send(connection, message, result={"acknowledged": 1})
            return
        text = json.dumps({"data": {"a": f"é{ESCAPES}"}, "request_id": "c1"}, ensure_ascii=False)
        connection.send(f'{{"jsonrpc": "2.0", "id": {message["id"]}, "result": {text}}}')

    with websocket_peer(talk) as port:
        shown = on_a_terminal([COMMAND, *CALL, "--url", f"ws://127.0.0.1:{port}"])
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert "é" in shown
    assert json.loads(shown) == {"a": f"é{ESCAPES}"}


def test_a_token_among_the_arguments_is_warned_about() -> None:
    with websocket_peer(listing_only) as port:
        named = ask(port, "tools", "--token", TOKEN)
        kept = ask(port, "tools")
    assert (named.returncode, kept.returncode) == (0, 0)
    assert "AGENT_TOKEN" in named.stderr
    assert TOKEN not in named.stderr
    assert kept.stderr == ""


def listing_only(connection: ServerConnection, message: dict[str, Any]) -> None:
    listing(connection, message)


# Leaving


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with Api() as api, running(tmp_path_factory.mktemp("leaving"), files(api), "--insecure") as started:
        started.api = api
        yield started


def started_request(gateway: Gateway, *arguments: str) -> subprocess.Popen[str]:
    variables = {"PATH": os.environ["PATH"], "AGENT_TOKEN": TOKEN, "AGENT_GATE_URL": gateway.url}
    return nursery.ForkedCommand(
        [COMMAND, "request", *arguments],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_an_interrupt_withdraws_the_question_and_says_so(gateway: Gateway) -> None:
    process = started_request(gateway, "turn_on", "entity_id=light.withdrawn")
    wait_until(lambda: gateway.admin.get("/api/approvals"))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, "")
    assert err.startswith("Withdrawn")
    assert gateway.admin.get("/api/approvals") == []


def test_an_interrupt_of_a_call_that_runs_says_what_became_of_it(gateway: Gateway) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def held(_handler: Any, _body: bytes) -> None:
        reached.set()
        go_on.wait(PATIENCE)

    gateway.api.replies["/states/sensor.slow"] = held
    process = started_request(gateway, "get_state", "entity_id=sensor.slow")
    assert reached.wait(PATIENCE)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    go_on.set()
    assert (process.returncode, out) == (130, "")
    assert "may" in err


def test_a_second_interrupt_leaves_at_once_and_claims_nothing() -> None:
    asked = threading.Semaphore(0)

    def talk(_connection: ServerConnection, _message: dict[str, Any]) -> None:
        asked.release()

    with websocket_peer(talk) as port:
        command = [COMMAND, *CALL, "--url", f"ws://127.0.0.1:{port}"]
        process = nursery.ForkedCommand(
            command, env={"AGENT_TOKEN": TOKEN}, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2):  # the call, then its withdrawal, which this peer never answers
            assert asked.acquire(timeout=PATIENCE)
            process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Left at once, before the gateway said what became of it" in err


def test_a_withdrawal_that_is_not_answered_claims_nothing() -> None:
    asked = threading.Event()
    with websocket_peer(lambda _connection, _message: asked.set()) as port:
        command = [COMMAND, *CALL, "--url", f"ws://127.0.0.1:{port}"]
        process = nursery.ForkedCommand(
            command, env={"AGENT_TOKEN": TOKEN}, stderr=subprocess.PIPE, text=True
        )
        assert asked.wait(PATIENCE)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "The gateway did not say what became of the call" in err


def test_a_detached_call_prints_its_id_and_its_result_comes_later(gateway: Gateway) -> None:
    process = started_request(gateway, "turn_on", "entity_id=light.detached", "--detach")
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")
    (question,) = gateway.admin.get("/api/approvals")
    assert question["call"] == out.strip()
    gateway.answer("approve")

    def result() -> Any:
        variables = {"PATH": os.environ["PATH"], "AGENT_TOKEN": TOKEN, "AGENT_GATE_URL": gateway.url}
        done = nursery.run(
            [COMMAND, "pending"], env=variables, capture_output=True, text=True, timeout=PATIENCE
        )
        return [row for row in json.loads(done.stdout) if row["request_id"] == out.strip()]

    assert wait_until(result)


def test_a_detached_call_that_is_denied_is_an_error(gateway: Gateway) -> None:
    process = started_request(gateway, "unlock", "entity_id=lock.front", "--detach")
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (1, "")
    assert "Denied by policy" in err


async def test_the_python_client_ends_within_its_patience() -> None:
    from agent_gate import Client
    from agent_gate.errors import CallTimeout

    with websocket_peer(lambda _connection, _message: None) as port:
        async with Client(f"ws://127.0.0.1:{port}", TOKEN, patience=0.5) as client:
            with pytest.raises(CallTimeout):
                await client.tools()
