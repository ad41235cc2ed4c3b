"""Serves saved pages on two ports of loopback, which makes two origins."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def handler_for(texts, origins):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            made = texts.get(self.path.partition("?")[0])
            body = made().replace("{other}", origins[-1]).encode() if made else b"nothing here"
            self.send_response(200 if made else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    return Handler


@contextmanager
def served(texts):
    """The origin that has the pages; another one has them too, for frames from elsewhere."""
    origins = []
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), handler_for(texts, origins)) for _ in range(2)]
    origins += [f"http://127.0.0.1:{server.server_port}" for server in servers]
    threads = [threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True) for server in servers]
    for server, thread in zip(servers, threads, strict=True):
        server.daemon_threads = True
        thread.start()
    try:
        yield origins[0]
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            server.server_close()
            thread.join()
