"""The command itself: what it imports, what it means without a command, and where JSON goes."""

import json
import os
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from tests import nursery
from tests.gateway import COMMAND, TOKEN, Api, Gateway, running
from tests.waiting import PATIENCE, wait_until
from tests.wsgate import files

from agent_gate.cli import commands
from agent_gate.cli import main as cli
from agent_gate.cli.agent import SEEN_BY_ALL, own_address, render
from agent_gate.cli.arguments import coerced, parse_arguments, plain_names, types_of
from agent_gate.cli.client_tokens import how_to_set_token
from agent_gate.cli.commands.bridge import read_token
from agent_gate.cli.commands.sources import listing
from agent_gate.cli.diagnosis import Here, diagnose
from agent_gate.cli.operator import AdminClient, OperatorGroup
from agent_gate.cli.output import one_line, paint, table
from agent_gate.cli.toolhelp import tool_help
from agent_gate.core.tool import Definition
from agent_gate.errors import InvalidArgs, Unreachable, UpstreamError
from agent_gate.sources.pins import diff

HEAVY = (
    "asyncio",
    "ssl",
    "msgspec",
    "websockets",
    "cryptography",
    "uvloop",
    "ruamel",
    "agent_gate.app",
    "agent_gate.client",
)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    api = Api()
    with running(tmp_path_factory.mktemp("main"), files(api)) as started:
        yield started
    api.close()


def agent_gate(*arguments: str, cwd: Path, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    variables = {"PATH": os.environ["PATH"], "HOME": str(cwd), **env}
    return nursery.run(
        [COMMAND, *arguments],
        cwd=cwd,
        env=variables,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_the_gateway_of_this_folder_need_not_be_named(gateway: Gateway, tmp_path: Path) -> None:
    done = agent_gate("request", "get_state", "entity_id=a", cwd=gateway.folder, AGENT_TOKEN=TOKEN)
    assert done.returncode == 0, done.stderr
    elsewhere = agent_gate("request", "get_state", "entity_id=a", cwd=tmp_path, AGENT_TOKEN=TOKEN)
    assert (elsewhere.returncode, elsewhere.stderr.splitlines()) == (
        3,
        [
            "Error: Connection failed: no gateway is named",
            "Say where it is with --url or AGENT_GATE_URL",
        ],
    )


def test_who_forgot_the_token_reads_what_to_type(gateway: Gateway) -> None:
    made = gateway.folder / "data" / "agent.token"
    made.write_text(f"{TOKEN}\n")
    said = agent_gate("tools", cwd=gateway.folder).stderr
    made.unlink()
    assert said.endswith("Give it with AGENT_TOKEN, as after `export AGENT_TOKEN=$(cat data/agent.token)`\n")


@pytest.mark.parametrize(
    ("file", "text"), [("data/agent.token", "the-token\n"), (".env", "AGENT_TOKEN=the-token\n")]
)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_token_at_hand_is_set_by_what_is_advised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, elsewhere: bool
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / file).write_text(text)
    monkeypatch.chdir("/" if elsewhere else tmp_path)
    typed = f'{how_to_set_token(tmp_path if elsewhere else Path())}; echo "$AGENT_TOKEN"'
    assert subprocess.run(["sh", "-c", typed], capture_output=True, text=True).stdout == "the-token\n"


def test_the_gateway_of_another_user_has_to_be_named(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(gateway.folder)
    assert own_address() == gateway.url
    other = os.geteuid() + 1
    monkeypatch.setattr("os.geteuid", lambda: other)
    assert own_address() is None


@pytest.mark.parametrize(
    ("given", "stdin", "said"),
    [
        (b"entity_id=\xff", subprocess.DEVNULL, "'entity_id' is not UTF-8"),
        (b'entity_id:="\xff"', subprocess.DEVNULL, "'entity_id:' is not UTF-8"),
        (b"-", subprocess.DEVNULL, "standard input is not JSON"),
        (b"-", None, "standard input is not JSON"),
        (b"@text.json", subprocess.DEVNULL, "@text.json is not JSON"),
        (b"@latin.json", subprocess.DEVNULL, "@latin.json is not UTF-8"),
    ],
)
def test_what_the_shell_hands_over_is_at_worst_an_invalid_argument(
    gateway: Gateway, tmp_path: Path, given: bytes, stdin: int | None, said: str
) -> None:
    (tmp_path / "text.json").write_text("entity_id=a")
    (tmp_path / "latin.json").write_bytes(b'{"entity_id": "\xe4"}')
    env = {"PATH": os.environ["PATH"], "AGENT_GATE_URL": gateway.url, "AGENT_TOKEN": TOKEN}
    command = [COMMAND.encode(), b"request", b"get_state", given]
    if stdin is None:
        command = [b"sh", b"-c", b'exec "$@" <&-', b"sh", *command]
    done = subprocess.run(command, cwd=tmp_path, env=env, stdin=stdin, capture_output=True, text=True)
    assert done.stderr.startswith(f"Error: Invalid argument format: {said}")
    assert (done.returncode, done.stdout) == (4, "")


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    marked = tmp_path / "marked.json"
    marked.write_text('{"entity_id": "sensor.a"}', encoding="utf-8-sig")
    assert parse_arguments([f"@{marked}"]) == {"entity_id": "sensor.a"}


def test_a_fault_of_ours_never_ends_in_the_code_of_a_denial(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(cli.cli, "main", broken)
    with pytest.raises(SystemExit) as end:
        cli.main(["tools"])
    assert end.value.code == 7
    assert "RuntimeError: a mistake" in capsys.readouterr().err


def test_help_lists_every_command_and_imports_none(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from agent_gate.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as end: assert not end.code\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"
    for name in ("request", "tools", "pending", "serve", "approvals", "completion"):
        assert f"\n  {name} " in done.stdout
    assert (
        done.stdout.index("For agents") < done.stdout.index("For operators") < done.stdout.index("To set up")
    )


def test_help_takes_less_than_150_milliseconds_of_a_core(tmp_path: Path) -> None:
    taken = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert agent_gate("--help", cwd=tmp_path).returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(taken) < 0.15, taken


def test_every_command_is_listed_and_has_help_of_its_own() -> None:
    modules = {path.stem for path in Path(commands.__file__).parent.glob("*.py") if path.stem != "__init__"}
    context = cli.cli.make_context("agent-gate", ["--help"], resilient_parsing=True)
    names = cli.cli.list_commands(context)
    assert {cli.module_of(name).rpartition(".")[2] for name in names} == modules
    for name in names:
        command = cli.cli.get_command(context, name)
        assert command is not None
        assert command.help, name


def options_of(command: click.Command) -> set[str]:
    """What may stand behind a command, or behind each of its verbs."""
    if isinstance(command, click.Group) and not isinstance(command, OperatorGroup):
        return set.intersection(*map(options_of, command.commands.values()))
    return {name for option in command.params for name in option.opts}


def test_every_command_that_asks_a_gateway_takes_the_same_options() -> None:
    context = cli.cli.make_context("agent-gate", ["--help"], resilient_parsing=True)
    taken = {}
    for name in cli.GROUPS["For operators"].keys() - {"serve", "backup", "host", "join"}:
        command = cli.cli.get_command(context, name)
        assert command is not None
        taken[name] = options_of(command)
    common = {"--admin-socket", "--config", "--json"}
    assert [name for name, options in taken.items() if not common <= options] == []
    assert [name for name, options in taken.items() if "--remote" not in options] == ["pair"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["--insecure"], ["serve", "--insecure"]),
        (["--config", "c.yaml", "--insecure"], ["serve", "--config", "c.yaml", "--insecure"]),
        (["serve", "--insecure"], ["serve", "--insecure"]),
        (["--help"], ["--help"]),
        (["--version"], ["--version"]),
        (["tools"], ["tools"]),
    ],
)
def test_flags_alone_belong_to_serve(given: list[str], meant: list[str]) -> None:
    assert cli.with_command(given) == meant


def test_nothing_at_all_serves_unless_a_gateway_runs_here(
    tmp_path: Path, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.with_command([]) == ["serve"]
    done = agent_gate(cwd=gateway.folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("agent-gate ")
    assert "Next: " in done.stdout


def test_a_gateway_starts_without_its_command_and_with_its_flags(tmp_path: Path) -> None:
    api = Api()
    for name, text in files(api).items():
        (tmp_path / name).write_text(text)
    process = nursery.ForkedCommand(
        [COMMAND, "--config", "config.yaml", "--insecure"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    announced = json.loads(process.stdout.readline())
    assert announced["url"].startswith("http://127.0.0.1:")
    process.terminate()
    assert process.wait(PATIENCE) == 0
    process.stdout.close()
    api.close()


def test_the_certificate_of_a_gateway_in_this_folder_is_trusted_on_this_machine(gateway: Gateway) -> None:
    env = {"AGENT_GATE_URL": gateway.url, "AGENT_TOKEN": TOKEN}
    done = agent_gate("request", "get_state", "entity_id=sensor.temp", cwd=gateway.folder, **env)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["path"] == "/states/sensor.temp"


def test_elsewhere_the_certificate_must_be_named(tmp_path: Path, gateway: Gateway) -> None:
    env = {"AGENT_GATE_URL": gateway.url.replace("https", "wss"), "AGENT_TOKEN": TOKEN}
    done = agent_gate("tools", cwd=tmp_path, **env)
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.startswith("Error: Connection failed: ")
    assert "--fingerprint" in done.stderr
    pinned = agent_gate("tools", "--fingerprint", gateway.announced["fingerprint"], cwd=tmp_path, **env)
    assert pinned.returncode == 0, pinned.stderr
    assert isinstance(json.loads(pinned.stdout), list)
    ca = str(gateway.folder / "data" / "tls" / "gateway.crt")
    assert agent_gate("tools", cwd=tmp_path, AGENT_GATE_CA=ca, **env).returncode == 0


def test_a_call_goes_on_when_its_command_is_killed_and_pending_has_the_result(gateway: Gateway) -> None:
    env = {"PATH": os.environ["PATH"], "AGENT_GATE_URL": gateway.url, "AGENT_TOKEN": TOKEN}
    process = nursery.ForkedCommand(
        [COMMAND, "request", "turn_on", "entity_id=light.killed"],
        cwd=gateway.folder,
        env=env,
        stdout=subprocess.DEVNULL,
    )
    wait_until(lambda: gateway.admin.get("/api/approvals"), "a question")
    process.kill()
    process.wait(PATIENCE)
    gateway.answer()

    def pending() -> list[dict[str, str]]:
        done = agent_gate("pending", cwd=gateway.folder, AGENT_GATE_URL=gateway.url, AGENT_TOKEN=TOKEN)
        return json.loads(done.stdout)

    rows = wait_until(pending)
    assert rows[0]["signature"] == "turn_on(light.killed)"


def test_a_reader_that_goes_away_is_no_traceback(gateway: Gateway) -> None:
    env = {"PATH": os.environ["PATH"], "AGENT_GATE_URL": gateway.url, "AGENT_TOKEN": TOKEN}
    done = subprocess.run(
        f"{COMMAND} tools | true",
        shell=True,
        cwd=gateway.folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert "Traceback" not in done.stderr


def test_the_shell_completes_commands_tools_arguments_and_values(tmp_path: Path, gateway: Gateway) -> None:
    def completed(words: str) -> set[str]:
        env = {
            "AGENT_GATE_URL": gateway.url,
            "AGENT_TOKEN": TOKEN,
            "AGENT_GATE_FINGERPRINT": gateway.announced["fingerprint"],
            "XDG_CACHE_HOME": str(tmp_path),
            "_AGENT_GATE_COMPLETE": "bash_complete",
            "COMP_WORDS": f"agent-gate {words}",
            "COMP_CWORD": str(len(f"agent-gate {words}x".split()) - 1),
        }
        done = agent_gate(cwd=tmp_path, **env)
        return {line.partition(",")[2] for line in done.stdout.splitlines()}

    assert "request" in completed("requ")
    assert completed("request get_") == {"get_state"}
    assert completed("request forecast ") == {"days=", "unit=", "detailed="}
    assert completed("request forecast days=1 ") == {"unit=", "detailed="}
    assert completed("request forecast unit=") == {"unit=c", "unit=f"}
    [kept] = (tmp_path / "agent-gate").iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    assert TOKEN not in kept.name


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_completion_script_for_each_shell(tmp_path: Path, shell: str) -> None:
    done = agent_gate("completion", shell, cwd=tmp_path)
    assert done.returncode == 0
    assert "_AGENT_GATE_COMPLETE" in done.stdout
    assert agent_gate("completion", "tcsh", cwd=tmp_path).returncode == 4


SCHEMA = {
    "properties": {
        "n": {"type": "integer"},
        "x": {"type": ["number", "null"]},
        "b": {"type": "boolean"},
        "a": {"anyOf": [{"type": "array"}, {"type": "null"}]},
        "r": {"$ref": "#/$defs/count"},
        "s": {"type": ["string", "integer"]},
        "o": {"oneOf": [{"type": "object"}, {"type": "boolean"}]},
        "loop": {"$ref": "#/properties/loop"},
        "any": {},
        "flag": True,
    },
    "$defs": {"count": {"type": "integer"}},
}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("n", "3", 3),
        ("n", "3.0", "3.0"),
        ("n", "true", "true"),
        ("n", "1_000", "1_000"),
        ("x", "2", 2),
        ("x", "2.5", 2.5),
        ("x", "null", None),
        ("x", "nan", "nan"),
        ("b", "true", True),
        ("b", "yes", "yes"),
        ("a", "[1,2]", [1, 2]),
        ("r", "7", 7),
        ("s", "7", "7"),
        ("o", '{"k":1}', {"k": 1}),
        ("loop", "1", "1"),
        ("any", "1", "1"),
        ("flag", "1", "1"),
        ("absent", "1", "1"),
    ],
)
def test_a_value_takes_the_type_the_schema_wants(name: str, text: str, value: object) -> None:
    found = coerced(text, types_of(SCHEMA, name))
    assert found == value
    assert type(found) is type(value)


def test_arguments_are_split_at_the_first_equals_sign(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"from": "file", "n": 1}')
    given = ["q=a=b", "empty=", f"@{tmp_path}/a.json", "n:=2", "user=@bob", "url=http://x?a:=1"]
    assert parse_arguments(given) == {
        "q": "a=b",
        "empty": "",
        "from": "file",
        "n": 2,
        "user": "@bob",
        "url": "http://x?a:=1",
    }
    assert plain_names(given) == ["q", "empty", "user", "url"]
    assert plain_names(["n=1", "n:=2"]) == []
    for wrong in ("nothing", "=value", ":=1", "@", "n:=[", "n:=NaN", 'n:={"a":1,"a":2}'):
        with pytest.raises(InvalidArgs, match=r"^Invalid argument format"):
            parse_arguments([wrong])


def test_a_tools_help_hides_nothing_and_obeys_nothing() -> None:
    tool = {
        "name": "evil",
        "description": "ok\x1b[31m\u202e",
        "args": {},
        "input_schema": {"properties": {"a": {"description": "line\nbreak", "default": [1]}, "b": True}},
    }
    text = tool_help(tool)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "line\\nbreak" in text
    assert "default [1]" in text


HOSTILE = "a\x1b]0;x\x07\x9b2J\u202eb\u2028c\u3164\ufe0f"


def test_a_table_says_what_it_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    shown = "send(to=ann, text=" + "x" * 30 + ")"
    lines = table(("id", "signature"), [("a", shown), ("b", shown[:20])]).splitlines()
    assert lines[1] == f"a   {shown[:35]}…"
    assert (len(lines[1]), lines[2]) == (40, f"b   {shown[:20]}")


@pytest.mark.parametrize(
    ("terminal", "variable", "shown"),
    [(True, None, "\x1b[31mdeny\x1b[0m"), (True, "", "deny"), (True, "1", "deny"), (False, None, "deny")],
)
def test_there_is_colour_on_a_terminal_alone_and_never_with_no_color(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, variable: str | None, shown: str
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if variable is not None:
        monkeypatch.setenv("NO_COLOR", variable)
    assert paint("deny") == shown


def test_what_others_wrote_is_shown_and_obeyed_nowhere() -> None:
    change = {
        "source": "s",
        "tool": f"t{HOSTILE}",
        "changed_at": 0.0,
        "held": True,
        "diff": f"-{HOSTILE}\n+b",
        "pin": "0" * 64,
    }
    shown = [
        listing([], [change]),
        render(UpstreamError(f"{HOSTILE}\nand {HOSTILE}")),
        tool_help(
            {
                "name": "t",
                "description": "",
                "args": {},
                "input_schema": {"properties": {"a": {"enum": [HOSTILE]}}},
            }
        ),
    ]
    for text in shown:
        assert text.replace("\n", "").isprintable(), ascii(text)
        assert not set(text) & {"\u3164", "\ufe0f"}
    assert "\n+b\n" in shown[0]


def test_a_changed_definition_cannot_add_lines_to_its_difference() -> None:
    before, plain, hostile = (
        Definition(name="t", description=text) for text in ("a", "b", "b\u2028+ harmless")
    )
    assert diff(before, hostile).count("\n") == diff(before, plain).count("\n")


def test_a_terminal_shows_what_is_waited_for_and_a_pipe_does_not(gateway: Gateway) -> None:
    env = {"PATH": os.environ["PATH"], "AGENT_GATE_URL": gateway.url, "AGENT_TOKEN": TOKEN}
    command = [COMMAND, "request", "turn_on", "entity_id=light.shown"]
    ours, theirs = os.openpty()
    process = nursery.ForkedCommand(
        command, cwd=gateway.folder, env=env, stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    shown = os.read(ours, 4096).decode()
    gateway.answer()
    out, _ = process.communicate(timeout=PATIENCE)
    os.close(ours)
    assert shown.startswith("Waiting for a person to answer: turn_on(light.shown) (until ")
    assert json.loads(out)["path"] == "/turn_on"
    piped = nursery.ForkedCommand(
        [*command, "brightness=1"],
        cwd=gateway.folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: gateway.admin.get("/api/approvals"), "a question")
    gateway.answer()
    _, said = piped.communicate(timeout=PATIENCE)
    assert said == b""


def test_a_command_that_waits_survives_the_gateways_restart(tmp_path: Path) -> None:
    api = Api()
    with running(tmp_path, files(api), "--insecure") as gateway:
        env = {"PATH": os.environ["PATH"], "AGENT_GATE_URL": gateway.url, "AGENT_TOKEN": TOKEN}
        process = nursery.ForkedCommand(
            [COMMAND, "request", "turn_on", "entity_id=light.a"],
            cwd=tmp_path,
            env=env,
            stdout=subprocess.PIPE,
        )
        wait_until(lambda: gateway.admin.get("/api/approvals"), "a question")
        gateway.stop()
        gateway.options = ("--insecure", "--port", gateway.url.rpartition(":")[2])
        gateway.start()
        gateway.answer()
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert json.loads(out)["path"] == "/turn_on"
    assert len(api.requests) == 1
    api.close()


@pytest.mark.parametrize(
    ("admin", "expected"),
    [
        ("", "data/admin.sock"),
        ("admin: {socket: ~/own.sock}", "{home}/own.sock"),
        ('admin: {socket: "${FOLDER:-here}/own.sock"}', "here/own.sock"),
        ('admin: {socket: "${FROM_DOTENV}/own.sock"}', "there/own.sock"),
    ],
)
def test_operators_find_the_socket_where_the_gateway_makes_it(
    tmp_path: Path, admin: str, expected: str
) -> None:
    (tmp_path / "config.yaml").write_text(f'{admin}\nagent: {{token: "${{NOT_SET}}"}}\n')
    (tmp_path / ".env").write_text("FROM_DOTENV=there\n")
    done = agent_gate("status", "--config", "config.yaml", cwd=tmp_path)
    assert done.returncode == 3
    assert f"No gateway answers on {expected.format(home=tmp_path)} " in done.stderr


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (b"admin: {socket: 5}", "config.yaml:1:17: admin.socket: expected a path, found a number"),
        (b"a: 1\nadmin: {socket: [", "config.yaml:2:"),
        (b"\xff", "config.yaml:1: the file is not UTF-8"),
    ],
)
def test_operators_are_told_what_is_wrong_in_the_configuration(
    tmp_path: Path, config: bytes, message: str
) -> None:
    (tmp_path / "config.yaml").write_bytes(config)
    done = agent_gate("status", "--config", "config.yaml", cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (8, False)
    assert done.stderr.startswith(f"Error: {message}")
    findings = agent_gate("doctor", "--config", "config.yaml", cwd=tmp_path)
    assert "No gateway runs here" in findings.stdout


def test_the_doctor_mends_what_is_the_gateways_own_and_nothing_beside_it(tmp_path: Path) -> None:
    shared, own = tmp_path / "project", tmp_path / "own"
    for folder, others in ((shared, ("server.key", "prod.env", "other.db")), (own, ())):
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)
        (folder / "config.yaml").write_text(
            "storage: {path: data/gate.db}\n" if folder == own else "storage: {path: gate.db}\n"
        )
        place = folder / "data" if folder == own else folder
        place.mkdir(exist_ok=True)
        place.chmod(0o755)
        for name in ("gate.db", "gate.db-wal", "audit.key", "agent.token", *others):
            (place / name).write_text("")
            (place / name).chmod(0o644)
        (place / "tls").mkdir()
        (place / "tls" / "gateway.key").write_text("")
        agent_gate("doctor", "--fix", cwd=folder)
        assert {name: (place / name).stat().st_mode & 0o777 for name in others} == dict.fromkeys(
            others, 0o644
        )
        for name in ("gate.db", "gate.db-wal", "audit.key", "agent.token", "tls/gateway.key"):
            assert (place / name).stat().st_mode & 0o777 == 0o600
    assert shared.stat().st_mode & 0o777 == 0o755
    assert (own / "data").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "arguments",
    [
        ["connect", "cursor", "--url", "http://127.0.0.1:1"],
        ["import", "--all", "--config", "in-the-way/config.yaml"],
        ["init", "--behind", "nothing", "--folder", "in-the-way"],
        ["demo", "--folder", "in-the-way"],
        ["session", "start", "--session", "s"],
    ],
)
def test_a_folder_that_cannot_be_made_is_named_without_a_traceback(
    tmp_path: Path, arguments: list[str]
) -> None:
    for name in ("in-the-way", ".cursor", ".local", "run"):
        (tmp_path / name).write_text("")
    (tmp_path / ".codeium" / "windsurf").mkdir(parents=True)
    entry = {"mcpServers": {"a": {"command": "x"}}}
    (tmp_path / ".codeium" / "windsurf" / "mcp_config.json").write_text(json.dumps(entry))
    done = agent_gate(*arguments, cwd=tmp_path, XDG_RUNTIME_DIR=str(tmp_path / "run"))
    assert (done.returncode, "Traceback" in done.stderr) == (8, False), done.stderr
    assert done.stderr.startswith("Error: ")


def test_a_full_disk_behind_standard_output_is_said(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = nursery.run([COMMAND, "schema"], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (8, "Error: No space left on device\n")


def test_a_question_that_nobody_answers_ends_with_a_word(tmp_path: Path) -> None:
    done = agent_gate("init", cwd=tmp_path)
    assert done.returncode == 130
    assert done.stderr.endswith("Stopped, since there was no answer.\n")
    assert list(tmp_path.iterdir()) == []


def test_arguments_from_a_file_that_is_not_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(b'{"a": "\xff"}')
    done = agent_gate("request", "x", "@bad.json", "--url", "ws://127.0.0.1:1", "--token", "t", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        4,
        f"Error: Invalid argument format: @bad.json is not UTF-8\n{SEEN_BY_ALL}\n",
    )


def watch(client: AdminClient) -> list[object]:
    return list(client.events("/api/events"))


def get(client: AdminClient) -> object:
    return client.get("/api/status")


CUT_CHUNK = b"Transfer-Encoding: chunked\r\n\r\n10\r\nevent: "
CUT_BODY = b"Content-Length: 100\r\n\r\n{"
PLAIN_END = b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("ask", "sent"), [(get, CUT_CHUNK), (get, CUT_BODY), (watch, CUT_CHUNK), (watch, PLAIN_END)]
)
def test_a_gateway_that_ends_while_it_answers_is_said_to_have_stopped(
    tmp_path: Path, ask: Callable[[AdminClient], object], sent: bytes
) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()

        def answer() -> None:
            with listening.accept()[0] as connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + sent)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(Unreachable, match="stopped answering"):
            ask(AdminClient(tmp_path / "s"))
        thread.join()


def test_the_doctor_says_that_it_may_not_look_into_the_folder_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("storage: {path: data/gate.db}\n")
    (tmp_path / "data").mkdir()

    def refused(_folder: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "iterdir", refused)
    found = list(diagnose(Here(config), AdminClient(tmp_path / "none.sock")))
    assert [finding.serious for finding in found if "may not look into" in finding.what] == [False]


def test_the_bridge_takes_a_token_with_the_line_break_of_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_TOKEN", f"{TOKEN}\n")
    assert read_token(None) == TOKEN
    monkeypatch.setenv("AGENT_TOKEN", "\n")
    assert read_token(None) is None


def test_a_table_shows_one_line_of_a_programs_last_words() -> None:
    said = one_line("box is lost\nIts last words were:\nnpm warn old\nnpm error code E404\nnpm error 404")
    assert said == "box is lost: npm error code E404 …"
    assert one_line("box is lost\nIts last words were:\nhelp\n") == "box is lost: help …"
    assert one_line("box: refused") == "box: refused"
