"""The Telegram Bot API, as far as this gateway needs it: six methods over the outbound pool."""

import json
import secrets
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from agent_gate.core.ports import Clock
from agent_gate.errors import DependencyUnavailable, UpstreamError
from agent_gate.net.pool import Pool, Target

SECONDS = 15.0
T = TypeVar("T")
MAX_REPLY = 4 << 20


class BotRefused(UpstreamError):
    """The Bot API said no. `status` is its error code, `description` its words."""

    def __init__(self, method: str, status: int, description: str, retry_after: float | None) -> None:
        super().__init__(f"Telegram refused {method}: {status} {description[:200]}", retry_after=retry_after)
        self.status_code, self.description = status, description.lower()

    def says(self, words: str) -> bool:
        return self.status_code == 400 and words in self.description


class User(msgspec.Struct):
    id: int


class Chat(msgspec.Struct):
    id: int
    username: str | None = None


class BotMessage(msgspec.Struct):
    message_id: int
    chat: Chat
    sender: User | None = msgspec.field(default=None, name="from")
    text: str | None = None
    reply_to_message: "BotMessage | None" = None


class CallbackQuery(msgspec.Struct):
    id: str
    sender: User = msgspec.field(name="from")
    data: str | None = None
    message: BotMessage | None = None


class Update(msgspec.Struct):
    """What happened in the chat; kinds that were not asked for stay None."""

    update_id: int
    message: BotMessage | None = None
    callback_query: CallbackQuery | None = None


class BotReply(msgspec.Struct):
    """Every reply of the API."""

    ok: bool
    result: msgspec.Raw = msgspec.Raw(b"null")
    error_code: int = 0
    description: str = ""
    parameters: Mapping[str, Any] = msgspec.field(default_factory=dict)


def envelope(body: bytes) -> BotReply:
    """A reply, with a mark in place of every half of a character: one in a message must not hold up all others."""
    text = body.decode("utf-8", "replace")
    try:
        return msgspec.json.decode(text, type=BotReply)
    except msgspec.DecodeError:
        whole = json.dumps(json.loads(text), ensure_ascii=False)
        return msgspec.json.decode(whole.encode("utf-8", "replace"), type=BotReply)


def read(method: str, result: bytes, kind: type[T]) -> T:
    """A result as what it should be."""
    try:
        return msgspec.json.decode(result, type=kind)
    except (msgspec.DecodeError, RecursionError):
        raise DependencyUnavailable(f"Telegram's answer to {method} cannot be read") from None


class Bot:
    """Calls methods. The token is in the path only, and no error repeats the path."""

    def __init__(self, pool: Pool, clock: Clock, base_url: str, token: str) -> None:
        self._pool, self._clock = pool, clock
        self._target = Target.parse(base_url)
        self._prefix = f"/bot{token}/".encode("ascii")

    async def call(self, method: str, params: Mapping[str, Any], *, seconds: float = SECONDS) -> bytes:
        """The raw result of one method."""
        return await self._send(method, b"application/json", msgspec.json.encode(params), seconds)

    async def send_message(self, method: str, params: Mapping[str, Any]) -> int:
        """A method whose result is a message; that message's id."""
        return read(method, await self.call(method, params), BotMessage).message_id

    async def fetch_updates(self, offset: int, seconds: int) -> list[msgspec.Raw]:
        """What happened from `offset` on; asking confirms everything before it."""
        wanted = {"offset": offset, "timeout": seconds, "allowed_updates": ["message", "callback_query"]}
        reply = await self.call("getUpdates", wanted, seconds=seconds + SECONDS)
        return read("getUpdates", reply, list[msgspec.Raw])

    async def send_document(self, fields: Mapping[str, str], name: str, content: bytes) -> None:
        await self._send_file("sendDocument", "document", fields, name, b"application/json", content)

    async def send_photo(self, fields: Mapping[str, str], media_type: str, content: bytes) -> None:
        name = f"picture.{media_type.rpartition('/')[2]}"
        await self._send_file("sendPhoto", "photo", fields, name, media_type.encode("ascii"), content)

    async def _send_file(
        self, method: str, field: str, fields: Mapping[str, str], name: str, kind: bytes, content: bytes
    ) -> None:
        """Send a file, which needs a form."""
        boundary = secrets.token_hex(16)
        lines = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
            for key, value in fields.items()
        ]
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n'
        lines += [head.encode(), b"Content-Type: %b\r\n\r\n" % kind, content]
        body = b"".join([*lines, f"\r\n--{boundary}--\r\n".encode()])
        await self._send(method, f"multipart/form-data; boundary={boundary}".encode(), body, SECONDS)

    async def _send(self, method: str, content_type: bytes, body: bytes, seconds: float) -> bytes:
        reply = await self._pool.request(
            "POST",
            self._target,
            self._prefix + method.encode("ascii"),
            ((b"content-type", content_type),),
            body,
            deadline=self._clock.monotonic() + seconds,
            max_bytes=MAX_REPLY,
        )
        try:
            said = envelope(reply.body)
        except (ValueError, RecursionError):
            raise DependencyUnavailable(
                f"Telegram answered {method} with {reply.status} and no JSON"
            ) from None
        if not said.ok:
            after = said.parameters.get("retry_after")
            wait = float(after) if isinstance(after, int | float) else None
            raise BotRefused(method, said.error_code, said.description, wait)
        return bytes(said.result)
