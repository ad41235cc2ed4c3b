"""Who reads the monotonic clock by themselves, beside the clock that the gateway makes once and tests replace."""

import ast
from pathlib import Path

SRC = Path(__file__).parents[2] / "src" / "agent_gate"
WAITS = (
    "core/tasks.py",
    "net/",
    "sources/browser/tab.py",
    "sources/mcp/lists/watcher.py",
    "sources/mcp/process/",
    "sources/mcp/sessions/",
    "sources/mcp/wire/",
    "sources/remote/localevents.py",
    "store/cohort.py",
    "surfaces/websocket/",
)
"""What the event loop waits for, on the clock with which the loop waits."""
OTHER_PROGRAMS = ("cli/", "client/", "hosts/")
"""Programs that the gateway does not make."""
MEASURED = ("surfaces/requestlog.py",)
"""How long something took, for a line of the log; nothing is decided by it."""
THREADS = ("store/writer.py",)
"""How long those wait whose commit is in doubt, on the thread that commits; a store is made without a clock."""
ITSELF = ("core/ports.py", "store/clock.py")
PLACES = (*WAITS, *OTHER_PROGRAMS, *MEASURED, *THREADS, *ITSELF)


def readings(text):
    """The calls of `monotonic()` and of a loop's `time()` that do not go through a clock."""
    if "monotonic(" not in text and "time(" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        words = ast.unparse(node.func)
        if words.endswith(("loop.time", "get_running_loop().time")) or words in (
            "monotonic",
            "time.monotonic",
        ):
            yield words


def test_time_that_passed_is_read_from_the_clock_except_where_the_loop_waits():
    found = {
        str(path.relative_to(SRC))
        for path in SRC.rglob("*.py")
        if any(readings(path.read_text(encoding="utf-8")))
    }
    assert [path for path in sorted(found) if not path.startswith(PLACES)] == []
    unused = [place for place in PLACES if not any(path.startswith(place) for path in found | set(ITSELF))]
    assert unused == []
