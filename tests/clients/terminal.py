"""A program in a terminal, with a person before it who reads, types, and has a browser that only writes down what it is
asked to open."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import termios
import threading

from tests.waiting import PATIENCE

ROWS, COLUMNS = 40, 2000
"""So wide that no address is broken."""
MARKS = re.compile(r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|[\[>?][0-9;?<>=]*[ -/]*[@-~]|[()][A-Z0-9]|[=>78])")


class Terminal:
    """`start` makes the process of a command, as `Popen` does."""

    def __init__(self, start, command, **options):
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._said, self._changed, self._ended = "", threading.Condition(), False
        self.process = start(
            command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, **options
        )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        """Until the last process has closed the terminal; a program whose terminal is full stands still."""
        text = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            try:
                more = os.read(self._ours, 1 << 16)
            except OSError:
                more = b""
            with self._changed:
                self._said += text.decode(more)
                self._ended = not more
                self._changed.notify_all()
            if not more:
                return

    @property
    def said(self):
        return MARKS.sub("", self._said)

    def wait_for(self, pattern, seconds=PATIENCE):
        """The first match in what it said so far, or will say."""
        with self._changed:
            self._changed.wait_for(lambda: re.search(pattern, self.said) or self._ended, seconds)
            found = re.search(pattern, self.said)
        assert found, f"it never said {pattern!r}, only: {self.said[-2000:]}"
        return found

    def type(self, text):
        os.write(self._ours, text.encode())

    def wait(self):
        """Its exit code."""
        return self.process.wait(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        os.close(self._ours)


class Doorbell:
    """Stands where programs look for a browser; what they want opened is rung here."""

    def __init__(self, folder):
        self.folder = folder
        pipe = folder / "bell"
        os.mkfifo(pipe)
        self._pipe = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        self._rest = ""
        for name in ("xdg-open", "browser"):
            (folder / name).write_text(f'#!/bin/sh\necho "$1" > {pipe}\n')
            (folder / name).chmod(0o755)

    @property
    def env(self):
        return {
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "BROWSER": str(self.folder / "browser"),
            "DISPLAY": ":9",
        }

    def wait(self):
        """The address that a program wants to have opened."""
        while "\n" not in self._rest:
            assert select.select([self._pipe], [], [], PATIENCE)[0], "no browser was asked for"
            self._rest += os.read(self._pipe, 1 << 16).decode()
        address, _, self._rest = self._rest.partition("\n")
        return address

    @property
    def rung(self):
        return bool(self._rest or select.select([self._pipe], [], [], 0)[0])

    def close(self):
        os.close(self._pipe)
