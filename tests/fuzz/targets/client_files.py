"""Files of other clients: read or refused with a place; an edit keeps everything else, and can be taken back."""

from pathlib import Path

from tests.fuzz.fuzzing import Target

from agent_gate.config.clients.change import NAME, connect, disconnect
from agent_gate.config.clients.model import GatewayEntry, Surroundings
from agent_gate.config.clients.registry import block, client, servers
from agent_gate.errors import ConfigError

PLACE = Surroundings(Path("/home/ada"), Path("/home/ada/project"))
GATEWAY = GatewayEntry("http://127.0.0.1:8443", token_file="/home/ada/token")
CLIENTS = ("cursor", "codex", "goose", "zed")


def run(data: bytes) -> None:
    """The first byte chooses the client, hence JSON with comments, TOML or YAML."""
    program = client(CLIENTS[data[0] % len(CLIENTS)] if data else CLIENTS[0])
    file = program.files(PLACE)[0]
    try:
        text = data[1:].decode()
        before = program.syntax.read(text, str(file.path))
        found = servers(file, text, PLACE)
        changed = connect(file, text, program.write(GATEWAY), [server.name for server in found])
    except (ConfigError, UnicodeDecodeError):
        return
    now = block(program.syntax.read(changed, str(file.path)), file.block)
    assert NAME in now
    assert not {server.name for server in found} & set(now)
    try:
        back = disconnect(file, changed, text)
    except ConfigError:  # a layout that can be changed, but not put together again as text: said, not guessed
        return
    after = program.syntax.read(back, str(file.path))
    kept = {name: one for name, one in block(before, file.block).items() if name != NAME}
    assert dict(block(after, file.block)) == kept


TARGET = Target("client_files", run)
