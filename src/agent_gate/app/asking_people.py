"""What asks people beside the page and the terminal: the channels of the configuration, and what they are made with."""

from typing import TYPE_CHECKING

from agent_gate.access.answering import AnswersByRole
from agent_gate.access.people import People
from agent_gate.approval.channels.buttons import Buttons
from agent_gate.approval.channels.desk import Desk
from agent_gate.approval.channels.devices import PushDevices
from agent_gate.approval.channels.dispatcher import Dispatcher, ToldChannel
from agent_gate.approval.channels.make import make_channels
from agent_gate.approval.channels.push import Pushing
from agent_gate.approval.pictures import purge_pictures
from agent_gate.calls.sweeper import HOUR, Sweeper
from agent_gate.config.settings import Settings
from agent_gate.store.gateways import BEAT_SECONDS
from agent_gate.store.leases import Exclusive

if TYPE_CHECKING:
    from agent_gate.app.gateway import Gateway


class AskingPeople:
    """The dispatcher, and what its channels are made with."""

    def __init__(self, gateway: "Gateway", people: People, sweeper: Sweeper) -> None:
        kept, clock = gateway.kept, gateway.clock
        self._redact = gateway.redactor.text
        self._dispatcher = Dispatcher(kept.store, kept.inbox, clock, gateway.metrics)
        self.buttons = Buttons(kept.button_key)
        self._turn = Exclusive(kept.store, clock, "channels", self._begin, self._dispatcher.stop)
        self._channels: list[ToldChannel] | None = None
        self._desk = Desk(
            inbox=kept.inbox,
            store=kept.store,
            clock=clock,
            pool=gateway.pool,
            metrics=gateway.metrics,
            redactor=gateway.redactor,
            buttons=self.buttons,
            devices=PushDevices(
                kept.vault,
                clock,
                people.answers,
                lambda person, namespace: people.rights(person).answer_for(namespace),
            ),
            answer=AnswersByRole(people, kept.inbox.get, gateway.calls.answer),
            became=gateway.calls.learn_outcome,
            page=gateway.listeners.people_url,
        )
        self.pushing = Pushing(self._desk, lambda: gateway.settings.channels)
        sweeper.run_every(BEAT_SECONDS, self._look)
        sweeper.run_every(HOUR, self._dispatcher.purge)
        sweeper.run_every(HOUR, lambda: purge_pictures(kept.store, clock))

    async def start(self, channels: list[ToldChannel]) -> None:
        """Ask on these channels, on the one gateway that does so: each question is told once, and a bot that is polled
        has one who polls it."""
        self._channels = channels
        await self._turn.look()

    async def stop(self) -> None:
        self._channels = None
        await self._turn.close()

    async def _begin(self) -> None:
        await self._dispatcher.start(self._channels or [])

    async def _look(self) -> None:
        if self._channels is not None:
            await self._turn.look()

    def make(self, settings: Settings) -> list[ToldChannel]:
        """The channels on which these settings want people to be asked."""
        return make_channels(settings.channels, settings.people, self._desk)

    def faults(self) -> dict[str, str]:
        """Why a channel reaches nobody, by its name."""
        return {name: self._redact(why) for name, why in self._dispatcher.faults.items()}
