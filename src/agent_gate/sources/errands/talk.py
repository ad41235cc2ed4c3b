"""What is said while an errand is done: progress, log messages, and the server's questions to the caller's client.

The gateway that runs the source has a `FarCaller` for the caller; the one where the call was made has the caller itself,
and a `NearTalk` that tells and asks it. Between them go words (`store/words.py`), sealed and numbered. Few words are
written: what is said while one is on its way shares the next, and what was said last comes with the answer.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from agent_gate.core.approval import Answer, Approval
from agent_gate.core.ports import Conversation
from agent_gate.core.tasks import KeptTasks
from agent_gate.core.tool import Json
from agent_gate.errors import GatewayError, InvalidArgs
from agent_gate.sources.errands.rows import ErrandBody, ErrandMessage, decode_messages, encode
from agent_gate.store.words import GatewayWords, Word
from agent_gate.vault.sealing import SealingKey, VaultFault

log = logging.getLogger("agent_gate.sources")
KIND = "errand"
MOST_NOTES = 1_000
NOTE, QUESTION, ANSWER, REFUSAL, WITHDRAWAL = "note", "question", "answer", "refusal", "withdrawal"
UNANSWERED = "the caller's client did not answer"
OVER = "This call has ended, so its caller can be asked nothing"
ASKER_GONE = "The gateway where this call was made is gone, and its caller's client with it"


class ErrandLine:
    """The words about one errand, to the other gateway and from it. Each side counts its own, from 1."""

    def __init__(self, words: GatewayWords, key: SealingKey, ident: str, me: str, other: str) -> None:
        self._words, self._key, self._ident, self._me, self.other = words, key, ident, me, other
        self._unsaid: deque[ErrandMessage] = deque()
        self._saying: asyncio.Task[None] | None = None
        self.said = self.heard = 0

    def say(self, message: ErrandMessage) -> None:
        if message.kind == NOTE and len(self._unsaid) >= MOST_NOTES:
            self._drop_note()
        self._unsaid.append(message)
        if self._saying is None:
            self._saying = asyncio.get_running_loop().create_task(self._say_all())

    def _drop_note(self) -> None:
        """The oldest one that waits: of much progress the last counts."""
        oldest = next((one for one in self._unsaid if one.kind == NOTE), None)
        if oldest is not None:
            self._unsaid.remove(oldest)

    async def _say_all(self) -> None:
        try:
            while self._unsaid:
                messages, number = self.take_unsaid(), self.said + 1
                sealed = self._key.seal(encode(messages), "word", self._ident, self._me, str(number))
                self.said = number
                await self._words.say(Word(self.other, KIND, self._ident, sealed))
        except GatewayError as error:
            log.debug("What was said while a call ran did not reach its caller: %s", error.message)
        finally:
            self._saying = None

    async def wait_said(self) -> None:
        """Return when what is on its way is durable."""
        if self._saying is not None:
            await asyncio.wait([self._saying])

    def take_unsaid(self) -> tuple[ErrandMessage, ...]:
        """What nobody has written yet, which the answer takes along."""
        messages = tuple(self._unsaid)
        self._unsaid.clear()
        return messages

    def hear(self, sealed: bytes) -> tuple[ErrandMessage, ...]:
        """What the other gateway said, if that is its next word: one that was altered or put back says nothing."""
        try:
            opened = self._key.open(sealed, "word", self._ident, self.other, str(self.heard + 1))
            messages = decode_messages(opened)
        except (VaultFault, msgspec.DecodeError):
            log.warning("What another gateway said about a call cannot be read, and counts for nothing")
            return ()
        self.heard += 1
        return messages


class FarCaller:
    """The caller of an errand where its source runs: the `Conversation` of its call."""

    def __init__(self, body: ErrandBody, line: ErrandLine) -> None:
        self.protocol, self.capabilities = body.protocol, body.capabilities or {}
        self.can_be_asked, self.comes_back = body.can_be_asked, body.comes_back
        self.line = line
        self._asked: dict[int, asyncio.Future[Json]] = {}
        self._numbers = 0
        self._over = ""

    async def ask(self, approval: Approval) -> Answer | None:
        """Approval is a matter of the gateway where the call was made."""
        del approval
        return None

    async def notify(self, method: str, params: Mapping[str, Json]) -> None:
        if not self._over:
            self.line.say(ErrandMessage(kind=NOTE, method=method, body=dict(params)))

    async def request(self, method: str, params: Mapping[str, Json]) -> Json:
        if self._over:
            raise InvalidArgs(self._over)
        self._numbers += 1
        number = self._numbers
        waiting = self._asked[number] = asyncio.get_running_loop().create_future()
        self.line.say(ErrandMessage(kind=QUESTION, number=number, method=method, body=dict(params)))
        try:
            return await waiting
        finally:
            del self._asked[number]
            if waiting.cancelled() and not self._over:
                self.line.say(ErrandMessage(kind=WITHDRAWAL, number=number))

    @property
    def waits(self) -> bool:
        """Whether it was asked something that has no answer yet."""
        return bool(self._asked)

    def hear(self, sealed: bytes) -> None:
        for message in self.line.hear(sealed):
            waiting = self._asked.get(message.number)
            if waiting is None or waiting.done():
                continue
            if message.kind == ANSWER:
                waiting.set_result(message.body)
            elif message.kind == REFUSAL:
                waiting.set_exception(InvalidArgs(str(message.body)))

    def end(self, why: str = OVER) -> None:
        """Nobody can be asked any more; what was asked is declined."""
        self._over = why
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(InvalidArgs(why))


class NearTalk:
    """The caller of an errand where it called: tells and asks it what the gateway that runs the source says."""

    def __init__(self, conversation: Conversation, open_line: Callable[[str], ErrandLine]) -> None:
        self._conversation, self._open_line = conversation, open_line
        self._line: ErrandLine | None = None
        self._notes: deque[ErrandMessage] = deque(maxlen=MOST_NOTES)
        self._telling: asyncio.Task[None] | None = None
        self._questions: dict[int, asyncio.Task[None]] = {}
        self._tasks = KeptTasks(log, "A caller could not be told what its call says")

    @property
    def heard(self) -> int:
        return self._line.heard if self._line is not None else 0

    def hear(self, teller: str, sealed: bytes) -> None:
        if self._line is None:
            self._line = self._open_line(teller)
        if self._line.other == teller:
            self.take(self._line.hear(sealed))

    def take(self, messages: tuple[ErrandMessage, ...]) -> None:
        for message in messages:
            if message.kind == NOTE:
                self._notes.append(message)
            elif message.kind == QUESTION and message.number not in self._questions:
                self._questions[message.number] = self._tasks.start(self._ask(message))
            elif message.kind == WITHDRAWAL and message.number in self._questions:
                self._questions[message.number].cancel()
        if self._notes and self._telling is None:
            self._telling = self._tasks.start(self._tell())

    async def _tell(self) -> None:
        try:
            while self._notes:
                note = self._notes.popleft()
                await attempt(self._conversation.notify(note.method, note.body))
        finally:
            self._telling = None

    async def _ask(self, message: ErrandMessage) -> None:
        assert self._line is not None
        if self._telling is not None:
            await asyncio.wait([self._telling])
        try:
            said = await self._conversation.request(message.method, message.body)
            self._line.say(ErrandMessage(kind=ANSWER, number=message.number, body=said))
        except GatewayError as error:
            self._line.say(ErrandMessage(kind=REFUSAL, number=message.number, body=error.message))
        except (TimeoutError, ConnectionError):
            self._line.say(ErrandMessage(kind=REFUSAL, number=message.number, body=UNANSWERED))

    async def end(self, last: tuple[ErrandMessage, ...] = ()) -> None:
        """Tell what came before the answer, and ask nothing more."""
        self.take(tuple(one for one in last if one.kind == NOTE))
        for question in self._questions.values():
            question.cancel()
        if self._telling is not None:
            await asyncio.wait([self._telling])

    async def cancel(self) -> None:
        await self._tasks.cancel()


async def attempt(telling: Awaitable[None]) -> None:
    """A caller that is gone misses what it is told, and the call goes on."""
    try:
        await telling
    except (GatewayError, TimeoutError, ConnectionError) as error:
        log.debug("A note did not reach its caller: %s", error)
