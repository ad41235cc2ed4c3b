"""The numbers that the pages on the protocols and the command line state are those of the program."""

import re
from pathlib import Path

import pytest

from agent_gate.cli.commands.request import command as request_command
from agent_gate.cli.commands.serve import LEARN_SECONDS
from agent_gate.config.settings import LimitsSettings
from agent_gate.core.catalog import LONGEST_WIRE
from agent_gate.core.strict import MOST_DEPTH
from agent_gate.mcp.revisions import NEWEST, NEWEST_WITH_SESSIONS, REVISIONS, UNSAID
from agent_gate.net.limits import Limits
from agent_gate.results import kept
from agent_gate.sources.mcp.lists.listing import MOST_PAGES
from agent_gate.sources.mcp.lists.watcher import MOST_LISTS
from agent_gate.surfaces.mcp.changes.subscriptions import MOST_URIS
from agent_gate.surfaces.mcp.incoming.params import MAX_DEPTH
from agent_gate.surfaces.mcp.methods import LONGEST_GREETING
from agent_gate.surfaces.mcp.sessions.kept import MOST_KEPT, MOST_STREAMS
from agent_gate.surfaces.mcp.sessions.sessions import IDLE_SECONDS, MOST_PER_CALLER
from agent_gate.surfaces.mcp.surface import MOST_LISTENS
from agent_gate.surfaces.mcp.tools.calling import BEAT_SECONDS, HOLD_SECONDS, MOST_ROUNDS
from agent_gate.surfaces.mcp.tools.sealing import LIFETIME
from agent_gate.surfaces.rest.surface import DEFAULT_WAIT
from agent_gate.surfaces.websocket.surface import AgentLimits

DOCS = Path(__file__).parents[2] / "docs"
KB, MB, DAY = 1024, 1024 * 1024, 86_400
NET, AGENTS = Limits(), AgentLimits()
TIMEOUT = next(one.default for one in request_command.params if one.name == "timeout")
WITH_SESSIONS = ", ".join(one.name for one in REVISIONS if one.has_sessions)
SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

STATED = {
    "cli.md": [
        f"connecting included; {TIMEOUT:.0f} by default",
        f"larger than the gateway takes ({NET.message_bytes // MB} MiB) is refused",
    ],
    "mcp.md": [
        f"It speaks {NEWEST.name} and every revision with a handshake ({WITH_SESSIONS})",
        f"without a session of {UNSAID.name}",
        f"an unknown revision is answered with {NEWEST_WITH_SESSIONS.name}",
        f"at the latest after {LEARN_SECONDS:.0f} seconds",
        f"after {IDLE_SECONDS / 60:.0f} idle minutes",
        f"for the last {MOST_STREAMS} streams of a session and {MOST_KEPT // MB} MB an agent",
        f"{LONGEST_GREETING // KB} KB for `initialize`, {MOST_PER_CALLER:,} sessions an agent",
        f"{MOST_URIS:,} subscribed resources a session",
        f"{MOST_LISTENS} open `subscriptions/listen` an agent",
        f"A name of more than {LONGEST_WIRE} characters",
        f"at most {MOST_LISTS} times a minute and over at most {MOST_PAGES:,} pages a minute",
        f"`limits.hold` seconds ({HOLD_SECONDS:.0f}), with progress every {BEAT_SECONDS:.0f} seconds",
        f"after {SMALL[MOST_ROUNDS]} they get the result below",
        f"the same request for {LIFETIME / 60:.0f} minutes",
        f"nested deeper than {MAX_DEPTH} levels",
    ],
    "protocol.md": [
        f"the first message, within {AGENTS.auth_seconds:.0f} seconds",
        f"for at most {SMALL[round(kept.KEEP_SECONDS / DAY)]} days",
        f"the newest {kept.MOST_ROWS} of them, or {kept.MOST_BYTES // MB} MB",
        f"nests deeper than {MOST_DEPTH} levels",
        f"| {NET.message_bytes // MB} MiB; {AGENTS.first_message // KB} KiB before authentication |",
        f"| {AGENTS.strangers}, for {AGENTS.auth_seconds:.0f} s |",
        f"| {AGENTS.messages_per_second} a second |",
        f"| open requests of a connection | {AGENTS.in_flight} |",
        f"| unread replies | {NET.buffer_bytes // MB} MiB |",
        f"a ping after {NET.ping_seconds:.0f} s | closed when no pong comes within {NET.pong_seconds:.0f} s",
        f"`Prefer: wait=N` ({DEFAULT_WAIT:.0f}) seconds",
        f"at most {NET.header_bytes // KB} KiB and {NET.headers} headers",
    ],
}


@pytest.mark.parametrize("page", STATED)
def test_the_numbers_of_a_page_are_those_of_the_program(page: str) -> None:
    text = re.sub(r"\s+", " ", (DOCS / page).read_text())
    assert [said for said in STATED[page] if said not in text] == []


def test_the_setting_that_a_page_names_has_the_same_default() -> None:
    assert LimitsSettings().hold == HOLD_SECONDS
