"""How many connections fit: strangers must not take the last open file from those who answer, nor from the store."""

import logging
import resource

log = logging.getLogger("agent_gate.net")
LEAST_RESERVE = 40
LEAST_ROOM = 16


def room_for(connections: int) -> int:
    """Raise the limit of open files for so many connections, as far as the system lets us; how many fit under it."""
    limit = raise_limit(connections * 4 // 3 + LEAST_RESERVE)
    room = max(LEAST_ROOM, limit - max(limit // 4, LEAST_RESERVE))
    if room < connections:
        log.info("The limit of open files leaves room for fewer connections", extra={"connections": room})
    return min(connections, room)


def raise_limit(wanted: int) -> int:
    """The limit of open files, raised to `wanted` where it is lower and may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    possible = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft == resource.RLIM_INFINITY or soft >= possible:
        return max(soft, possible)
    resource.setrlimit(resource.RLIMIT_NOFILE, (possible, hard))
    return possible
