"""Run as a program: tie this process to the gateway's life, then become the server's program.

    python -I -S launch.py GATEWAY_PID PROGRAM [ARGUMENT ...]

When the gateway is killed outright, the kernel kills the server too. Doing this in a program of its own
keeps the gateway from running Python between fork and exec, which is unsafe beside threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(gateway: int, argv: list[str]) -> None:
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
    main(int(sys.argv[1]), sys.argv[2:])
