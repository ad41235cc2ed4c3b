"""A local OpenTelemetry collector: takes OTLP over HTTP and keeps what it was sent."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    def __init__(self):
        self.requests = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.requests.append((self.path, body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def spans(self):
        """Every span by name, as plain values."""
        out = {}
        for _, body in self.requests:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        out.setdefault(span.name, []).append(plain(span, resource))
        return out


def plain(span, resource):
    return {
        "trace": span.trace_id.hex(),
        "id": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "kind": span.kind,
        "seconds": (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
        "error": span.status.code == 2,
        "attributes": {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes},
        "service": {a.key: a.value.string_value for a in resource.resource.attributes}["service.name"],
    }
