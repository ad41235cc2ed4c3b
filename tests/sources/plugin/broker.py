"""A real MQTT broker, written by other people, in its own process."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import servers
from tests.processes import free_port
from tests.waiting import PATIENCE, wait_until

CONFIG = """
listeners: {{default: {{type: tcp, bind: "127.0.0.1:{port}"}}}}
plugins:
  amqtt.plugins.authentication.AnonymousAuthPlugin: {{allow_anonymous: true}}
"""


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def broker(folder: Path) -> Iterator[int]:
    """The port of a broker that anybody may use."""
    servers.install_python("mqtt")
    port = free_port()
    (folder / "broker.yaml").write_text(CONFIG.format(port=port))
    command = [str(servers.CACHE / "mqtt" / "bin" / "amqtt"), "-c", str(folder / "broker.yaml")]
    with (folder / "broker.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        try:
            wait_until(lambda: process.poll() is not None or answers(port), "an answer of the broker")
            assert process.poll() is None, (folder / "broker.log").read_text()
            yield port
        finally:
            process.terminate()
            process.wait(PATIENCE)
