"""Run as a program: tie this process to the gateway's life, then become the server's program.

    python -I -S launch.py GATEWAY_PID PIPE PROGRAM [ARGUMENT ...]

When the gateway is killed outright, the kernel kills the server, and a guard that waits on PIPE kills
whatever the server had started. Doing this in a program of its own keeps the gateway from running Python
between fork and exec, which is unsafe beside threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
SHELL = "/bin/sh"
GUARD = "trap '' TERM HUP INT; read _; kill -KILL 0"


def leave_guard(pipe: int) -> None:
    """Leave a small process in this group that ends the group when the gateway's end of `pipe` closes."""
    if os.fork() == 0:
        if os.fork() == 0:
            become_guard(pipe)
        os._exit(0)
    os.wait()
    os.close(pipe)


def become_guard(pipe: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number, target in enumerate((pipe, nowhere, nowhere)):
        os.dup2(target, number)
    os.closerange(3, max(pipe, nowhere) + 1)
    try:
        os.execv(SHELL, [SHELL, "-c", GUARD])  # noqa: S606 -- a constant script
    finally:
        os._exit(127)


def main(gateway: int, pipe: int, argv: list[str]) -> None:
    leave_guard(pipe)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != gateway:
            sys.exit("the gateway ended while this server was being started")
    for name in "SIGPIPE", "SIGXFSZ":
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execv(argv[0], argv)  # noqa: S606 -- the point of this program is to run another without a shell
    except OSError as error:
        sys.exit(f"cannot run {argv[0]}: {error.strerror}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
