"""What a container engine does, by hand: a network, and a process with a root, a user and an address of its own.

The root is read-only and has this machine's programs; what an entry mounts is mounted. Nothing of it is left when the
process ends. It takes root on Linux, and no address outside is reachable from there.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.nursery import COMMAND
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
PROGRAM = sorted({ROOT, Path(COMMAND).parents[1], Path(sys.base_prefix)})
"""Where the program is, with the interpreter that runs it."""
COPIED = ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/ld.so.cache")
ENTER = """
set -e
root=$1; shift
mount -t tmpfs -o mode=755 tmpfs "$root"
make_place() {
  if [ -d "$1" ]; then mkdir -p "$root$2"; else mkdir -p "$(dirname "$root$2")" && touch "$root$2"; fi
}
bind() {
  if ! make_place "$1" "$2" 2>/dev/null; then
    above="$root$2"
    while [ ! -d "$above" ]; do above=$(dirname "$above"); done
    mount -t tmpfs -o mode=755 tmpfs "$above"
    make_place "$1" "$2"
  fi
  mount --bind "$1" "$root$2"
  if [ "$3" = ro ]; then mount -o remount,ro,bind "$root$2"; fi
}
for place in %(system)s; do
  if [ -L "$place" ]; then ln -s "$(readlink "$place")" "$root$place"; elif [ -d "$place" ]; then bind "$place" "$place" ro; fi
done
mkdir -p "$root/etc" "$root/tmp" "$root/proc" "$root/dev"
for file in %(copied)s; do cp "$file" "$root/etc/" 2>/dev/null || true; done
cp "$HOSTS" "$root/etc/hosts"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
while [ "$1" != -- ]; do bind "$1" "$2" "$3"; shift 3; done
shift
mount -o remount,ro "$root"
unset HOSTS
exec chroot "$root" "$@"
"""


def needed():
    """Skip where such a thing cannot be made."""
    for program in ("ip", "unshare", "setpriv", "chroot", "curl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    tried = subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True, check=False)
    if os.getuid() != 0 or tried.returncode:
        pytest.skip("networks and roots of one's own need root")


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class ContainerNetwork:
    """A bridge in a namespace of its own; each who joins has an address and is known to the others by name."""

    def __init__(self, folder):
        needed()
        self.folder, self.prefix, self.members = Path(folder), f"ag{os.getpid()}", {}
        self._bridge = self._add("bridge")
        ip("-n", self._bridge, "link", "add", "br0", "type", "bridge")
        ip("-n", self._bridge, "link", "set", "br0", "up")

    def _add(self, name):
        ip("netns", "add", f"{self.prefix}-{name}")
        return f"{self.prefix}-{name}"

    def join(self, name):
        """The namespace of a member."""
        space, number = self._add(name), len(self.members) + 1
        self.members[name] = f"10.77.0.{number}"
        ip(
            "link",
            "add",
            f"v{number}",
            "netns",
            self._bridge,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            space,
        )
        ip("-n", self._bridge, "link", "set", f"v{number}", "master", "br0", "up")
        ip("-n", space, "addr", "add", f"{self.members[name]}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            ip("-n", space, "link", "set", device, "up")
        return space

    def hosts(self):
        file = self.folder / "hosts"
        lines = [f"{address} {name}" for name, address in self.members.items()]
        file.write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))
        return file

    def close(self):
        for name in (*self.members, "bridge"):
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", f"{self.prefix}-{name}")


class HandMadeContainer:
    """One process as an entry describes it. `mounts` are (what, where, "ro" or "rw")."""

    def __init__(self, folder, space, hosts, command, *, user, env, mounts=()):
        self.space = space
        root = Path(folder) / f"root-{space}"
        root.mkdir()
        self._log = (Path(folder) / f"{space}.log").open("w+b")
        own = [(place, place, "ro") for place in PROGRAM if not str(place).startswith("/usr/")]
        script = ENTER % {"system": " ".join(SYSTEM), "copied": " ".join(COPIED)}
        bound = [str(word) for mount in (*own, *mounts) for word in mount]
        caps = ("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all")
        self._as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *caps]
        enter = ["ip", "netns", "exec", space, "unshare", "--mount", "--propagation", "private"]
        whole = [*enter, "sh", "-c", script, "sh", str(root), *bound, "--", *self._as_user, *command]
        path = f"{Path(COMMAND).parent}:/usr/local/bin:/usr/sbin:/usr/bin:/bin"
        given = {"PATH": path, "HOME": "/data", "HOSTS": str(hosts), "PYTHONDONTWRITEBYTECODE": "1", **env}
        self._env = {"PATH": path}
        self.process = subprocess.Popen(whole, env=given, stdout=self._log, stderr=self._log, cwd="/")

    def said(self):
        return Path(self._log.name).read_text()

    def run(self, *command):
        """Something beside it in its network and its root, as `exec` does: its exit status and what it said."""
        inside = ["nsenter", "--target", str(self.process.pid), "--mount", "--net", "--root", "--wd=/"]
        done = subprocess.run(
            [*inside, *command], capture_output=True, text=True, check=False, timeout=PATIENCE, env=self._env
        )
        return done.returncode, done.stdout + done.stderr

    def stop(self, number=15):
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(PATIENCE)
        finally:
            self._log.close()
