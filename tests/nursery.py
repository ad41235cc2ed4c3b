"""`agent-gate` in a process of its own, without the half second of work that importing it takes each time.

One nursery for each process of tests, and for the programs which that starts, has imported the program; it forks for
each command that is started, with that command's arguments, folder, environment and standard files. What is tested is a process like any other: it has its
own memory, descriptors, signals and exit. Where the start of the interpreter matters as well, use `subprocess`.
"""

import array
import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from functools import cache
from importlib import import_module, reload
from pathlib import Path
from typing import Any

COMMAND = str(Path(sys.executable).with_name("agent-gate"))
AT_THE_START = ("PYTHON", "LD_", "TZ")
"""The beginnings of variables that count while the interpreter starts."""
OPTIONS = {"cwd", "stdin", "stdout", "stderr", "text", "bufsize"}
LONGEST = 1 << 20
IMPORTED = (
    "agent_gate.cli.commands.serve",
    "agent_gate.cli.commands.check",
    "agent_gate.store.migrations",
    "cryptography.hazmat.backends.openssl.backend",
    "encodings.idna",
    "importlib.readers",
)
"""What every gateway imports, some of it late."""
ADDRESS = "AGENT_GATE_NURSERY"
"""Where tests tell the programs that they start of their nursery."""


def can_be_forked(command: Any, env: Any) -> bool:
    named = isinstance(command, list | tuple) and command and str(command[0]) == COMMAND
    return bool(named) and not any(name.startswith(AT_THE_START) for name in env)


class ForkedCommand(subprocess.Popen):
    """A `Popen` whose process is made by the nursery, where the command is one that can be."""

    def __init__(self, args, *, env=None, **options):
        self._exit = None
        if env is None:
            env = {name: value for name, value in os.environ.items() if not name.startswith(AT_THE_START)}
        self._forked = can_be_forked(args, env) and options.keys() <= OPTIONS
        super().__init__(args, env=env, **options)

    def _execute_child(self, *given):
        if not self._forked:
            return super()._execute_child(*given)
        args, cwd, env = given[0], given[5], given[6]
        p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite = given[10:16]
        files = [fd if fd != -1 else standard for standard, fd in enumerate((p2cread, c2pwrite, errwrite))]
        words = {"argv": [str(word) for word in args], "cwd": str(cwd or Path.cwd()), "env": dict(env)}
        self.pid = nursery().ask(words, files)
        self._exit = os.pidfd_open(self.pid)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)
        return None

    def _try_wait(self, flags):
        if self._exit is None:
            return super()._try_wait(flags)
        ended = select.select([self._exit], [], [], 0 if flags & os.WNOHANG else None)[0]
        if not ended:
            return 0, 0
        os.close(self._exit)
        self._exit = None
        return self.pid, nursery().ask({"ended": self.pid}, [])

    def _internal_poll(self, *given, **options):
        if self._exit is None:
            return super()._internal_poll(*given, **options)
        pid, status = self._try_wait(os.WNOHANG)
        if pid:
            self._handle_exitstatus(status)
        return self.returncode


def run(command, *, input=None, capture_output=False, timeout=None, check=False, **options):  # noqa: A002
    """As `subprocess.run`."""
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with ForkedCommand(command, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


class Nursery:
    """A line to a nursery; `process` is the nursery where this process of tests has started it."""

    def __init__(self, path, process=None):
        self._process = process
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.connect(path)

    def ask(self, words, files):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        self._line.sendmsg([json.dumps(words).encode()], rights)
        return json.loads(self._line.recv(LONGEST))

    def close(self):
        self._line.close()
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait()


@cache
def nursery():
    """The nursery of the tests that started this process, or one of its own."""
    made = Nursery(os.environ[ADDRESS]) if ADDRESS in os.environ else start_nursery()
    atexit.register(made.close)
    return made


def start_nursery():
    path = f"{tempfile.mkdtemp()}/nursery"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(path)
        door.listen()
        process = subprocess.Popen(
            [sys.executable, __file__, str(door.fileno())],
            pass_fds=[door.fileno()],
            env={"PATH": os.environ["PATH"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
    os.environ[ADDRESS] = path
    return Nursery(path, process)


def serve(door: socket.socket) -> dict[str, Any] | None:
    """Fork for each command. Returns what was asked for in the process of the command, None at the nursery's end."""
    lines: list[socket.socket] = []
    while True:
        ready, _, _ = select.select([0, door, *lines], [], [])
        if 0 in ready:
            return None
        if door in ready:
            lines.append(door.accept()[0])
        for line in [line for line in lines if line in ready]:
            text, files, _, _ = socket.recv_fds(line, LONGEST, 3)
            if not text:
                lines.remove(line)
                line.close()
                continue
            asked = json.loads(text)
            if "ended" in asked:
                line.send(b"%d" % os.waitpid(asked["ended"], 0)[1])
            elif pid := os.fork():
                for fd in files:
                    os.close(fd)
                line.send(b"%d" % pid)
            else:
                for each in (door, *lines):
                    each.close()
                become(asked, files)
                return asked


def become(asked: dict[str, Any], files: list[int]) -> None:
    """Be the process that was asked for, as a terminal starts it: a shell's jobs in the background hear no interrupt."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for standard, fd in enumerate(files):
        os.dup2(fd, standard)
        os.close(fd)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    if "AGENT_GATE_FAILPOINT" in os.environ:
        from agent_gate.observe import failpoint

        reload(failpoint)


def leave(code: Any) -> None:
    """Exit as the interpreter does, but for taking apart what was imported: a quarter of a short life went there."""
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(code)  # which says so as it always does
    os._exit(code) if isinstance(code, int) else sys.exit(code)


def prepare() -> None:
    """Import what a gateway imports; nothing of it may start a thread or an event loop."""
    from agent_gate.config.kinds import kinds

    for needed in IMPORTED:
        import_module(needed)
    kinds()
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    sys.path.pop(0)
    prepare()
    with socket.socket(fileno=int(sys.argv[1])) as door:
        asked = serve(door)
    if asked is not None:
        from agent_gate.cli.main import main

        sys.argv[:] = asked["argv"]
        try:
            main()
        except SystemExit as left:
            leave(left.code)
