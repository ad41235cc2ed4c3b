"""Pictures beside questions: taken from the source within seconds, kept with the question, shown to people."""

import asyncio
import logging

from agent_gate.core.approval import Approval
from agent_gate.core.call import Case
from agent_gate.core.ports import Clock, Picture, Witness
from agent_gate.store.statement import Statement, Store

log = logging.getLogger("agent_gate.approvals")
SECONDS = 3.0
MOST_BYTES = 5 << 20
MEDIA_TYPES = ("image/png", "image/jpeg", "image/webp")
KEPT_SECONDS = 7 * 86_400.0
"""How long after the end of its question's time a picture can still be looked at."""
INSERT = "INSERT INTO pictures (approval, media_type, body, expires_at) VALUES (?, ?, ?, ?)"


async def take_picture(witness: Witness, case: Case) -> Picture | None:
    """What the source shows of a call, if it does so in time; a question is asked without one too."""
    try:
        async with asyncio.timeout(SECONDS):
            picture = await witness.picture(case.tool, case.call)
        why = fault_of(picture) if picture is not None else ""
    except TimeoutError:
        picture, why = None, f"it took more than {SECONDS:g} s"
    except Exception as error:  # noqa: BLE001 - the boundary: whatever a source does here, the person is asked
        picture, why = None, f"{type(error).__name__}: {error}"
    if not why:
        return picture
    log.warning("A question is asked without its picture", extra={"source": case.tool.source, "why": why})
    return None


def fault_of(picture: Picture) -> str:
    """Why a picture cannot be shown; empty where it can."""
    if picture.media_type not in MEDIA_TYPES:
        return f"it is {picture.media_type[:64]}, not one of {', '.join(MEDIA_TYPES)}"
    return f"it has more than {MOST_BYTES} bytes" if len(picture.body) > MOST_BYTES else ""


def keep_picture(approval: Approval, picture: Picture) -> Statement:
    return Statement(
        INSERT, (approval.id, picture.media_type, picture.body, approval.asked.expires_at + KEPT_SECONDS)
    )


async def read_picture(store: Store, approval: Approval) -> Picture | None:
    """The picture of a question, as long as it is kept."""
    if not approval.asked.picture:
        return None
    rows = await store.read("SELECT media_type, body FROM pictures WHERE approval = ?", (approval.id,))
    return Picture(rows[0][0], bytes(rows[0][1])) if rows else None


async def purge_pictures(store: Store, clock: Clock) -> None:
    await store.write(Statement("DELETE FROM pictures WHERE expires_at <= ?", (clock.now(),)))
