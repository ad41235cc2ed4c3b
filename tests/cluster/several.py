"""Several real gateways on one real PostgreSQL, each in a process and a folder of its own."""

from contextlib import contextmanager
from pathlib import Path

from tests.gateway import OTHER_TOKEN, TOKEN, Gateway

SECRET = {"AGENT_GATE_SECRET": "a passphrase that all gateways have"}
CONFIG = """
gateway: {{id: {name}, host: "{address}", port: 0}}
admin: {{port: 0, socket: ./data/admin.sock{admin}}}
agents:
  tester: {{token: {token}, rate_limit: {{max_requests_per_minute: {rate}, max_pending_approvals: {pending}}}}}
  other: {{token: {other}, rate_limit: {{max_requests_per_minute: 0}}, person: "{person}"}}
services:
  home:
    url: "{url}"
    tools:
      write: {{args: {{n: {{type: integer}}}}, request: {{method: POST, path: /write}}}}
      read: {{request: {{method: GET, path: /read}}}}
      run: {{args: {{n: {{type: integer}}}}, request: {{method: POST, path: /write}}}}
{services}
storage: {{type: postgres, url: "{database}"}}
permissions: permissions.yaml
{more}
"""
RULES = """
rules: [{pattern: read, action: allow}, {pattern: look, action: allow}, {pattern: run, action: allow}, {pattern: brief, action: ask, lifetime: 2}]
"""
USUAL = {"rate": 0, "pending": 10, "services": "", "admin": "", "person": ""}


class Several:
    """Gateways that share a database. `start` begins one more, or one that was stopped again."""

    def __init__(self, folder, database, api, *, more="", rules=RULES, env=SECRET, **values):
        """`values` are other than usual in `CONFIG`."""
        self.folder, self.database, self.api, self.env = Path(folder), database, api, env
        self._rules, self._values = rules, {**USUAL, "more": more, **values}
        self.running = {}

    def files(self, name, more=""):
        text = CONFIG.format(
            name=name,
            token=TOKEN,
            other=OTHER_TOKEN,
            url=self.api.url,
            database=self.database,
            **(self._values | ({"more": more} if more else {})),
        )
        return {"config.yaml": text, "permissions.yaml": self._rules}

    def start(self, name, *, env=None, more="", kind=Gateway, address="127.0.0.1"):
        place = self.folder / name
        self._values["address"] = address
        place.mkdir(parents=True, exist_ok=True)
        for file, text in self.files(name, more).items():
            (place / file).write_text(text)
        gateway = kind(place, "--insecure", env=self.env if env is None else env).start()
        self.running[name] = gateway
        return gateway

    def stop(self, name):
        return self.running.pop(name).stop()

    def kill(self, name):
        return self.running.pop(name).kill()

    def close(self):
        for gateway in self.running.values():
            gateway.stop()


@contextmanager
def several(*arguments, **values):
    gateways = Several(*arguments, **values)
    try:
        yield gateways
    finally:
        gateways.close()
