"""Serves saved pages on two ports of loopback, which makes two origins."""

from contextlib import contextmanager

from tests.http_server import HttpServer, QuietHandler


def handler_for(texts, origins):
    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            made = texts.get(self.path.partition("?")[0])
            body = made().replace("{other}", origins[-1]).encode() if made else b"nothing here"
            self.send_response(200 if made else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


@contextmanager
def served(texts):
    """The origin that has the pages; another one has them too, for frames from elsewhere."""
    origins = []
    servers = [HttpServer(handler_for(texts, origins)) for _ in range(2)]
    origins += [server.url for server in servers]
    try:
        yield origins[0]
    finally:
        for server in servers:
            server.close()
