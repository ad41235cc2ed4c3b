"""Components of every kind beside a gateway: joined by the command line, used as what they were paired as."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests import nursery
from tests.gateway import COMMAND, Gateway
from tests.remote.paired import command
from tests.waiting import PATIENCE

from agent_gate.cli.remote import RemoteClient
from agent_gate.core.call import new_id

SCRIPT = {"subscriber": "subscriber", "listener": "listener", "cli": "operator"}


def joined(gateway: Gateway, folder: Path, kind: str, name: str) -> "Joined":
    """Run `join` here and `pair` there, as two people at two machines would."""
    key = command(gateway, "identity").stdout.strip()
    state = folder / name
    words = ["join", kind, name, "--listen", "127.0.0.1:0", "--gateway", gateway.announced["peers"]]
    joining = nursery.ForkedCommand(
        [COMMAND, *words, "--gateway-key", key, "--state", str(state)],
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
    )
    assert joining.stdout is not None
    told = json.loads(joining.stdout.readline())
    done = command(gateway, "pair", kind, told["url"], name, "--remote-fingerprint", told["fingerprint"])
    assert done.returncode == 0, done.stderr
    assert joining.wait(PATIENCE) == 0
    joining.stdout.close()
    return Joined(gateway, name, SCRIPT[kind], state)


class Joined:
    """A component and the client it speaks with."""

    def __init__(self, gateway: Gateway, name: str, component_type: str, state: Path) -> None:
        self.gateway, self.name, self.component_type, self.state = gateway, name, component_type, state
        self.client = RemoteClient(state)

    @staticmethod
    def envelope(event_type: str, source: dict[str, str], payload: dict[str, Any]) -> dict[str, Any]:
        """An event as a program would write it."""
        return {
            "version": "v1",
            "event_id": new_id(),
            "trace_id": new_id(),
            "occurred_at": "2026-02-13T16:00:00Z",
            "event_type": event_type,
            "tenant_id": "family",
            "source": source,
            "routing": {"agent_id": "assistant", "session_id": "ses_1"},
            "payload": payload,
        }

    def event(self, event_type: str, **more: Any) -> dict[str, Any]:
        """An envelope of its own."""
        source = {"component_type": self.component_type, "component_id": self.name}
        return {**self.envelope(event_type, source, {}), **more}

    def publish(self, event: dict[str, Any]) -> Any:
        return self.client.request("POST", "/v1/events", event)

    def hears(self, after: str = "0.0", more: str = "") -> list[dict[str, Any]]:
        """Every event so far that it may hear."""
        path = f"/v1/events?once=1&after={after}{more}"
        return [event for _kind, event in self.client.events(path, endless=False)]
