"""Hides this process from other processes of its user: its environment, memory and descriptors hold their secrets."""

import ctypes
import sys

PR_SET_DUMPABLE = 4


def hide_from_others() -> bool:
    """Whether no other process of this user may look into this one any more; programs it starts are not hidden.

    Nothing dumps its memory into a file then either. Only Linux has this.
    """
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0) == 0)
