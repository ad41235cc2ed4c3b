"""The world behind the gate: writes down what reached it, durably, before it answers."""

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ledger = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


class Recorder(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        os.write(ledger, json.dumps({"n": json.loads(body)["n"], "path": self.path}).encode() + b"\n")
        os.fsync(ledger)
        time.sleep(0.04)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """The gateway is killed in the middle of answers; that is the point."""


server = Server(("127.0.0.1", 0), Recorder)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
