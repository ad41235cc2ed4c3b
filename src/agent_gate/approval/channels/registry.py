"""Every kind of channel, by the `type` that the configuration says."""

from collections.abc import Mapping
from typing import Any

from agent_gate.approval.channels.kind import ChannelKind
from agent_gate.approval.channels.push import PUSH
from agent_gate.approval.channels.telegram import TELEGRAM
from agent_gate.approval.channels.webhook import WEBHOOK

CHANNELS: Mapping[str, ChannelKind[Any]] = {
    "telegram": TELEGRAM,
    "webhook": WEBHOOK,
    "push": PUSH,
}
