"""Who a client is at the gateway: an agent of its own, made where the gateway can be asked, with its token in a file."""

import shlex
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from agent_gate.cli.operator import AdminClient, segment
from agent_gate.config.clients.model import ClientProgram, GatewayEntry, Surroundings
from agent_gate.config.files.dotenv import known_variables
from agent_gate.config.files.replace import replace_bytes
from agent_gate.errors import ConfigError, GatewayError, InvalidArgs, Unreachable

MADE_TOKEN = Path("data/agent.token")
MOST_NAMESAKES = 20
NOTE = ".agent"


def how_to_set_token(folder: Path) -> str:
    """What to type for AGENT_TOKEN to be that of the gateway in a folder; empty where no token is at hand there."""
    file, made = folder / ".env", folder / MADE_TOKEN
    if "AGENT_TOKEN" in known_variables(file):
        there = str(file) if "/" in str(file) else f"./{file}"  # else a shell looks for it on PATH
        return f"set -a; . {shlex.quote(there)}"
    return f"export AGENT_TOKEN=$(cat {shlex.quote(str(made))})" if made.is_file() else ""


def state_folder(place: Surroundings) -> Path:
    return Path(place.env.get("XDG_STATE_HOME") or place.home / ".local" / "state") / "agent-gate"


def full_path(path: Path) -> Path:
    """The one way to write where a file is, from whichever folder it was named; the file itself may be a link."""
    return path.parent.resolve() / path.name


def token_file(place: Surroundings, name: str) -> Path:
    """Where a client that passes no environment on finds its token."""
    return state_folder(place) / "tokens" / name


def agents_file(place: Surroundings, name: str, admin: AdminClient) -> Path:
    """Where the token of this client's agent at this gateway stands."""
    where = str(full_path(admin.path))
    return token_file(place, f"{name}@{sha256(where.encode()).hexdigest()[:8]}")


@dataclass(frozen=True, slots=True)
class ClientSetup:
    """The gateway that clients are told of, the machine they are on, and our configuration. `admin` is the running
    gateway, where a client may be made an agent of it; where nothing is made, only where it runs."""

    gateway: GatewayEntry
    place: Surroundings
    config: Path
    admin: AdminClient | None


def tell_gateway(program: ClientProgram, setup: ClientSetup) -> GatewayEntry:
    """The gateway as this client can use it: with a token of its own where one can be made, else with one at hand."""
    gateway, place, admin = setup.gateway, setup.place, setup.admin
    if gateway.token_file:
        return gateway
    file = ensure_agent(program.name, place, admin) if admin is not None else None
    if file is None:
        if program.expands and not gateway.needs_bridge:
            return gateway
        file = token_at_hand(program, place, setup.config)
    return gateway if file is None else replace(gateway, token_file=str(file))


def ensure_agent(name: str, place: Surroundings, admin: AdminClient) -> Path | None:
    """The token file of this client's agent at this gateway, both made where they are missing; None without one."""
    file = agents_file(place, name, admin)
    note = file.with_name(file.name + NOTE)
    try:
        known = {agent["name"] for agent in admin.get("/api/agents")}
        if file.is_file() and note.is_file() and note.read_text(encoding="utf-8").split("\n")[0] in known:
            return file
        agent, token = make_agent(name, admin)
    except Unreachable:
        return None
    keep_token(file, token)
    replace_bytes(note, f"{agent}\n{full_path(admin.path)}".encode(), private=True)
    return file


def agent_of(gateway: GatewayEntry) -> str:
    """The agent that was made for a client; empty where it has the token of another."""
    note = Path(f"{gateway.token_file}{NOTE}")
    return note.read_text(encoding="utf-8").split("\n")[0] if gateway.token_file and note.is_file() else ""


def make_agent(name: str, admin: AdminClient) -> tuple[str, str]:
    """An agent named after the client; one that is there already belongs to somebody, so the next is numbered."""
    for number in range(1, MOST_NAMESAKES):
        wanted = name if number == 1 else f"{name}-{number}"
        try:
            return wanted, str(admin.request("POST", "/api/agents", {"name": wanted})["token"])
        except InvalidArgs:
            continue
    raise ConfigError(f"The gateway has {MOST_NAMESAKES} agents named like {name}; revoke some of them")


def keep_token(file: Path, token: str) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_bytes(file, token.encode(), private=True)


def token_at_hand(program: ClientProgram, place: Surroundings, config: Path) -> Path | None:
    """A file with the gateway's own token, or one made of the token in the environment or in `.env`."""
    made = config.parent / MADE_TOKEN
    if made.is_file():
        return full_path(made)
    token = place.env.get("AGENT_TOKEN") or known_variables(config.parent / ".env").get("AGENT_TOKEN")
    if token:
        keep_token(token_file(place, program.name), token)
        return token_file(place, program.name)
    if program.expands:
        return None
    raise ConfigError(
        f"{program.title} passes no environment on, so the token must stand in a file: "
        "start the gateway, pass --token-file PATH, or set AGENT_TOKEN and one is made"
    )


def shown_gateway(program: ClientProgram, setup: ClientSetup) -> GatewayEntry:
    """The same without making anything: the token file is named where `connect` would put it."""
    gateway, place, admin = setup.gateway, setup.place, setup.admin
    if gateway.token_file or (program.expands and not gateway.needs_bridge):
        return gateway
    if admin is not None:
        return replace(gateway, token_file=str(agents_file(place, program.name, admin)))
    made = setup.config.parent / MADE_TOKEN
    file = full_path(made) if made.is_file() else token_file(place, program.name)
    return replace(gateway, token_file=str(file))


def forget_tokens(name: str, place: Surroundings) -> list[tuple[str, str]]:
    """Remove this client's token files, and revoke the agents that were made for it; those that could not be, and the
    socket of their gateway."""
    token_file(place, name).unlink(missing_ok=True)
    left = []
    for note in sorted(token_file(place, "").glob(f"{name}@*{NOTE}")):
        agent, _, where = note.read_text(encoding="utf-8").partition("\n")
        try:
            AdminClient(Path(where)).request("DELETE", f"/api/agents/{segment(agent)}")
        except GatewayError:
            left.append((agent, where))
        note.with_name(note.name.removesuffix(NOTE)).unlink(missing_ok=True)
        note.unlink()
    return left
