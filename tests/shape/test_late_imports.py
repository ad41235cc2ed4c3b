"""Imports stand at the top of their module; what is loaded later has a reason, which stands here."""

import ast
import re
from pathlib import Path

from tests.shape.program_copy import ROOT

SOURCE = ROOT / "src"
INDENTED = re.compile(r"^[ \t]+(?:from|import)\b", re.MULTILINE)
"""What a formatted file has at least where a function imports; most are not parsed."""
FEW = "it costs time or memory that only few gateways need"
LATE = {
    "cronsim": "the extra `cron` may not be installed",
    "cryptography": "the first sealed state comes long after the start",
    "joserfc": FEW,
    "keyring": "the extra `keyring` may not be installed",
    "playwright": "the extra `browser` may not be installed, and its tools are listed all the same",
    "pypdfium2": "native parsers are loaded where pages of strangers are read, in a process of its own",
    "re2": FEW,
    "resource": "not every system has it",
    "segno": FEW,
    "statistics": FEW,
    "traceback": "a command that works needs none",
    "trafilatura": "native parsers are loaded where pages of strangers are read, in a process of its own",
    "websockets": FEW,
    "zoneinfo": FEW,
    "agent_gate.cli.output": "clients start the bridge often, and mostly nothing is wrong",
    "agent_gate.cli.remote": "most commands ask the gateway of this machine",
    "agent_gate.config": "a command that was told the admin socket reads no configuration",
    "agent_gate.observe.otlp": "the extra `otel` may not be installed",
    "agent_gate.sources.web.source": FEW,
}


def find_late(file: Path) -> set[str]:
    """The modules that functions of a file import."""
    late: set[str] = set()
    text = file.read_text()
    if not INDENTED.search(text):
        return late
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom):
                    late.add(node.module or "")
                elif isinstance(node, ast.Import):
                    late.update(name.name for name in node.names)
    return late


def reason_of(module: str) -> str:
    """The entry of `LATE` that a module falls under; empty where there is none."""
    return next((name for name in LATE if module == name or module.startswith(f"{name}.")), "")


def test_an_import_inside_a_function_has_a_reason_and_each_reason_its_import():
    found = {
        (str(file.relative_to(SOURCE)), module) for file in SOURCE.rglob("*.py") for module in find_late(file)
    }
    assert {place for place in found if not reason_of(place[1])} == set()
    assert set(LATE) == {reason_of(module) for _, module in found}
