"""`Desk`: what a channel is made with. It can read questions and hand in answers, and nothing else."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agent_gate.approval.channels.buttons import Buttons
from agent_gate.approval.channels.devices import PushDevices
from agent_gate.approval.inbox import Inbox
from agent_gate.approval.pictures import read_picture
from agent_gate.approval.render import Card, card, fate
from agent_gate.core.approval import Answer, Approval
from agent_gate.core.call import Outcome
from agent_gate.core.ports import Clock, Picture
from agent_gate.net.pool import Pool
from agent_gate.observe.metrics import Metrics
from agent_gate.observe.redact import Redactor
from agent_gate.store.statement import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    inbox: Inbox
    store: Store
    clock: Clock
    pool: Pool
    metrics: Metrics
    redactor: Redactor
    buttons: Buttons
    devices: PushDevices
    answer: Callable[[str, Answer], Awaitable[Approval]]
    became: Callable[[Approval], Awaitable[Outcome | None]]
    page: Callable[[], str | None]
    """Where people reach the operator's page, as links say it; None where nothing is served."""

    def card(self, approval: Approval) -> Card:
        """What leaves this machine: the card without any secret this gateway knows."""
        return card(approval, self.redactor.known)

    async def learn_outcome(self, approval: Approval) -> str:
        """What became of the call of an approved question, as far as that is known soon."""
        return self.redactor.known(fate(approval, await self.became(approval)))

    async def picture(self, approval: Approval) -> Picture | None:
        return await read_picture(self.store, approval)

    async def find_question(self, channel: str, message: str) -> Approval | None:
        """The question that a message of this channel asked."""
        rows = await self.store.read(
            "SELECT approval FROM deliveries WHERE channel = ? AND message = ?", (channel, message)
        )
        return await self.inbox.get(rows[0][0]) if rows else None
