"""A local OpenTelemetry collector: takes OTLP over HTTP and keeps what it was sent."""

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.http_server import HttpServer, QuietHandler


class Collector:
    def __init__(self):
        self.requests = []
        collector = self

        class Handler(QuietHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.requests.append((self.path, body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

        self._server = HttpServer(Handler)
        self.url = self._server.url

    def close(self):
        self._server.close()

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
