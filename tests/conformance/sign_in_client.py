"""Run by the conformance suite as its client: a gateway in front of the suite's server, and a person who consents.

python sign_in_client.py TURNS URL      (the scenario and its context come in the environment)

The suite starts its clients all at once; they take turns, by locking one of the files in the folder TURNS.
"""

import fcntl
import http.client
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.gateway import TOKEN, Gateway, running
from tests.waiting import PATIENCE, wait_until

from agent_gate.errors import GatewayError

CONFIG = """
gateway: {{port: 0}}
admin: {{port: 0{document}}}
agents: {{tester: {{token: {token}}}}}
servers:
  it: {{url: "{url}", auth: {auth}}}
"""
ALLOW = "rules: [{pattern: 'it__*', action: allow}]"
MOST_SIGN_INS = 3
AT_ONCE = 2
TOOL = "test-tool"


def auth_of(context: dict[str, Any]) -> dict[str, Any]:
    """What the operator would write down: only what the scenario hands out beforehand."""
    if "idp_id_token" in context or "valid_jwt" in context:
        return {
            "type": "token-exchange",
            "client_id": context["client_id"],
            "client_secret": context.get("client_secret", ""),
            "identity_token": context.get("idp_id_token") or context["valid_jwt"],
            "identity_url": context.get("idp_token_endpoint", ""),
            "identity_client_id": context.get("idp_client_id", ""),
        }
    if "private_key_pem" in context or "client_secret" in context:
        kind = "client-credentials" if "client-credentials" in scenario() else "oauth2"
        given = {"client_id": context["client_id"], "client_secret": context.get("client_secret", "")}
        return {"type": kind, **given, "private_key": context.get("private_key_pem", "")}
    return {"type": "none"}


def document() -> str:
    """The public address of the gateway's own description, as the suite wants it."""
    url = "https://conformance-test.local/client-metadata.json"
    return f", client_document_url: {url}" if scenario().endswith("cimd") else ""


def scenario() -> str:
    return os.environ.get("MCP_CONFORMANCE_SCENARIO", "")


def fetch(url: str) -> tuple[int, str]:
    """One GET; where it leads, without going there."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
    connection.request("GET", parts.path + (f"?{parts.query}" if parts.query else ""))
    reply = connection.getresponse()
    reply.read()
    connection.close()
    return reply.status, reply.getheader("Location") or ""


@contextmanager
def turn(folder: Path) -> Iterator[None]:
    with (folder / str(os.getpid() % AT_ONCE)).open("w") as mine:
        fcntl.flock(mine, fcntl.LOCK_EX)
        yield


def settled(gateway: Gateway) -> str:
    def status() -> str | None:
        [one] = [one for one in gateway.admin.get("/api/sources") if one["key"] == "it"]
        return one["status"] if one["status"] in ("ready", "needs_auth", "failed") else None

    return str(wait_until(status, "the server's end of its start"))


def sign_in(gateway: Gateway) -> bool:
    try:
        said = gateway.admin.request("POST", "/servers/it/auth/start")
    except GatewayError as error:
        print(error.message)
        return False
    _, location = fetch(said["auth_url"])
    port = urlsplit(gateway.announced["admin"]).port
    status, _ = fetch(location.replace("localhost", "127.0.0.1", 1)) if f":{port}/" in location else (0, "")
    return status == 200


def use(gateway: Gateway, done: Callable[[], bool]) -> None:
    """Call the tool as an agent would, signing in as often as the server wants it, within reason."""
    for _ in range(MOST_SIGN_INS):
        if settled(gateway) == "needs_auth" and not sign_in(gateway):
            return
        if (
            settled(gateway) == "ready"
            and gateway.call(f"it__{TOOL.replace('-', '_')}").status == 200
            and done()
        ):
            return


def main(url: str) -> None:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    auth = json.dumps(auth_of(context))
    calls = iter((False, True))
    with tempfile.TemporaryDirectory() as folder:
        files = {
            "config.yaml": CONFIG.format(token=TOKEN, url=url, auth=auth, document=document()),
            "permissions.yaml": ALLOW,
        }
        with running(Path(folder), files, "--insecure") as gateway:
            use(gateway, lambda: next(calls, True))


if __name__ == "__main__" and scenario().startswith("auth/"):
    with turn(Path(sys.argv[1])):
        main(sys.argv[-1])
