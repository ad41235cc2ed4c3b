"""An HTTP server in threads of the test's own process, whose loop sleeps until somebody comes."""

import socket
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from selectors import EVENT_READ, DefaultSelector
from typing import Any


class QuietHandler(BaseHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


class HttpServer(ThreadingHTTPServer):
    """Serves from the moment it is made until `close`."""

    daemon_threads = True

    def __init__(
        self,
        handler: type[BaseHTTPRequestHandler],
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__((host, port), handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://{host}:{self.server_port}"
        self._ours, self._loops = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with DefaultSelector() as coming:
            for one in (self, self._loops):
                coming.register(one, EVENT_READ)
            while self._loops not in [key.fileobj for key, _ in coming.select()]:
                self.handle_request()

    def close(self) -> None:
        self._ours.close()
        self._thread.join()
        self._loops.close()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client may hang up; anything else is a fault of the test."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)
