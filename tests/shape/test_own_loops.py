"""A test that awaits is a coroutine, and `tests/conftest.py` runs it; who else starts an event loop has a reason, which stands here."""

import ast
from pathlib import Path

from tests.shape.program_copy import ROOT

TESTS = ROOT / "tests"
STARTS = {"run", "Runner", "new_event_loop", "run_until_complete"}
LOOPS = {"asyncio", "uvloop", "anyio"}
PROGRAM = "a program of its own, which a test starts or a person"
THREAD = "it serves in a thread of its own, beside a test that blocks"
BROWSER = "one browser, and so one loop, for all tests of a module"
FUZZED = "a target is called from outside any loop, as often as can be"
OWN = {
    "browser/test_browser_second_look.py": BROWSER,
    "browser/test_saved_pages.py": BROWSER,
    "browser/upstream_proxy.py": PROGRAM,
    "conformance/fixture.py": PROGRAM,
    "conftest.py": "it runs the tests",
    "eras/era_server.py": PROGRAM,
    "fuzz/targets/http_replies.py": FUZZED,
    "fuzz/targets/server_messages.py": FUZZED,
    "fuzz/targets/sign_in.py": FUZZED,
    "hotpath/hot_gate.py": THREAD,
    "hotpath/story.py": PROGRAM,
    "net/conftest.py": "it says on which loops the tests of the rim run",
    "remote/handshaking.py": PROGRAM,
    "remote/paired.py": THREAD,
    "sign_in/python_client.py": PROGRAM,
    "sources/mcp/sdk_server.py": PROGRAM,
    "store/fsync_child.py": PROGRAM,
    "store/writing_child.py": PROGRAM,
    "ui/firefox_wire.py": PROGRAM,
    "ui/ui_fixtures.py": THREAD,
}


def starts_loop(file: Path) -> bool:
    text = file.read_text()
    if not any(name in text for name in STARTS) or not any(module in text for module in LOOPS):
        return False
    return any(map(names_start, ast.walk(ast.parse(text))))


def names_start(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module in LOOPS and any(one.name in STARTS for one in node.names)
    if not isinstance(node, ast.Attribute) or node.attr not in STARTS:
        return False
    return node.attr == "run_until_complete" or (isinstance(node.value, ast.Name) and node.value.id in LOOPS)


def test_a_loop_of_ones_own_has_a_reason_and_each_reason_its_loop():
    found = {str(file.relative_to(TESTS)) for file in TESTS.rglob("*.py") if starts_loop(file)}
    assert found == set(OWN)
