"""What can be wrong with an installation: each finding says what, why it matters, and the command that fixes it."""

import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509

from agent_gate.approval.render import visible
from agent_gate.cli.commands.check import check
from agent_gate.cli.knocking import addresses, unanswered
from agent_gate.cli.operator import AdminClient
from agent_gate.config.files.variables import FORM, VARIABLE
from agent_gate.config.files.yamlfile import read_yaml
from agent_gate.config.load import Loaded, load
from agent_gate.errors import ConfigError, GatewayError, Unreachable
from agent_gate.policy.lint import Finding

LOW_DISK = 200 * 1024 * 1024
SOON = 30 * 24 * 3600
SKEW = 300.0
TLS_KEYS = ("tls/gateway.key", "tls/ca.key")
SECRETS = (
    *("agent.token", "audit.key", "channels.key", "login.key", "seal.key", "vault.key"),
    "peers/identity.key",
    *TLS_KEYS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """One problem. `repair` does what `fix` says, where it can be done without a person."""

    what: str
    why: str
    fix: str
    repair: Callable[[], None] | None = field(default=None, compare=False)
    serious: bool = True

    def shown(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "why": self.why,
            "fix": self.fix,
            "serious": self.serious,
            "fixable": self.repair is not None,
        }


@dataclass(frozen=True, slots=True)
class Here:
    """Where somebody stands who is advised: the configuration, and what was typed to name it or the gateway."""

    config: Path | None
    typed_config: Path | None = None
    typed_socket: Path | None = None

    def command(self, *words: str) -> str:
        """A command on the files that can be typed as it is."""
        named = ["--config", str(self.typed_config)] if self.typed_config else []
        return shlex.join(["agent-gate", *words, *named])

    def asking(self, *words: str) -> str:
        """The same for one that asks the running gateway."""
        named = ["--admin-socket", str(self.typed_socket)] if self.typed_socket else []
        return self.command(*words, *named)


def diagnose(here: Here, client: AdminClient) -> Iterator[DoctorFinding]:
    """Everything that can be found from the files, the machine and the running gateway."""
    config, status = here.config, running(client)
    told = list(of_files(here, status))
    yield from told
    loaded = readable(config)
    if loaded is not None:
        store = loaded.settings.storage.path.absolute()
        folder = store.parent
        try:
            yield from of_private_files(store, config, loaded.settings.admin.socket)
            yield from of_certificate(folder)
        except PermissionError:
            yield DoctorFinding(
                what=f"You may not look into {folder}",
                why="It belongs to another user, so its files and the certificate were not checked",
                fix=f"sudo {here.command('doctor')}",
                serious=False,
            )
        yield from of_disk(folder)
        yield from of_agents(loaded, config)
        yield from of_addresses(loaded, status, here)
    locked = loaded is not None and bool(loaded.settings.approvers.passphrase)
    if status is None:
        yield DoctorFinding(
            what="No gateway runs here",
            why="Agents cannot reach their tools",
            fix=here.command("serve"),
            serious=False,
        )
    else:
        yield from of_running(client, status, told, here, locked=locked)


def running(client: AdminClient) -> dict[str, Any] | None:
    """What the gateway says of itself; None where none runs."""
    try:
        found: dict[str, Any] = client.get("/api/status")
    except Unreachable:
        return None
    return found


def readable(config: Path | None) -> Loaded | None:
    try:
        return load(config, None)
    except GatewayError:
        return None


UNSET = re.compile(r"the environment variable (\w+) is not set|, nor is (\w+) \(")
DOES_NOT_START = "The gateway does not start with this file; one that runs goes on with what it had"
DOES_NOT_HOLD = "The gateway runs with it, but a rule or a tool does not do what the file says"
MISSING, ABSENT = (
    "Its tools cannot be called",
    re.compile(r"servers\..+\.command: .+ (?:does not exist|is not found on PATH)"),
)
NOT_USED = "The changed file is not used; the gateway still runs with the old one"
ONLY_HERE = (
    "The gateway that runs has them, from its service for instance; only this look at the files has not"
)
PLACED, RUN = re.compile(r"(.+?:\d+:\d+): "), re.compile("; run: (.+)")


def of_files(here: Here, status: Mapping[str, Any] | None = None) -> Iterable[DoctorFinding]:
    if here.config is None:
        yield DoctorFinding(
            what="There is no config.yaml here",
            why="The gateway starts, but it has no tools",
            fix="agent-gate init",
            serious=False,
        )
        return
    starts = readable(here.config) is not None
    reasons = [source["reason"] for source in status["sources"]] if status is not None else []
    faults, warnings = check(here.config, None)
    for fault in faults:
        yield of_fault(fault, here, status, starts=starts)
    for warning in warnings:
        placed, run = PLACED.match(warning), RUN.search(warning)
        if run and run[1].startswith("chmod ") and not placed:
            continue  # of_private_files says so, and can mend it
        absent = ABSENT.search(warning)
        if absent and any(absent[0] in reason for reason in reasons):
            continue  # of_source says so
        edit = f"Edit {placed[1] if placed else here.config}; docs/configuration.md explains each key"
        yield DoctorFinding(
            what=warning,
            why=MISSING if absent else "It works, but not as well or as safely as it could",
            fix=run[1] if run else edit,
            serious=False,
        )


def of_fault(fault: Finding, here: Here, status: Mapping[str, Any] | None, *, starts: bool) -> DoctorFinding:
    unset = status is not None and not status["reload_fault"] and variables_in(fault.message)
    if unset:
        return DoctorFinding(
            what=f"Not set in this shell: {', '.join(unset)}",
            why=ONLY_HERE,
            fix=f"Set them here too, and ask again: {here.command('doctor')}",
            serious=False,
        )
    holds = DOES_NOT_HOLD if starts and not RUN.search(fault.message) else DOES_NOT_START
    return DoctorFinding(
        what=fault.message,
        why=NOT_USED if status is not None and status["reload_fault"] else holds,
        fix=mending(fault, here.config or Path()),
    )


def variables_in(message: str) -> list[str]:
    """The variables that a fault says are not set."""
    return [first or other for first, other in UNSET.findall(message)]


def mending(fault: Finding, config: Path) -> str:
    """What to do about a fault in the files: a command, the variable that is missing, or the line."""
    if run := RUN.search(fault.message):
        return run[1]
    unset = variables_in(fault.message)
    return f"Set {' and '.join(unset)} in {config.parent / '.env'}" if unset else f"Edit {fault.where}"


def private(path: Path, mode: int = 0o600) -> str:
    return f"chmod {mode:o} {shlex.quote(str(path))}"


def of_private_files(store: Path, config: Path | None, socket: Path) -> Iterable[DoctorFinding]:
    """Files with secrets that others on this machine could read, and the store's folder where it is ours alone."""
    folder = store.parent
    held = list(folder.iterdir()) if folder.is_dir() else []
    beside = [config.parent / ".env"] if config is not None else []
    files = [path for path in held if path.name.startswith(store.name)] + [folder / name for name in SECRETS]
    ours = {*(path.relative_to(folder).parts[0] for path in files), socket.name}
    whole = [folder] if held and {path.name for path in held} <= ours else []
    for path in [*whole, *beside, *files]:
        if path.exists() and path.stat().st_mode & 0o077:
            mode = 0o700 if path.is_dir() else 0o600
            yield DoctorFinding(
                what=f"{path} can be read by others on this machine",
                why="It holds tokens, keys or the record of calls",
                fix=private(path, mode),
                repair=lambda path=path, mode=mode: path.chmod(mode),  # type: ignore[misc]
            )


def of_certificate(folder: Path) -> Iterable[DoctorFinding]:
    path = folder / "tls" / "gateway.crt"
    if not path.is_file():
        return
    try:
        end = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc.timestamp()
    except ValueError:
        yield DoctorFinding(
            what=f"{path} holds no certificate",
            why="The gateway does not start with it",
            fix=f"rm {shlex.quote(str(path))}  # a new one is made at the next start",
            repair=path.unlink,
        )
        return
    left = end - time.time()
    if left < SOON:
        yield DoctorFinding(
            what=f"The certificate ends in {max(0, round(left / 86400))} days",
            why="Clients that check it will refuse to connect",
            fix=f"rm {shlex.quote(str(path))}  # a new one is made at the next start",
            repair=path.unlink,
            serious=left <= 0,
        )


def of_disk(folder: Path) -> Iterable[DoctorFinding]:
    place = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(place).free
    if free < LOW_DISK:
        yield DoctorFinding(
            what=f"Only {free >> 20} MiB are free at {place}",
            why="Calls are refused while the record cannot be written",
            fix="Free some space",
        )


def of_agents(loaded: Loaded, config: Path | None) -> Iterable[DoctorFinding]:
    for agent in loaded.settings.agents.values():
        if agent.token and len(agent.token) < 16:
            yield DoctorFinding(
                what=f"The token of {agent.name} has only {len(agent.token)} characters",
                why="It can be guessed",
                fix=f"Put a longer one into {config}, such as the output of: openssl rand -hex 32",
                serious=False,
            )


def of_addresses(loaded: Loaded, status: Mapping[str, Any] | None, here: Here) -> Iterable[DoctorFinding]:
    """Where nobody listens. The gateway hears of it at the next call or check; of what it knows, it speaks itself."""
    found = addresses(loaded.settings)
    if status is not None:
        states = {source["key"]: source["state"] for source in status["sources"]}
        found = {key: url for key, url in found.items() if states.get(key) in ("ready", "idle")}
    for key, why in unanswered(found):
        yield DoctorFinding(
            what=f"{key} does not answer: {why}",
            why="Calls of its tools will fail",
            fix=cure({"key": key, "reason": why}, here),
            serious=status is not None,
        )


RIGHT_ONE = "Put the right token"
CURES = (
    ((" is left out: ",), "Rename the tools, or take `prefix: false` away"),
    (
        (".command: ", "not found", "No such file", "cannot be started", "Permission denied"),
        "Install its program, or correct `command`",
    ),
    (("401", "403", "token", "credential", "log in"), RIGHT_ONE),
    (
        ("refused", "reached", "resolve", "timed out", "too long", "certificate"),
        "Start it there, or correct `url`",
    ),
)


SIGN_IN = re.compile("`agent-gate auth (key|start) ")


def cure(source: dict[str, Any], here: Here) -> str:
    """What helps against the reason that a source gives; to try again is none, since that happens by itself."""
    if asked := SIGN_IN.search(source["reason"]):
        return here.asking("auth", asked[1], source["key"])
    file = here.config if here.config is not None else "the configuration"
    quoted = f"`{visible(source['key'])}` in {file}"
    texts = (text for signs, text in CURES if any(sign in source["reason"] for sign in signs))
    what = next(texts, "Look at its settings")
    if what == RIGHT_ONE and here.config and (names := token_variables(here.config, source["key"])):
        beside = here.config.parent / ".env"
        quoted = f"`{visible(source['key'])}` into {' and '.join(names)}{f' in {beside}' if beside.exists() else ''}"
    return f"{what} for {quoted}; the change is taken over by itself"


def token_variables(config: Path, key: str) -> list[str]:
    """The variables that an entry of the file takes its credential from."""
    try:
        root = read_yaml(config)
    except ConfigError:
        return []
    kinds = (root.get(kind) for kind in ("services", "servers", "mcpServers"))
    auth = next((entry.get("auth") for kind in kinds if kind and (entry := kind.get(key))), None)
    forms = VARIABLE.findall(str(auth.plain())) if auth is not None else []
    return [named[1] for form in forms if (named := FORM.fullmatch(form))]


def of_running(
    client: AdminClient,
    status: dict[str, Any],
    told: Sequence[DoctorFinding],
    here: Here,
    *,
    locked: bool = False,
) -> Iterable[DoctorFinding]:
    rows = client.get("/api/calls?limit=1")["rows"]
    yield from of_faults(status, told, here)
    yield from (finding for source in status["sources"] for finding in of_source(source, here))
    if rows and rows[0]["at"] > time.time() + SKEW:
        yield DoctorFinding(
            what="The newest row of the record lies in the future",
            why="The clock went back; approvals may expire late",
            fix="Set the clock",
        )
    fixes = {finding.fix for finding in told}
    yield from (finding for finding in of_rules(client, status) if finding.fix not in fixes)
    yield from of_same_user(status, locked=locked)


def of_faults(status: dict[str, Any], told: Sequence[DoctorFinding], here: Here) -> Iterable[DoctorFinding]:
    """What the gateway says itself that it cannot do."""
    if status["store_fault"]:
        yield DoctorFinding(
            what=f"The record cannot be written: {status['store_fault']}",
            why="Every call is refused",
            fix="Look at the disk, then restart the gateway",
        )
    if status["reload_fault"] and not any(finding.why == NOT_USED for finding in told):
        yield DoctorFinding(
            what=f"The changed configuration is not used: {status['reload_fault']}",
            why="The gateway still runs with the old one",
            fix=here.command("check"),
        )
    for name, why in status["channel_faults"].items():
        yield DoctorFinding(
            what=f"Questions do not get through to {name}: {why}",
            why="They wait until it is back; nobody is told there meanwhile",
            fix=here.asking("approvals"),
        )


LESS_THAN_READY = {
    "failed": "Its tools cannot be called",
    "needs_auth": "Its tools cannot be called",
    "degraded": "Calls of its tools may fail",
}


LEFT_OUT = "What is left out cannot be called"


def of_source(source: dict[str, Any], here: Here) -> Iterable[DoctorFinding]:
    if why := LESS_THAN_READY.get(source["state"]):
        left_out = " is left out: " in source["reason"]
        yield DoctorFinding(what=said_of(source), why=LEFT_OUT if left_out else why, fix=cure(source, here))


def said_of(source: dict[str, Any]) -> str:
    """What is wrong with a source, in words; one that wants a credential mostly says so itself."""
    key, reason = source["key"], source["reason"]
    if source["state"] != "needs_auth":
        return f"{key} is {source['state']}: {reason}"
    return reason if reason.startswith(key) else f"{key} needs a credential: {reason}"


def of_rules(client: AdminClient, status: dict[str, Any]) -> Iterable[DoctorFinding]:
    """Rules that fit no tool, now that the servers' tools are known; while one is away, nothing can be said."""
    if any(source["state"] not in ("ready", "disabled", "idle") for source in status["sources"]):
        return
    for rule in client.get("/api/policy")["rules"]:
        for fault in rule["faults"]:
            yield DoctorFinding(
                what=fault,
                why="The rule does not do what it says",
                fix=f"Edit {rule['where']}",
            )


def of_same_user(status: dict[str, Any], *, locked: bool) -> Iterable[DoctorFinding]:
    """Nothing where every answer needs a passphrase (`locked`), or where root runs it, from whom nothing is kept."""
    owner = Path(status["socket"]).stat().st_uid
    if owner == os.geteuid() and owner != 0 and not locked:
        yield DoctorFinding(
            what="The gateway runs as the same user as your programs",
            why="An agent with a shell under this user could answer its own questions",
            fix="See docs/security.md: run the gateway as its own user, or set approvers.passphrase",
            serious=False,
        )
