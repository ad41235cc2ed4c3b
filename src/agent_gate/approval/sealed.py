"""Keeps the secret arguments of a waiting call out of the database's plain text.

A call that waits for a person must still know them after a restart, so they are sealed with a key that is not in the
database, bound to their question. Everything else of the question is stored as it is, with a mask in their place.
"""

import base64
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import msgspec
from msgspec import structs

from agent_gate.core.approval import Approval
from agent_gate.core.call import State
from agent_gate.errors import GatewayError, Internal
from agent_gate.observe.redact import mask_arguments

log = logging.getLogger("agent_gate.approvals")
WAITING = (State.PENDING, State.APPROVED)


class SealsValues(Protocol):
    """A key: what it sealed for a place opens for that place only, and else raises a `GatewayError`."""

    def seal(self, value: bytes, *place: str) -> bytes: ...

    def open(self, sealed: bytes, *place: str) -> bytes: ...


def seal_arguments(approval: Approval, key: SealsValues | None) -> tuple[Mapping[str, Any], str]:
    """The arguments as they may be stored in plain text, and the secret ones sealed."""
    secret = {name: value for name, value in approval.arguments.items() if name in approval.secret}
    if not secret:
        return approval.arguments, ""
    if key is None:
        raise Internal("There is no key to seal the secret arguments of this call with")
    sealed = key.seal(msgspec.json.encode(secret), "approvals", approval.id)
    return mask_arguments(approval.arguments, approval.secret), base64.b64encode(sealed).decode()


def open_arguments(approval: Approval, sealed: str, key: SealsValues | None) -> Approval:
    """The question with its secret arguments, where its call may still run; one that lost them runs out at once."""
    if not sealed or approval.state not in WAITING:
        return approval
    try:
        if key is None:
            raise Internal("There is no key to open the secret arguments of this call with")
        opened = key.open(base64.b64decode(sealed), "approvals", approval.id)
        arguments = {**approval.arguments, **msgspec.json.decode(opened)}
        return replace(approval, call=structs.replace(approval.call, arguments=arguments))
    except (GatewayError, ValueError) as error:
        log.error("A question cannot be asked any more: %s", error, extra={"approval": approval.id})
        return replace(approval, expires_at=approval.asked_at)
