"""The example plugin, as it is written in `examples/mqtt`, through a real gateway against a real broker."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gateway import TOKEN, Gateway
from tests.sources.plugin.broker import broker, free_port

from agent_gate import SyncClient
from agent_gate.errors import Forbidden, InvalidArgs, UpstreamError

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "mqtt"


def serve(folder: Path, broker_port: int) -> Gateway:
    """The example in a folder of its own, with its ports changed to free ones."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    config = (folder / "config.yaml").read_text()
    config = config.replace("{id: mqtt-example}", "{id: mqtt-example, port: 0}\nadmin: {port: 0}")
    (folder / "config.yaml").write_text(config)
    env = {"AGENT_TOKEN": TOKEN, "MQTT_URL": f"mqtt://127.0.0.1:{broker_port}"}
    return Gateway(folder, "--insecure", env=env).start()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncClient]:
    with broker(tmp_path_factory.mktemp("broker")) as port:
        gateway = serve(tmp_path_factory.mktemp("example") / "mqtt", port)
        try:
            with SyncClient(gateway.url, TOKEN) as connected:
                yield connected
        finally:
            gateway.stop()


def test_a_retained_message_is_published_and_read_back(client: SyncClient) -> None:
    topic = "home/bedroom/light"
    published = client.call("mqtt_publish", {"topic": topic, "payload": "on (50 %, warm)", "retain": True})
    assert published == {"published": True, "topic": topic}
    read = client.call("mqtt_read", {"topic": topic})
    assert read == {"topic": topic, "payload": "on (50 %, warm)", "retained": True}


def test_a_topic_nobody_speaks_on_is_read_as_nothing(client: SyncClient) -> None:
    read = client.call("mqtt_read", {"topic": "home/silence", "wait": 0.2})
    assert read == {"topic": "home/silence", "payload": None, "retained": False}


def test_rules_and_validation_hold_for_plugins_too(client: SyncClient) -> None:
    with pytest.raises(Forbidden, match="Denied by policy"):
        client.call("mqtt_publish", {"topic": "home/front/lock", "payload": "open"})
    with pytest.raises(InvalidArgs, match="Invalid value for topic"):
        client.call("mqtt_read", {"topic": "home/+"})
    with pytest.raises(InvalidArgs, match="Missing required argument: payload"):
        client.call("mqtt_publish", {"topic": "home/bedroom/light"})


def test_a_broker_that_is_away_is_an_error_the_agent_can_read(tmp_path: Path) -> None:
    gateway = serve(tmp_path / "mqtt", free_port())
    try:
        refused = pytest.raises(UpstreamError, match="The broker cannot be reached")
        with SyncClient(gateway.url, TOKEN) as connected, refused:
            connected.call("mqtt_read", {"topic": "home/bedroom/light"})
    finally:
        gateway.stop()
