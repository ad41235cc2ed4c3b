"""Moves the secret arguments of earlier versions over: they stood in plain text, or were sealed with a key of their own.

A question that waits keeps its secrets, in the vault now; everywhere else a mask takes their place. The record stays
as it is, since a record that was rewritten proves nothing; where it shows secrets, that is said.
"""

import base64
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from agent_gate.approval.sealed import LAST_WAITING_STEP, keeping
from agent_gate.core.signature import MASK, pairs
from agent_gate.errors import GatewayError
from agent_gate.observe.redact import mask_arguments
from agent_gate.store.statement import Statement, Store
from agent_gate.vault.sealing import SealingKey
from agent_gate.vault.vault import Vault

log = logging.getLogger("agent_gate.approvals")
KEY_FILE = "arguments.key"
PLACE = "approvals"
MOVED = "secret arguments"
NOTE_MOVED = Statement(
    "INSERT INTO kv (name, value) VALUES (?, 'moved') ON CONFLICT (name) DO NOTHING", (MOVED,)
)
QUESTIONS = (
    "SELECT id, state, signature, body, (SELECT max(step) FROM record WHERE record.call = approvals.call) "
    """FROM approvals WHERE body LIKE '%"secret":["%'"""
)
MASKED_RESULTS = f"""SELECT call, tool, signature, arguments FROM results WHERE arguments LIKE '%"{MASK}"%'"""
MASKED_ROWS = f"""SELECT body FROM record WHERE body LIKE '%"{MASK}"%'"""


@dataclass(frozen=True, slots=True)
class EarlierQuestion:
    """A row of `approvals` as an earlier version wrote it."""

    id: str
    state: str
    signature: str
    body: dict[str, Any]
    step: int

    @property
    def call(self) -> dict[str, Any]:
        """Version 0.1.0 had the call's fields beside the question's."""
        return self.body.get("call") or self.body

    @property
    def plain(self) -> dict[str, Any]:
        """The secret arguments that stand in it for everybody to read."""
        arguments, secret = self.call["arguments"], self.body["secret"]
        return {name: arguments[name] for name in secret if arguments.get(name, MASK) != MASK}

    @property
    def waits(self) -> bool:
        return self.state in ("pending", "approved") and self.step <= LAST_WAITING_STEP

    def opened(self, key: SealingKey | None) -> dict[str, Any]:
        """Its secret arguments; none where they cannot be opened, so that the question runs out."""
        sealed = self.body.get("sealed")
        if not sealed or key is None:
            return self.plain
        try:
            found: dict[str, Any] = msgspec.json.decode(key.open(base64.b64decode(sealed), PLACE, self.id))
            return found
        except (GatewayError, ValueError) as error:
            log.error("The secret arguments of a question are lost: %s", error, extra={"approval": self.id})
            return {}

    def masked(self) -> "EarlierQuestion":
        secret = frozenset(self.body["secret"])
        arguments = mask_arguments(self.call["arguments"], secret)
        body = {name: value for name, value in self.body.items() if name != "sealed"}
        if "call" in body:
            body["call"] = {**self.call, "arguments": arguments}
        else:
            body["arguments"] = arguments
        signature = without_secrets(self.signature, self.body["wire"], arguments)
        return EarlierQuestion(self.id, self.state, signature, body, self.step)


def without_secrets(signature: str, wire: str, masked: Mapping[str, Any]) -> str:
    """A signature that spelled its arguments, made of the masked ones; a tool's own template names no secret."""
    return pairs(wire, masked) if shows_secrets(signature, masked) else signature


def shows_secrets(signature: str, masked: Mapping[str, Any]) -> bool:
    names = [name for name, value in masked.items() if value == MASK]
    return any(f"{name}=" in signature and f"{name}={MASK}" not in signature for name in names)


async def move_secrets(store: Store, vault: Vault, folder: Path) -> None:
    """Done once, and again where an earlier version was started meanwhile."""
    file = folder / KEY_FILE
    if not file.exists() and await store.read("SELECT 1 FROM kv WHERE name = ?", (MOVED,)):
        return
    rows = await store.read(QUESTIONS)
    questions = [question_of(*row) for row in rows]
    shown = [one for one in questions if one.plain]
    statements = [
        *of_questions(questions, read_key(file), vault),
        *of_results(await store.read(MASKED_RESULTS)),
    ]
    held = [vault.holding()] if vault.is_open else []
    await store.write(*held, *statements, NOTE_MOVED)
    if shown or any("results" in statement.sql for statement in statements):
        await store.rewrite()
    file.unlink(missing_ok=True)
    await tell_of_record(store)


def question_of(ident: str, state: str, signature: str, body: str, step: int | None) -> EarlierQuestion:
    return EarlierQuestion(ident, state, signature, msgspec.json.decode(body), step or 0)


def read_key(file: Path) -> SealingKey | None:
    try:
        return SealingKey(bytes.fromhex(file.read_text("ascii"))) if file.exists() else None
    except (OSError, ValueError) as error:
        log.error("%s cannot be read, and what it sealed is lost: %s", file, error)
        return None


def of_questions(
    questions: list[EarlierQuestion], key: SealingKey | None, vault: Vault
) -> Iterator[Statement]:
    for question in questions:
        if not question.plain and "sealed" not in question.body:
            continue
        if question.waits and vault.is_open and (secret := question.opened(key)):
            yield keeping(vault, question.id, secret)
        masked = question.masked()
        body = msgspec.json.encode(masked.body).decode()
        yield Statement(
            "UPDATE approvals SET body = ?, signature = ? WHERE id = ?", (body, masked.signature, question.id)
        )
        if masked.signature != question.signature:
            granted = msgspec.json.encode({"signature": masked.signature}).decode()
            yield Statement("UPDATE grants SET body = ? WHERE approval = ?", (granted, question.id))


def of_results(rows: list[tuple[Any, ...]]) -> Iterator[Statement]:
    for call, wire, signature, arguments in rows:
        masked = without_secrets(signature, wire, msgspec.json.decode(arguments))
        if masked != signature:
            yield Statement("UPDATE results SET signature = ? WHERE call = ?", (masked, call))


async def tell_of_record(store: Store) -> None:
    bodies = [msgspec.json.decode(body) for (body,) in await store.read(MASKED_ROWS)]
    shown = sum(shows_secrets(body.get("signature", ""), body.get("arguments") or {}) for body in bodies)
    if shown:
        log.warning(
            "%d rows of the record, written by an earlier version, show secret arguments in their signature. They stay, "
            "since a record that is rewritten proves nothing: change these secrets, and keep the database to yourself",
            shown,
        )
