"""The envelope that every event travels in, and how one that a component sends is read: strictly."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from agent_gate.core.call import new_id
from agent_gate.peers.encoding import Malformed, from_time, to_time
from agent_gate.peers.messages import Name
from agent_gate.peers.toolwire import VERSION, OnlyVersion, read_wire

EVENTS = "/v1/events"
MOST_EVENT_BYTES = 64 << 10
EventType = Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*){1,4}\Z", max_length=100)]
ShortText = Annotated[str, Meta(max_length=512)]


class EventSource(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Who says that it happened. Of a component, the gateway fills in which peer that is."""

    component_type: Name
    component_id: Name
    platform: ShortText | UnsetType = UNSET
    channel_id: ShortText | UnsetType = UNSET
    actor_id: ShortText | UnsetType = UNSET
    message_id: ShortText | UnsetType = UNSET
    request_id: ShortText | UnsetType = UNSET
    peer_id: ShortText | UnsetType = UNSET
    mtls_cert_fingerprint: ShortText | UnsetType = UNSET
    transport: ShortText | UnsetType = UNSET


class EventRouting(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Whom it concerns. Events of one session come in their order."""

    agent_id: ShortText
    session_id: ShortText
    isolation_key: ShortText | UnsetType = UNSET
    target: ShortText | UnsetType = UNSET
    policy_tags: Annotated[list[ShortText], Meta(max_length=32)] | UnsetType = UNSET


class PeerEvent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Something that happened. `event_id` is the same whenever it is told again."""

    version: OnlyVersion
    event_id: Annotated[str, Meta(min_length=1, max_length=128)]
    trace_id: ShortText
    occurred_at: ShortText
    event_type: EventType
    tenant_id: ShortText
    source: EventSource
    routing: EventRouting
    payload: dict[str, Any]
    idempotency_key: Annotated[str, Meta(min_length=1, max_length=200)] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = UNSET


def read_event(body: bytes) -> PeerEvent:
    """An event as it was sent; `Malformed` says in which field it is none."""
    if len(body) > MOST_EVENT_BYTES:
        raise Malformed(f"an event has at most {MOST_EVENT_BYTES} bytes")
    event = read_wire(body, PeerEvent)
    from_time(event.occurred_at)
    return event


def new_event(
    event_type: str,
    payload: dict[str, Any],
    source: EventSource,
    *,
    tenant: str,
    now: float,
    agent: str = "",
    session: str = "",
) -> PeerEvent:
    """An event that happens now; without a session it is one of its own."""
    event_id = new_id()
    made = PeerEvent(
        version=VERSION,
        event_id=event_id,
        trace_id=event_id,
        occurred_at=to_time(now),
        event_type=event_type,
        tenant_id=tenant,
        source=source,
        routing=EventRouting(agent_id=agent, session_id=session or event_id),
        payload=payload,
    )
    return msgspec.convert(msgspec.to_builtins(made), PeerEvent)
