"""A listener over TCP, TLS or a Unix socket: it holds the connections, their sweeper and the drain."""

import asyncio
import logging
import os
import socket
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from ssl import SSLContext
from typing import Any

from agent_gate.core.tasks import KeptTasks
from agent_gate.errors import ConfigError
from agent_gate.net.connection import Connection
from agent_gate.net.guard import HostGuard
from agent_gate.net.http import Handler, Request, Response, ResponseHeads
from agent_gate.net.known import KnownHeads
from agent_gate.net.limits import Limits
from agent_gate.net.outbox import Outbox
from agent_gate.net.unixpath import reachable
from agent_gate.net.websocket import WebSocket, WebSocketHandler

__all__ = ["Limits", "Server", "Upgrade"]

log = logging.getLogger("agent_gate.net")

BACKLOG = 2048
MOST_TICKS = 2
"""How much later than its tick the sweeper may come for the time to count in full."""
Upgrade = Callable[[Request], WebSocketHandler | Response]


class Server:
    """Serves one handler on one listener. `handler` is asked once per request; each connection has its own task."""

    def __init__(
        self,
        handler: Handler,
        *,
        upgrade: Upgrade | None = None,
        guard: HostGuard | None = None,
        limits: Limits | None = None,
        ssl: SSLContext | None = None,
    ) -> None:
        self.handler = handler
        self.upgrade = upgrade
        self.guard = guard
        self.limits = limits or Limits()
        self.ssl = ssl
        self.secure = ssl is not None
        self.heads = ResponseHeads()
        self.known = KnownHeads()
        self.connections: set[Connection | WebSocket] = set()
        self.draining = False
        self.now = self._swept = 0.0
        """`now` counts the seconds in which this listener ran: whoever spoke while it got no CPU was not silent."""
        self.address = ""
        self.port = 0
        self._tasks = KeptTasks(log, "a request whose client is gone failed")
        self._listener: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._unix: Path | None = None

    async def start(
        self,
        host: str,
        port: int,
        *,
        shared: bool = False,
        ssl: SSLContext | None = None,
        chosen_by: str = "",
    ) -> None:
        """Listen on `host:port`; port 0 takes any free one, told by `port` afterwards. A `shared` port is one that
        other processes of this user may listen on too; `ssl` is a context that could only be made now; `chosen_by`
        tells a person where to choose another port."""
        if ssl is not None:
            self.ssl, self.secure = ssl, True
        self._begin()
        patience = self.limits.header_seconds if self.ssl else None
        try:
            self._listener = await self.loop.create_server(
                self._accept,
                host,
                port,
                ssl=self.ssl,
                backlog=BACKLOG,
                ssl_handshake_timeout=patience,
                reuse_port=shared or None,
            )
        except OSError as error:
            raise cannot_listen(host, port, error, chosen_by) from error
        bound = self._listener.sockets[0].getsockname()
        self.address, self.port = bound[0], bound[1]
        self._sweep()

    async def start_unix(self, path: str | Path) -> None:
        """Listen on a Unix socket that only this user can reach; `request.uid` names the peer."""
        self._begin()
        self._unix = Path(path)
        sock = bind_unix(self._unix)
        self._listener = await self.loop.create_unix_server(self._accept, sock=sock, backlog=BACKLOG)
        self.address = str(path)
        self._sweep()

    async def show(self, context: SSLContext) -> None:
        """Have connections that come from now on speak TLS with `context`; those that are open stay as they are.

        The new listener takes over the socket before the old one lets go of it, so that nobody is turned away.
        """
        assert self._listener is not None
        before, sock = self._listener, self._listener.sockets[0]
        patience = self.limits.header_seconds
        self._listener = await self.loop.create_server(
            self._accept,
            sock=socket.socket(fileno=os.dup(sock.fileno())),
            ssl=context,
            backlog=BACKLOG,
            ssl_handshake_timeout=patience,
        )
        self.ssl = context
        before.close()

    def _begin(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.outbox = Outbox(self.loop)
        self._swept = self.loop.time()

    def _accept(self) -> Connection:
        return Connection(self)

    def identify(self, transport: asyncio.Transport) -> tuple[str, int | None]:
        """The peer's IP address, or its uid on a Unix socket."""
        if self._unix is not None:
            sock = transport.get_extra_info("socket")
            credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            return "", struct.unpack("3i", credentials)[1]
        name = transport.get_extra_info("peername")
        return (name[0] if name else ""), None

    def admit(self, connection: Connection) -> bool:
        """Count a new connection in, unless the listener is full or closing."""
        if self.draining or len(self.connections) >= self.limits.connections:
            return False
        self.connections.add(connection)
        return True

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Hold on to a task whose client is gone."""
        self._tasks.keep(task)

    def _sweep(self) -> None:
        """The one timer: every connection's deadlines, and the second in the Date header."""
        self._sweeper = self.loop.call_later(self.limits.tick, self._sweep)
        before, self._swept = self._swept, self.loop.time()
        self.now = now = self.now + min(self._swept - before, MOST_TICKS * self.limits.tick)
        self.heads.clear()
        for connection in tuple(self.connections):
            try:
                connection.sweep(now)
            except Exception:  # the boundary: one broken connection must not spare the others
                log.exception("a connection could not be held to its deadlines")

    async def drain(self, seconds: float) -> None:
        """Stop accepting, let requests in flight be answered for up to `seconds`, then close everything."""
        self.draining = True
        if self._unix is not None:
            # Before the path is free for a successor, whose socket must stay.
            self._unix.unlink(missing_ok=True)
        if self._listener is not None:
            self._listener.close()
        deadline = self.loop.time() + seconds
        for connection in tuple(self.connections):
            if isinstance(connection, Connection):
                connection.retire()
        while self._busy() and self.loop.time() < deadline:
            await asyncio.sleep(min(0.02, seconds))
        for connection in tuple(self.connections):
            connection.retire()
        await self._finish(max(deadline, self.loop.time() + min(seconds, 0.25)))

    def _busy(self) -> bool:
        return bool(self._tasks.running) or any(isinstance(c, Connection) for c in self.connections)

    async def _finish(self, deadline: float) -> None:
        """The last grace for close frames; then cut what is left."""
        while self.connections and self.loop.time() < deadline:
            await asyncio.sleep(0.01)
        tasks = set(self._tasks.running)
        for connection in tuple(self.connections):
            if isinstance(connection, Connection) and connection.task is not None:
                tasks.add(connection.task)
            if connection.transport is not None:
                connection.transport.abort()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._sweeper is not None:
            self._sweeper.cancel()


def cannot_listen(host: str, port: int, error: OSError, chosen_by: str) -> ConfigError:
    why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
    cure = "stop what uses it, or choose another port" + (f": {chosen_by}" if chosen_by else "")
    return ConfigError(f"cannot listen on {host}:{port}: {why}; {cure}")


def bind_unix(path: Path) -> socket.socket:
    """A bound socket with mode 0600 in a folder of this user's; a live or foreign path is refused."""
    _make_private_folder(path.parent)
    _clear_stale(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        with reachable(path) as name:
            sock.bind(name)
    except OSError as error:
        sock.close()
        raise ConfigError(f"cannot listen on the socket {path}: {error.strerror or error}") from error
    finally:
        os.umask(mask)
    return sock


def _make_private_folder(folder: Path) -> None:
    """Make the socket's folder with mode 0700, or check that nobody else can write into it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot make the socket's folder {folder}: {error.strerror or error}") from error
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise ConfigError(f"the socket's folder {folder} is a symlink or no folder; name a real folder")
    if info.st_uid != os.geteuid():
        raise ConfigError(f"the socket's folder {folder} belongs to another user; name one of your own")
    if info.st_mode & 0o022:
        raise ConfigError(f"others can write into the socket's folder {folder}; run: chmod 700 {folder}")


def _clear_stale(path: Path) -> None:
    """Remove a dead socket of ours; refuse anything else that stands there."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(info.st_mode) or info.st_uid != os.geteuid():
        raise ConfigError(f"{path} exists and is not a socket of this user; move it away or name another")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            with reachable(path) as name:
                probe.connect(name)
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError as error:
            raise ConfigError(f"the socket {path} cannot be checked: {error.strerror or error}") from error
    raise ConfigError(f"another program is listening on {path}; stop it or name another socket")
