"""Another machine: a network namespace with one cable to this one, which can be cut and mended."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Self

import pytest
from tests.waiting import wait_until

TOOLS = ("ip", "unshare", "nsenter")


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


class Elsewhere:
    """`here` and `there` are the two ends' addresses."""

    def __init__(self) -> None:
        number = os.getpid() % 250 + 1
        self.here, self.there = f"10.213.{number}.1", f"10.213.{number}.2"
        self._near, self._far = f"agn{number}", f"agf{number}"

    def __enter__(self) -> Self:
        if os.geteuid() != 0 or not all(shutil.which(tool) for tool in TOOLS):
            pytest.skip(f"network namespaces need root and {', '.join(TOOLS)}")
        self._holder = subprocess.Popen(["unshare", "-n", "sleep", "600"])
        try:
            self._connect()
        except (subprocess.CalledProcessError, AssertionError) as error:
            self.__exit__()
            pytest.skip(f"this machine lets nobody make network namespaces: {error}")
        return self

    def _connect(self) -> None:
        own, its = Path("/proc/self/ns/net"), Path(f"/proc/{self._holder.pid}/ns/net")
        wait_until(lambda: self._holder.poll() is not None or its.readlink() != own.readlink())
        assert self._holder.poll() is None, "no namespace came"
        run("ip", "link", "add", self._near, "type", "veth", "peer", "name", self._far)
        run("ip", "link", "set", self._far, "netns", str(self._holder.pid))
        run("ip", "addr", "add", f"{self.here}/30", "dev", self._near)
        run("ip", "link", "set", self._near, "up")
        run(*self.words("ip", "addr", "add", f"{self.there}/30", "dev", self._far))
        self.mend()

    def words(self, *words: str) -> tuple[str, ...]:
        """A command as it is run there."""
        return ("nsenter", "-t", str(self._holder.pid), "-n", *words)

    def cut(self) -> None:
        """Nothing arrives any more, and nobody is told."""
        run(*self.words("ip", "link", "set", self._far, "down"))

    def mend(self) -> None:
        run(*self.words("ip", "link", "set", self._far, "up"))

    def __exit__(self, *_: object) -> None:
        subprocess.run(["ip", "link", "del", self._near], check=False, capture_output=True)
        self._holder.kill()
        self._holder.wait()
