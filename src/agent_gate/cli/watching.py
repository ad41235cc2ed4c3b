"""`QuestionDesk`: questions on a terminal, answered right there by the keys that the page has."""

import os
import queue
import select
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from shutil import get_terminal_size
from typing import Any

import click

from agent_gate.approval.render import visible
from agent_gate.cli.operator import AdminClient, segment
from agent_gate.cli.output import say
from agent_gate.errors import GatewayError, Unreachable

KEYS = {
    "a": {"verdict": "approve", "lifetime": "once"},
    "s": {"verdict": "approve", "lifetime": "session"},
    "h": {"verdict": "approve", "lifetime": "hour"},
    "w": {"verdict": "approve", "lifetime": "always"},
    "d": {"verdict": "deny"},
}
LEAVE = ("q", "\x03", "\x04", "")
NUMBER_PROMPT = "The number that the browser shows"
NAMED = (
    *("a approve once", "s for this session", "h for one hour", "w always for these arguments"),
    *("d deny", "j next", "q leave"),
)
SETTLE_SECONDS = 0.35
"""How long a question is on the screen before a key can answer it; as on the page."""


def key_lines(columns: int) -> str:
    """What each key does, in as many lines as a screen of that width needs."""
    lines = [NAMED[0]]
    for name in NAMED[1:]:
        if len(lines[-1]) + len(f" · {name}") <= columns:
            lines[-1] += f" · {name}"
        else:
            lines.append(name)
    return "\n".join(lines)


class QuestionDesk:
    """One question at a time. Another that comes meanwhile waits its turn, and keys count from when their names are
    shown below a question: what was pressed before was meant for another."""

    def __init__(
        self, client: AdminClient, card: Callable[[dict[str, Any]], str], *, ask_passphrase: bool
    ) -> None:
        self._client, self._card, self._ask_passphrase = client, card, ask_passphrase
        self._open: dict[str, dict[str, Any]] = {}
        self._shown: str | None = None
        self._settles_at: float | None = None
        self._came: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._bell, self._rung = os.pipe()

    def run(self) -> None:
        """Until `q`, an interrupt or the end of the gateway."""
        told = self._client.events("/api/events")
        threading.Thread(target=self._listen, args=(told,), daemon=True).start()
        for found in self._client.get("/api/approvals"):
            self._open[found["id"]] = found
        self._show_next()
        with suppress(KeyboardInterrupt), keys_one_by_one():
            while self._turn():
                pass

    def _listen(self, told: Iterator[tuple[str, Any]]) -> None:
        try:
            for event in told:
                self._ring(event)
        except GatewayError as error:
            self._ring(("end", error))

    def _ring(self, event: tuple[str, Any]) -> None:
        self._came.put(event)
        os.write(self._rung, b".")

    def _turn(self) -> bool:
        """Wait for one key or one event; whether to go on."""
        settling = self._settles_at is not None
        ready, _, _ = select.select(
            [self._bell] if settling else [sys.stdin, self._bell], [], [], self._time_to_settle()
        )
        if self._bell in ready:
            os.read(self._bell, 1)
            self._heard(*self._came.get())
        elif settling:
            return self._settle()
        elif sys.stdin in ready:
            return self._obey(read_key())
        return True

    def _time_to_settle(self) -> float | None:
        return None if self._settles_at is None else max(0.0, self._settles_at - time.monotonic())

    def _settle(self) -> bool:
        """Name the keys, and forget those that were pressed before; whether to go on."""
        self._settles_at = None
        while select.select([sys.stdin], [], [], 0)[0]:
            if read_key() in LEAVE:
                return False
        say(key_lines(get_terminal_size().columns))
        return True

    def _heard(self, kind: str, found: Any) -> None:
        if kind == "end":
            raise found if isinstance(found, GatewayError) else Unreachable("The gateway stopped answering")
        if kind != "approval":
            return
        if found["state"] == "pending":
            self._open[found["id"]] = found
            waiting = len(self._open) - 1
            if self._shown is None:
                self._show_next()
            elif waiting:
                say(f"{waiting} more wait{'s' if waiting == 1 else ''}")
        elif self._open.pop(found["id"], None) is not None:
            say(f"{found['state']}: {found['signature']}")
            if self._shown == found["id"]:
                self._show_next()

    def _obey(self, key: str) -> bool:
        if key in LEAVE:
            return False
        if key == "j" and self._shown is not None:
            self._open[self._shown] = self._open.pop(self._shown)
            self._show_next()
        elif key in KEYS and self._shown is not None:
            self._answer(self._shown, dict(KEYS[key]))
        elif key == "?":
            say(key_lines(get_terminal_size().columns))
        return True

    def _answer(self, ident: str, body: dict[str, str]) -> None:
        if self._ask_passphrase:
            with keys_as_lines():
                body["passphrase"] = click.prompt("Passphrase", hide_input=True, err=True)
        if body["verdict"] == "approve" and self._open[ident].get("wants_number"):
            with keys_as_lines():
                body["number"] = click.prompt(NUMBER_PROMPT, err=True)
        try:
            done = self._client.request("POST", f"/api/approvals/{segment(ident)}", body)
        except Unreachable:
            raise
        except GatewayError as error:
            say(f"Error: {error.message}", err=True)
            return
        self._open.pop(ident, None)
        became = f". {visible(done['became']['text'])}" if body["verdict"] == "approve" else ""
        say(f"{done['state']}: {visible(done['signature'])}{became}")
        self._show_next()

    def _show_next(self) -> None:
        self._shown = next(iter(self._open), None)
        if self._shown is None:
            self._settles_at = None
            say("Nothing waits for you. q leaves.")
        else:
            self._settles_at = time.monotonic() + SETTLE_SECONDS
            say(f"\n{self._card(self._open[self._shown])}")


def read_key() -> str:
    return os.read(sys.stdin.fileno(), 1).decode("latin-1")


@contextmanager
def keys_one_by_one() -> Iterator[None]:
    """The terminal hands over each key as it is pressed, unseen."""
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    try:
        tty.setcbreak(number)
        yield
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


@contextmanager
def keys_as_lines() -> Iterator[None]:
    """For one question: the terminal as it usually is."""
    number = sys.stdin.fileno()
    now = termios.tcgetattr(number)
    usual = termios.tcgetattr(number)
    usual[3] |= termios.ICANON | termios.ECHO
    try:
        termios.tcsetattr(number, termios.TCSADRAIN, usual)
        yield
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, now)
