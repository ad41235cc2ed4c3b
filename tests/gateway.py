"""A real gateway for tests: the installed command in its own process, and a real HTTP API behind it."""

import http.client
import json
import os
import signal
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path

from tests.http_server import HttpServer, QuietHandler
from tests.nursery import COMMAND, ForkedCommand
from tests.waiting import PATIENCE

from agent_gate.cli.operator import AdminClient

TOKEN = "token-of-the-first-agent-in-tests"
OTHER_TOKEN = "token-of-the-other-agent-in-tests"


class Api:
    """An HTTP API that writes down what reached it and answers as it was told to."""

    def __init__(self, host="127.0.0.1"):
        self.requests = []
        self.replies = {}
        api = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path.partition("?")[0] == "/" and self.command == "GET":
                    return self.send(200, {}, b"{}")
                api.requests.append(
                    {
                        "method": self.command,
                        "path": self.path,
                        "headers": {k.lower(): v for k, v in self.headers.items()},
                        "body": body,
                    }
                )
                reply = api.replies.get(self.path.partition("?")[0], api.replies.get("*"))
                if callable(reply):
                    reply = reply(self, body)
                if reply is None:
                    reply = (200, {}, json.dumps({"path": self.path, "body": body.decode()}).encode())
                return self.send(*reply)

            def send(self, status, headers, body):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                for name, value in ({"Content-Type": "application/json"} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer

        self.server = HttpServer(Handler, host)
        self.url = self.server.url

    def reset(self):
        self.requests.clear()
        self.replies.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.server.close()


class HeldReply:
    """A reply of the API that comes only when the test says so."""

    def __init__(self):
        self.arrived, self.go_on = threading.Event(), threading.Event()

    def __call__(self, _handler, _body):
        self.arrived.set()
        self.go_on.wait(PATIENCE)


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Gateway:
    """One running gateway in its own process."""

    process_of = ForkedCommand
    """How its process is made."""

    def __init__(self, folder, *options, env=None, config="config.yaml"):
        self.folder, self.options, self.env, self.config = Path(folder), options, env or {}, config
        self.process = None

    def start(self):
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LOG_LEVEL": "info", **self.env}
        self.log = (self.folder / "stderr.txt").open("ab")
        self.said_before = len(self.stderr)
        command = [COMMAND, "serve", "--config", self.config, *self.options]
        self.process = self.process_of(
            command, cwd=self.folder, env=env, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the gateway did not start: {self.stop()} {self.stderr}")
        self.announced = json.loads(line)
        self.url = self.announced["url"]
        self.admin = AdminClient(Path(self.announced["socket"]))
        return self

    @property
    def stderr(self):
        return (self.folder / "stderr.txt").read_text()

    def stop(self, number=signal.SIGTERM):
        """End it by a signal, if it still runs; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.log.close()
        return code

    def kill(self):
        return self.stop(signal.SIGKILL)

    def request(self, method, path, body=None, token=TOKEN, headers=None, timeout=PATIENCE):
        host, _, port = self.url.rpartition("/")[2].partition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=timeout)
        given = {"Authorization": f"Bearer {token}"} if token else {}
        data = body if isinstance(body, bytes | None) else json.dumps(body)
        try:
            connection.request(method, path, data, given | (headers or {}))
            response = connection.getresponse()
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def call(self, tool, arguments=None, *, wait=None, **options):
        headers = options.pop("headers", {}) | ({"Prefer": f"wait={wait}"} if wait is not None else {})
        return self.request("POST", f"/api/tools/{tool}", arguments or {}, headers=headers, **options)

    def answer(self, verdict="approve", **body):
        """Answer the one open question, as the terminal does."""
        [approval] = self.admin.get("/api/approvals")
        return self.admin.request("POST", f"/api/approvals/{approval['id']}", {"verdict": verdict, **body})

    def story(self, call):
        return [row["state"] for row in self.admin.get(f"/api/calls/{call}")]


class TypedGateway(Gateway):
    """One that is started as a person types it, so that it stands in the process list under its name."""

    process_of = subprocess.Popen


@contextmanager
def running(folder, files, *options, env=None, kind=Gateway):
    """Write `files` into `folder`, start a gateway there, and stop it at the end."""
    for name, text in files.items():
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    gateway = kind(folder, *options, env=env).start()
    try:
        yield gateway
    finally:
        gateway.stop()


@contextmanager
def in_front_of(api, folder, config, tools, permissions, **values):
    """A gateway for that API; its configuration says {url}, {token} and the names in `values` where they belong."""
    files = {
        "config.yaml": config.format(url=api.url, token=TOKEN, **values),
        "tools.yaml": tools,
        "permissions.yaml": permissions,
    }
    with running(folder, files, "--insecure") as gateway:
        yield gateway
