"""The Telegram channel: questions with buttons in a chat, answers by long polling, no public address needed.

Who pressed is taken from the platform's update, never from text. A button carries the approval's id under a seal,
so that it still works after a restart and cannot be made up.
"""

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated

import msgspec

from agent_gate.approval.channels import chat
from agent_gate.approval.channels.bot import Bot, BotMessage, BotRefused, CallbackQuery, Update, User
from agent_gate.approval.channels.buttons import LABELS, Action, Pressed, answer_of
from agent_gate.approval.channels.desk import Desk
from agent_gate.approval.channels.kind import ChannelKind, ChannelSettings, Names, PersonKey
from agent_gate.approval.numbers import offered_numbers
from agent_gate.approval.render import visible_lines
from agent_gate.core.approval import Approval
from agent_gate.core.call import State
from agent_gate.core.notes import ADDRESS, GIVEN, SECRET, Filled
from agent_gate.core.tool import Json
from agent_gate.errors import GatewayError
from agent_gate.observe.redact import mask_arguments

log = logging.getLogger("agent_gate.channels.telegram")
POLL_SECONDS = 50
UNREADABLE_PAUSE = 1.0
ROWS: tuple[tuple[Action, ...], ...] = (("once", "hour"), ("always", "deny"))
NOT_YOURS = "Only the people this gateway knows may answer."
NOT_OURS = "This button is not valid."
NOTED = "Noted. It goes along as the reason when you press a button."
CLOSED = "This question is closed."
MOST_REASONS = 200
NUMBER = re.compile(r"-?[0-9]{1,19}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramSettings(ChannelSettings):
    """A Telegram bot that asks in a chat and takes the answer from its buttons."""

    token: Annotated[str, "The bot's token.", SECRET] = field(repr=False)
    chat_id: Annotated[int | str, "The chat to ask in."]
    allowed_users: Annotated[
        tuple[int, ...],
        "Telegram ids of those whose press counts; not empty.",
        Filled("so nobody could answer"),
    ]
    base_url: Annotated[str, "The Bot API's address.", ADDRESS] = "https://api.telegram.org"
    name: Annotated[str, "Name in records and logs."] = "telegram"
    type: Annotated[str, "Kind of channel.", GIVEN] = "telegram"


def chat_of(given: int | str) -> int | str:
    """A chat's number also where it came as text, as from a variable; else its name."""
    return int(given) if NUMBER.fullmatch(str(given)) else given


class Telegram:
    """One bot in one chat. `people` are the names of Telegram ids."""

    def __init__(self, settings: TelegramSettings, desk: Desk, people: Names) -> None:
        self.name = settings.name
        self._chat, self._allowed = chat_of(settings.chat_id), frozenset(settings.allowed_users)
        self._people, self._desk = people, desk
        self._bot = Bot(desk.pool, desk.clock, settings.base_url, settings.token)
        self._reasons: dict[tuple[str, int], str] = {}
        self._offset = 0
        self._unreadable: set[bytes] = set()
        """Digests of updates that could not be read; where their number cannot be read either, they come again."""

    async def ask(self, approval: Approval) -> str:
        message, cut = chat.parts(self._desk.card(approval), self._desk.clock.now())
        markup = {"reply_markup": {"inline_keyboard": self._keyboard(approval, cut=cut)}}
        number = await self._show("sendMessage", message, markup)
        if approval.asked.picture:
            await self._send_picture(approval, number)
        return str(number)

    async def _send_picture(self, approval: Approval, question: int) -> None:
        """What the source shows, as a reply to its question; one that does not get through is looked at elsewhere."""
        fields = {
            "chat_id": str(self._chat),
            "caption": f"#{approval.id[-8:]}",
            "reply_parameters": msgspec.json.encode({"message_id": question}).decode(),
        }
        try:
            picture = await self._desk.picture(approval)
            if picture is not None:
                await self._bot.send_photo(fields, picture.media_type, picture.body)
        except GatewayError as error:
            log.warning("A picture was not sent", extra={"approval": approval.id, "why": error.message})

    async def show_end(self, approval: Approval, message: str) -> None:
        """Show the end on the message and take its buttons away, then what became of the call."""
        await self._edit(approval, message)
        if approval.state is State.APPROVED:
            await self._edit(approval, message, await self._desk.learn_outcome(approval))

    async def _edit(self, approval: Approval, message: str, became: str = "") -> None:
        text, _ = chat.parts(self._desk.card(approval), self._desk.clock.now(), became)
        try:
            await self._show("editMessageText", text, {"message_id": int(message)})
        except BotRefused as refused:
            gone = refused.says("message to edit not found") or refused.says("message can't be edited")
            if not gone and not refused.says("message is not modified"):
                raise

    async def _show(self, method: str, message: Sequence[chat.ChatPart], more: Mapping[str, Json]) -> int:
        """Send or edit with markup; where the platform does not like the markup, as plain text."""
        base = {"chat_id": self._chat, "link_preview_options": {"is_disabled": True}, **more}
        try:
            return await self._bot.send_message(
                method, base | {"text": chat.as_html(message), "parse_mode": "HTML"}
            )
        except BotRefused as refused:
            if not refused.says("can't parse entities"):
                raise
        return await self._bot.send_message(method, base | {"text": chat.as_text(message)})

    def _keyboard(self, approval: Approval, *, cut: bool) -> list[list[dict[str, str]]]:
        numbers = offered_numbers(approval)
        rows = (
            self._numbered(approval, numbers)
            if numbers
            else [[self._button(approval, action, LABELS[action]) for action in row] for row in ROWS]
        )
        return [*rows, [self._button(approval, "full", "Show all arguments")]] if cut else rows

    def _numbered(self, approval: Approval, numbers: Sequence[str]) -> list[list[dict[str, str]]]:
        """A yes is a press on the right number; the wrong one is a no."""
        yes = [self._button(approval, "once", number, number) for number in numbers]
        half = (len(yes) + 1) // 2
        return [yes[:half], yes[half:], [self._button(approval, "deny", LABELS["deny"])]]

    def _button(self, approval: Approval, action: Action, label: str, number: str = "") -> dict[str, str]:
        sealed = self._desk.buttons.make(self.name, approval.id, action, number)
        return {"text": label, "callback_data": sealed}

    async def run(self) -> None:
        """Read what happens in the chat for ever. An update is confirmed by asking for the next one."""
        while True:
            updates = await self._bot.fetch_updates(self._offset, POLL_SECONDS)
            for raw in updates:
                await self._handle(raw)
                self._confirm(raw)
            if updates and number_of(updates[-1]) is None:
                await asyncio.sleep(UNREADABLE_PAUSE)
            if not updates:
                # Numbers start anywhere after a quiet week, and an empty answer means that all were confirmed.
                self._offset = 0
                self._unreadable.clear()

    async def _handle(self, raw: msgspec.Raw) -> None:
        try:
            update = msgspec.json.decode(raw, type=Update)
        except (msgspec.DecodeError, RecursionError) as error:
            if (known := sha256(raw).digest()) not in self._unreadable:
                log.warning("An update cannot be read and is skipped", extra={"why": str(error)})
            self._unreadable.add(known)
            return
        try:
            if update.callback_query is not None:
                await self._take_press(update.callback_query)
            elif update.message is not None:
                await self._take_message(update.message)
        except GatewayError as error:
            log.warning("An update could not be answered", extra={"channel": self.name, "why": error.message})

    def _confirm(self, raw: msgspec.Raw) -> None:
        """Ask for what follows from now on. They come in order, so one without a number has at least the next."""
        number = number_of(raw)
        if number is not None:
            self._offset = number + 1
        elif self._offset:
            self._offset += 1

    def _person(self, user: User | None) -> str | None:
        """The name of somebody whose press counts; None for everybody else."""
        if user is None or user.id not in self._allowed:
            return None
        return self._people.get(user.id) or ("operator" if len(self._allowed) == 1 else f"telegram:{user.id}")

    async def _take_press(self, query: CallbackQuery) -> None:
        person = self._person(query.sender)
        pressed = self._desk.buttons.read(self.name, query.data or "")
        if person is None or pressed is None or not self._here(query.message):
            self._note_refusal("stranger" if person is None else "forged", query.sender)
            said = NOT_YOURS if person is None else NOT_OURS
        elif pressed.action == "full":
            said = await self._send_all(pressed.approval_id)
        else:
            said = await self._take(pressed, person, query.sender, query.message)
        await self._bot.call("answerCallbackQuery", {"callback_query_id": query.id, "text": said[:200]})

    async def _take(self, pressed: Pressed, person: str, user: User, message: BotMessage | None) -> str:
        reason = self._reasons.pop((pressed.approval_id, user.id), "")
        answer = answer_of(pressed.action, person, self.name, reason, pressed.number)
        try:
            approval = await self._desk.answer(pressed.approval_id, answer)
        except GatewayError as error:
            self._note_refusal("late" if error.code == "INVALID_ARGS" else "not_allowed", user)
            return error.message
        if approval.state is State.PENDING and message is not None:
            await self._show_agreed(approval, message.message_id)
        return self._desk.card(approval).outcome()

    async def _show_agreed(self, approval: Approval, message: int) -> None:
        """Who said yes already, on the question itself; its buttons stay."""
        text, cut = chat.parts(self._desk.card(approval), self._desk.clock.now())
        markup = {"inline_keyboard": self._keyboard(approval, cut=cut)}
        try:
            await self._show("editMessageText", text, {"message_id": message, "reply_markup": markup})
        except GatewayError as error:
            log.warning("A message does not show who agreed", extra={"why": error.message})

    async def _send_all(self, approval_id: str) -> str:
        """The arguments as they will run, secrets masked, as a file."""
        approval = await self._desk.inbox.get(approval_id)
        if approval is None:
            return CLOSED
        shown = msgspec.json.format(
            msgspec.json.encode(mask_arguments(approval.arguments, approval.asked.secret))
        )
        content = visible_lines(self._desk.redactor.known(shown.decode())).encode()
        fields = {
            "chat_id": str(self._chat),
            "caption": f"#{approval.id[-8:]}: the hash that was asked about is {approval.hashes.arguments}",
        }
        await self._bot.send_document(fields, f"arguments-{approval.id[-8:]}.json", content)
        return "Here they are."

    async def _take_message(self, message: BotMessage) -> None:
        """`/pending`, or a reply to a question: its text is the reason of the press that follows."""
        if self._person(message.sender) is None or not self._here(message) or message.text is None:
            return
        if message.text.split("@")[0].strip() == "/pending":
            await self._reply(message, self._pending())
        elif message.reply_to_message is not None:
            await self._note(message, message.reply_to_message)

    async def _note(self, message: BotMessage, about: BotMessage) -> None:
        approval = await self._desk.find_question(self.name, str(about.message_id))
        if approval is None or message.sender is None:
            return
        if approval.state is not State.PENDING:
            await self._reply(message, CLOSED)
            return
        while len(self._reasons) >= MOST_REASONS:
            self._reasons.pop(next(iter(self._reasons)))
        self._reasons[approval.id, message.sender.id] = (message.text or "")[:500]
        await self._reply(message, NOTED)

    def _pending(self) -> str:
        return chat.pending_list(map(self._desk.card, self._desk.inbox.open()), self._desk.clock.now())

    async def _reply(self, message: BotMessage, text: str) -> None:
        params = {
            "chat_id": message.chat.id,
            "text": text,
            "reply_parameters": {"message_id": message.message_id, "allow_sending_without_reply": True},
            "link_preview_options": {"is_disabled": True},
        }
        await self._bot.call("sendMessage", params)

    def _here(self, message: BotMessage | None) -> bool:
        """Whether this happened in the chat that is asked, which is given by its number or by its public name."""
        if message is None:
            return False
        if isinstance(self._chat, int):
            return message.chat.id == self._chat
        name = message.chat.username
        return name is not None and name.lower() == self._chat.removeprefix("@").lower()

    def _note_refusal(self, why: str, user: User) -> None:
        self._desk.metrics.answers_refused.add(self.name, why)
        log.warning("An answer was refused", extra={"channel": self.name, "why": why, "user": user.id})


class Numbered(msgspec.Struct):
    """The part that every update has."""

    update_id: Annotated[int, msgspec.Meta(ge=0, lt=2**53)]


def number_of(raw: msgspec.Raw) -> int | None:
    try:
        return msgspec.json.decode(raw, type=Numbered).update_id
    except (msgspec.DecodeError, RecursionError):
        return None


TELEGRAM = ChannelKind(
    settings=TelegramSettings,
    make=Telegram,
    people=lambda settings: [f"telegram:{user}" for user in settings.allowed_users],
    person_key=PersonKey(int, "Telegram user id."),
)
