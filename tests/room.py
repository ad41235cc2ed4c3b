"""A network of its own for programs of others: this machine and nothing else, with names that mean what a test says.

What runs in the room can reach only what else runs there. Files are shared, so a gateway in it is answered over its
admin socket from outside.
"""

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from shutil import which

from tests.gateway import Gateway
from tests.waiting import PATIENCE

ROOT = os.geteuid() == 0
MAKE = ("unshare", "--net", "--mount", *(() if ROOT else ("--map-root-user",)))
ENTER = ("nsenter", "--net", "--mount", *(() if ROOT else ("--user", "--preserve-credentials")))
SET_UP = 'ip link set lo up && for one in $2; do ip addr add "$one/32" dev lo; done && mount --bind "$1" /etc/hosts && echo ready && exec cat'
GO_ON = 'cd "$1" && shift && exec "$@"'


def missing():
    """Why no room can be made here; empty where one can."""
    if not all(which(name) for name in ("unshare", "nsenter", "ip")):
        return "unshare, nsenter and ip are needed for a network of its own"
    done = subprocess.run([*MAKE, "true"], capture_output=True, text=True)
    return done.stderr.strip()


class Room:
    """`pid` is of the process that holds it open."""

    def __init__(self, pid, folder):
        self.pid, self.folder = pid, folder

    def inside(self, command, cwd):
        """The command that runs this one in the room."""
        return [
            *ENTER,
            "--target",
            str(self.pid),
            "--",
            "sh",
            "-c",
            GO_ON,
            "sh",
            str(cwd),
            *map(str, command),
        ]

    def popen(self, command, *, cwd, **options):
        return subprocess.Popen(self.inside(command, cwd), **options)

    def run(self, command, *, cwd, timeout=90, **options):
        return subprocess.run(
            self.inside(command, cwd), capture_output=True, text=True, timeout=timeout, **options
        )

    def gateway(self):
        """The kind of gateway that runs here."""
        return type("RoomGateway", (Gateway,), {"process_of": staticmethod(self.popen)})

    def wrapped(self, program):
        """A file that can be started in place of the program, and starts it in the room."""
        path = self.folder / f"{Path(program).name}-in-the-room"
        words = " ".join(f"'{word}'" for word in self.inside([program], "/"))
        path.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        path.chmod(0o755)
        return str(path)


@contextmanager
def room(folder, names=None):
    """`names` are hosts with the addresses that they have in the room; such an address is the room's own."""
    names, folder = names or {}, Path(folder)
    hosts = folder / "hosts"
    lines = [
        "127.0.0.1 localhost",
        "::1 localhost",
        *(f"{address} {host}" for host, address in names.items()),
    ]
    hosts.write_text("\n".join(lines) + "\n")
    addresses = " ".join(sorted(set(names.values())))
    command = [*MAKE, "sh", "-c", SET_UP, "sh", str(hosts), addresses]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "ready\n", "the room could not be made"
        yield Room(holder.pid, folder)
    finally:
        holder.stdin.close()
        holder.stdout.close()
        holder.wait(PATIENCE)
