"""Networks of a test's own, in network namespaces that end with it: nothing of this machine's network is touched.

There is a namespace for the world, with the database and what is called, and one for each gateway. Two lines lead from
each gateway to the world, `data` to the database and `front` to everything else, and none from one gateway to another. A
line that is cut still has its carrier: what is sent on it goes nowhere, and nobody is told.
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

CLONE_NEWNET = 0x40000000
DATABASE, WORLD = "10.7.98.1", "10.7.99.1"
LINES = {"data": DATABASE, "front": WORLD}
NOWHERE = "02:00:00:00:00:01"


def enter(descriptor):
    """Let the calling thread work in that namespace; sockets stay in the one they were made in."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


class Networks:
    """Namespaces by name, `world` and those of the gateways."""

    def __init__(self, gateways):
        if os.getuid() != 0 or shutil.which("ip") is None:
            pytest.skip("namespaces need root and iproute2")
        self._prefix, self._gateways = f"ag{uuid4().hex[:6]}", gateways
        try:
            self._make()
        except subprocess.CalledProcessError as error:
            self.close()
            pytest.skip(f"namespaces cannot be made here: {error.stderr}")

    def within(self, who):
        """What starts a program in that namespace."""
        return ["ip", "netns", "exec", self._prefix + who]

    def address(self, line, who):
        return self._ends(line, who)[1]

    def _ends(self, line, who):
        at = 2 * self._gateways.index(who) + [*LINES].index(line)
        return f"10.7.{at}.1", f"10.7.{at}.2"

    def _run(self, who, words):
        subprocess.run([*self.within(who), *words.split()], check=True, capture_output=True, text=True)

    def _make(self):
        for who in ("world", *self._gateways):
            subprocess.run(
                ["ip", "netns", "add", self._prefix + who], check=True, capture_output=True, text=True
            )
            self._run(who, "ip link set lo up")
        with self.inside():
            Path("/proc/sys/net/ipv4/ip_forward").write_text("0")
        for line, far in LINES.items():
            self._run("world", f"ip address add {far}/32 dev lo")
            for who in self._gateways:
                self._connect(line, far, who)

    def _connect(self, line, far, who):
        near, own = self._ends(line, who)
        bridge = f"{line}-{who}"
        self._run("world", f"ip link add {bridge} type bridge")
        self._run("world", f"ip address add {near}/24 dev {bridge}")
        self._run("world", f"ip link set {bridge} up")
        self._run("world", f"ip link add p-{bridge} type veth peer name {line} netns {self._prefix}{who}")
        self._run("world", f"ip link set p-{bridge} master {bridge} up")
        self._run(who, f"ip address add {own}/24 dev {line}")
        self._run(who, f"ip link set {line} up")
        self._run(who, f"ip route add {far}/32 via {near}")

    def cut(self, line, who):
        """Nothing gets through, in either direction."""
        self._run("world", f"ip link set p-{line}-{who} nomaster")

    def cut_answers(self, line, who):
        """What the gateway sends gets there, and nothing comes back."""
        own = self.address(line, who)
        self._run("world", f"ip neigh replace {own} lladdr {NOWHERE} dev {line}-{who} nud permanent")

    def mend(self, line, who):
        own = self.address(line, who)
        self._run("world", f"ip link set p-{line}-{who} master {line}-{who}")
        self._run("world", f"ip neigh replace {own} dev {line}-{who} lladdr {NOWHERE} nud permanent")
        self._run("world", f"ip neigh delete {own} dev {line}-{who}")

    @contextlib.contextmanager
    def inside(self, who="world"):
        """Sockets that this thread makes meanwhile are in that namespace."""
        with open("/proc/thread-self/ns/net") as own, open(f"/run/netns/{self._prefix}{who}") as other:
            enter(other.fileno())
            try:
                yield
            finally:
                enter(own.fileno())

    def close(self):
        for who in (*self._gateways, "world"):
            subprocess.run(["ip", "netns", "delete", self._prefix + who], check=False, capture_output=True)
