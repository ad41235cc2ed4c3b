"""What asks people beside the page and the terminal: the channels of the configuration, and what they are made with."""

from typing import TYPE_CHECKING

from agent_gate.approval.channels.buttons import Buttons
from agent_gate.approval.channels.desk import Desk
from agent_gate.approval.channels.dispatcher import Dispatcher, ToldChannel
from agent_gate.approval.channels.make import make_channels
from agent_gate.approval.pictures import purge_pictures
from agent_gate.audit import ensure_key
from agent_gate.calls.sweeper import HOUR, Sweeper
from agent_gate.config.settings import Settings

if TYPE_CHECKING:
    from agent_gate.app.gateway import Gateway


class AskingPeople:
    """The dispatcher, and what its channels are made with."""

    def __init__(self, gateway: "Gateway", sweeper: Sweeper) -> None:
        kept, clock = gateway.kept, gateway.clock
        self._redact = gateway.redactor.text
        self._dispatcher = Dispatcher(kept.store, kept.inbox, clock, gateway.metrics)
        self.buttons = Buttons(ensure_key(gateway.folder / "channels.key"))
        self._desk = Desk(
            inbox=kept.inbox,
            store=kept.store,
            clock=clock,
            pool=gateway.pool,
            metrics=gateway.metrics,
            redactor=gateway.redactor,
            buttons=self.buttons,
            answer=gateway.calls.answer,
            became=gateway.calls.became,
            page=gateway.listeners.people_url,
        )
        self.start, self.stop = self._dispatcher.start, self._dispatcher.stop
        sweeper.every(HOUR, self._dispatcher.purge)
        sweeper.every(HOUR, lambda: purge_pictures(kept.store, clock))

    def make(self, settings: Settings) -> list[ToldChannel]:
        """The channels on which these settings want people to be asked."""
        return make_channels(settings.channels, settings.people, self._desk)

    def faults(self) -> dict[str, str]:
        """Why a channel reaches nobody, by its name."""
        return {name: self._redact(why) for name, why in self._dispatcher.faults.items()}
