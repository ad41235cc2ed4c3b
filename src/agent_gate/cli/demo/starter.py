"""The starter configuration: written once into an empty folder, yours to edit afterwards."""

import secrets
from importlib.resources import files
from pathlib import Path

from agent_gate.access.tokens import new_token

CONFIG = """\
# The configuration of your gateway. Every key is explained in docs/configuration.md.
gateway: {id: home, host: 127.0.0.1, port: 8443}
admin:   {socket: ./data/admin.sock}

# Who may call. An agent shows its token; what it may do is in permissions.yaml.
agents:
  me: {token: "${AGENT_TOKEN}"}

services:
  # A small home that runs beside the gateway. For a real Home Assistant, change url and token.
  homeassistant:
    url: "${HOME_URL}"
    auth: {type: bearer, token: "${HOME_TOKEN}"}
    health: {method: GET, path: /api/, expect_status: 200}
    tools: tools/homeassistant.yaml
    errors:
      - {status: 401, message: "Service authentication failed (is the token still valid?)"}
      - {status: 404, message: "Entity not found"}

# MCP servers, as they stand in your client's file:
# mcpServers:
#   time: {command: uvx, args: [mcp-server-time]}

storage: {type: sqlite, path: ./data/agent-gate.db}
permissions: permissions.yaml
"""

PERMISSIONS = """\
# What each call needs: allow, ask (a person) or deny. Every deny is looked at before every allow,
# every allow before every ask; what no rule names falls to the defaults. See docs/permissions.md.
defaults:
  - {pattern: "*", action: ask}
rules:
  - {pattern: "ha_get_*", action: allow, description: "reading is harmless"}
  - {pattern: "ha_call_service(lock.*)", action: deny, description: "never the locks"}
  - {pattern: "ha_call_service(*, lock.*)", action: deny, description: "never the locks, by no service"}
  - {pattern: "ha_fire_event*", action: deny, description: "events can trigger anything"}
"""


def write_starter(folder: Path) -> bool:
    """Write the starter files unless there is a configuration already; whether they were written."""
    if (folder / "config.yaml").exists():
        return False
    (folder / "tools").mkdir(parents=True, exist_ok=True)
    tools = files("agent_gate.cli.demo").joinpath("homeassistant.yaml").read_text(encoding="utf-8")
    (folder / "tools" / "homeassistant.yaml").write_text(tools, encoding="utf-8")
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    (folder / "permissions.yaml").write_text(PERMISSIONS, encoding="utf-8")
    return True


def read_secrets(path: Path) -> dict[str, str]:
    """`NAME=value` lines, made once with mode 0600: the agent's token and the home's."""
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(
            f"AGENT_TOKEN={new_token()}\nHOME_TOKEN={secrets.token_urlsafe(32)}\n", encoding="utf-8"
        )
    pairs = (
        line.partition("=")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "=" in line and not line.startswith("#")
    )
    return {name.strip(): value.strip() for name, _, value in pairs}
