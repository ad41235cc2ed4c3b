"""The starter configuration: written once into an empty folder, yours to edit afterwards."""

import secrets
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from agent_gate.access.tokens import new_token
from agent_gate.config.files.dotenv import add_variables, read_dotenv

DEMO_HOME = """\
  # A small home that runs beside the gateway. For a real Home Assistant, write its address here as url,
  # and its long-lived access token into .env as HOME_TOKEN.
  homeassistant:
    url: "${HOME_URL:-http://127.0.0.1:8124}"
"""
REAL_HOME = """\
  # Your Home Assistant: its address and its long-lived access token are HOME_URL and HOME_TOKEN in .env.
  homeassistant:
    url: "${HOME_URL}"
"""
CONFIG = """\
# The configuration of your gateway. Every key is explained in docs/configuration.md.
gateway: {id: home, host: 127.0.0.1, port: 8443}
admin:   {socket: ./data/admin.sock}

# Who may call. An agent shows its token; what it may do is in permissions.yaml.
agents:
  my-agent: {token: "${AGENT_TOKEN}"}

services:
"""
SERVICE = """\
    auth: {type: bearer, token: "${HOME_TOKEN}"}
    health: {method: GET, path: /api/, expect_status: 200}
    tools: tools/homeassistant.yaml
    errors:
      - {status: 401, message: "Service authentication failed (is the token still valid?)"}
      - {status: 404, message: "Entity not found"}

"""
NOTES = """\
# MCP servers. This one runs beside the gateway too, and wants you to sign in: agent-gate auth start notes
servers:
  notes: {url: "${NOTES_URL:-http://127.0.0.1:8125/mcp}", ready: tried}

# Others, as they stand in your client's file:
"""
NO_SERVERS = """\
# MCP servers, as they stand in your client's file, or taken over with `agent-gate import`:
"""
REST = """\
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
NOTES_RULES = """\
  - {pattern: "notes__list_notes(*)", action: allow, description: "reading is harmless"}
"""


BROWSER = """
# A browser for agents, who may visit the small shop that runs beside the gateway. See docs/browser.md.
browser: {allow_private: ["${SHOP_HOST:-127.0.0.1:8126}"]}
"""
BROWSER_RULES = """\
  - {pattern: "browser_*", read_only: true, action: allow, description: "looking is harmless"}
  - {pattern: "browser_navigate(http://${SHOP_HOST:-127.0.0.1:8126}/*)", action: allow}
  - {pattern: "browser_type(http://${SHOP_HOST:-127.0.0.1:8126}, *)", action: allow}
  - {pattern: "browser_fill_form(http://${SHOP_HOST:-127.0.0.1:8126}, *)", action: allow}
  - {pattern: "browser_click(http://${SHOP_HOST:-127.0.0.1:8126}, *)", action: allow, description: "but what submits a form is asked"}
  - {pattern: "browser_click(http://${SHOP_HOST:-127.0.0.1:8126}, Add to basket)", action: allow, extra: [facts.submits]}
  - {pattern: "browser_click(http://${SHOP_HOST:-127.0.0.1:8126}, Find)", action: allow, extra: [facts.submits]}
  - {pattern: "browser_click(http://${SHOP_HOST:-127.0.0.1:8126}, Continue)", action: allow, extra: [facts.submits]}
"""


def has_browser() -> bool:
    """Whether the extra `browser` is installed."""
    return find_spec("playwright") is not None


def write_starter(folder: Path) -> bool:
    """Write the files of the demo unless there is a configuration already; whether they were written."""
    more, rules = (BROWSER, BROWSER_RULES) if has_browser() else ("", "")
    return write_files(
        folder, CONFIG + DEMO_HOME + SERVICE + NOTES + REST + more, PERMISSIONS + NOTES_RULES + rules
    )


def write_assistant(folder: Path) -> bool:
    """The same for a Home Assistant of one's own, with nothing that only the demo has beside it."""
    return write_files(folder, CONFIG + REAL_HOME + SERVICE + NO_SERVERS + REST, PERMISSIONS)


def write_files(folder: Path, config: str, permissions: str) -> bool:
    if (folder / "config.yaml").exists():
        return False
    tools = files("agent_gate.cli.demo").joinpath("homeassistant.yaml").read_text(encoding="utf-8")
    write_new(folder / "tools" / "homeassistant.yaml", tools)
    write_new(folder / "permissions.yaml", permissions)
    write_new(folder / "config.yaml", config)
    return True


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet; what somebody else put there stays."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def ensure_secrets(path: Path) -> dict[str, str]:
    """The agent's token and the home's, made once; what is there already stays."""
    add_variables(path, {"AGENT_TOKEN": new_token(), "HOME_TOKEN": secrets.token_urlsafe(32)})
    return read_dotenv(path)
