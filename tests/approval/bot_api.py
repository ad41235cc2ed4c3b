"""A local Bot API server over real HTTP that behaves as the documented one does, and refuses what it does not have.

Every method and field a client uses is checked against the documented names; a mistake is kept in `faults`, and
the test that stops the server fails.
"""

import json
import re
import threading
import time
from email.parser import BytesParser
from email.policy import HTTP
from html.parser import HTMLParser
from uuid import uuid4

from tests.http_server import HttpServer, QuietHandler
from tests.waiting import wait_until

TOKEN = "123456789:AAF-canary-bot-token-0123456789abcdef"
CHAT = -1001234567890
CHAT_NAME = "@approvals_here"
BOT = {"id": 123456789, "is_bot": True, "first_name": "Gate", "username": "gate_bot"}
METHODS = {
    "getUpdates": ({"offset", "limit", "timeout", "allowed_updates"}, set()),
    "sendMessage": (
        {
            "business_connection_id", "chat_id", "message_thread_id", "text", "parse_mode", "entities",
            "link_preview_options", "disable_notification", "protect_content", "message_effect_id",
            "reply_parameters", "reply_markup",
        },
        {"chat_id", "text"},
    ),
    "editMessageText": (
        {
            "business_connection_id", "chat_id", "message_id", "inline_message_id", "text", "parse_mode",
            "entities", "link_preview_options", "reply_markup",
        },
        {"text"},
    ),
    "answerCallbackQuery": ({"callback_query_id", "text", "show_alert", "url", "cache_time"}, {"callback_query_id"}),
    "sendDocument": (
        {
            "business_connection_id", "chat_id", "message_thread_id", "document", "thumbnail", "caption",
            "parse_mode", "caption_entities", "disable_content_type_detection", "disable_notification",
            "protect_content", "message_effect_id", "reply_parameters", "reply_markup",
        },
        {"chat_id", "document"},
    ),
    "sendPhoto": (
        {
            "business_connection_id", "chat_id", "message_thread_id", "photo", "caption", "parse_mode",
            "caption_entities", "show_caption_above_media", "has_spoiler", "disable_notification",
            "protect_content", "message_effect_id", "reply_parameters", "reply_markup",
        },
        {"chat_id", "photo"},
    ),
}  # fmt: skip
BUTTON = {"text", "url", "callback_data", "web_app", "login_url", "switch_inline_query", "pay", "copy_text"}
PREVIEW = {"is_disabled", "url", "prefer_small_media", "prefer_large_media", "show_above_text"}
REPLY = {
    "message_id",
    "chat_id",
    "allow_sending_without_reply",
    "quote",
    "quote_parse_mode",
    "quote_entities",
    "quote_position",
}
TAGS = {"b", "strong", "i", "em", "u", "s", "del", "code", "pre", "a", "blockquote", "tg-spoiler"}


class Refused(Exception):
    def __init__(self, code, description, parameters=None):
        self.code, self.description, self.parameters = code, description, parameters


class Entities(HTMLParser):
    """Text after entities parsing; raises where the real parser does."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.text, self.open = "", []

    def handle_starttag(self, tag, attrs):
        if tag not in TAGS:
            raise Refused(
                400, f'Bad Request: can\'t parse entities: Unsupported start tag "{tag}" at byte offset 0'
            )
        self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise Refused(400, "Bad Request: can't parse entities: Unexpected end tag at byte offset 0")

    def handle_data(self, data):
        self.text += data


def parsed(params):
    """The message's text as it is shown, after markup was read."""
    mode, text = params.get("parse_mode"), params["text"]
    if mode == "HTML":
        if re.search(r"&(?!lt;|gt;|amp;|quot;|#)", text) or re.search(r"<(?![a-z/])", text):
            raise Refused(400, "Bad Request: can't parse entities: Unsupported character at byte offset 0")
        reader = Entities()
        reader.feed(text)
        reader.close()
        if reader.open:
            raise Refused(400, "Bad Request: can't parse entities: Can't find end tag")
        text = reader.text
    elif mode is not None:
        raise Refused(400, "Bad Request: unsupported parse_mode")
    if not text.strip():
        raise Refused(400, "Bad Request: message text is empty")
    if len(text.encode("utf-16-le", "surrogatepass")) // 2 > 4096:
        raise Refused(400, "Bad Request: message is too long")
    return text


def reply_parameters(params):
    """What a message replies to; in a form it is JSON in a part."""
    given = params.get("reply_parameters", {})
    return given if isinstance(given, dict) else json.loads(given.get_content())


class BotApi:
    """The server. `press`, `say` and `reply` are what people do; `messages` is what they see."""

    def __init__(self, port=0):
        self.lock = threading.Condition()
        self.empty, self.faults, self.calls, self.answered, self.documents = [], [], [], [], []
        self.photos = []
        self.messages, self.updates = {}, []
        self.next_message, self.next_update, self.conflicts, self.poller = 100, 7000, 0, None
        self.lose, self.refuse_markup, self.limits, self.down = [], False, [], False
        self.port = port
        self.start()

    def reset(self):
        """Forget the last test; numbers go on, as they do in a real chat."""
        with self.lock:
            for kept in (self.messages, self.calls, self.answered, self.documents, self.photos, self.limits):
                kept.clear()
            self.refuse_markup, self.conflicts = False, 0

    def start(self):
        api, self.down = self, False

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, reply = (0, None) if api.down else api.respond(self.path, self.headers, body)
                if api.down or api.loses(self.path):
                    self.close_connection = True
                    return None
                data = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                return self.wfile.write(data)

            do_GET = do_POST

            def handle(self):
                try:
                    super().handle()
                except (ConnectionError, ValueError):
                    pass

        self.server = HttpServer(Handler, port=self.port)
        self.port, self.url = self.server.server_port, self.server.url

    def stop(self):
        """The network is gone: nobody gets in, and whoever is in gets no answer."""
        with self.lock:
            self.down = True
            self.lock.notify_all()
        self.server.close()

    def respond(self, path, headers, body):
        found = re.fullmatch(r"/bot([^/]+)/(\w+)", path)
        if not found or found[1] != TOKEN:
            return 401 if found else 404, {"ok": False, "error_code": 401, "description": "Unauthorized"}
        try:
            params = self.params(headers, body)
            self.check(found[2], params)
            return 200, {"ok": True, "result": getattr(self, found[2])(params)}
        except Refused as refused:
            reply = {"ok": False, "error_code": refused.code, "description": refused.description}
            return refused.code, reply | ({"parameters": refused.parameters} if refused.parameters else {})

    def loses(self, path):
        """Whether the reply of this method gets lost on the way, although it was acted on."""
        with self.lock:
            method = path.rpartition("/")[2]
            return method in self.lose and not self.lose.remove(method)

    def params(self, headers, body):
        kind = headers.get("Content-Type", "")
        if kind == "application/json":
            return json.loads(body)
        if kind.startswith("multipart/form-data"):
            message = BytesParser(policy=HTTP).parsebytes(
                b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body
            )
            return {
                part.get_param("name", header="content-disposition"): part for part in message.iter_parts()
            }
        raise self.fault(f"a body of type {kind!r}")

    def fault(self, text):
        self.faults.append(text)
        return Refused(400, f"Bad Request: {text}")

    def check(self, method, params):
        if method not in METHODS:
            self.fault(f"there is no method {method}")
            raise Refused(404, "Not Found")
        known, needed = METHODS[method]
        if set(params) - known or needed - set(params):
            raise self.fault(
                f"{method} with {sorted(set(params) - known)} without {sorted(needed - set(params))}"
            )
        if set(params.get("link_preview_options", {})) - PREVIEW or set(reply_parameters(params)) - REPLY:
            raise self.fault(f"{method} with unknown options")
        for row in (params.get("reply_markup") or {}).get("inline_keyboard", []):
            for button in row:
                if set(button) - BUTTON or not 1 <= len(button.get("callback_data", "x").encode()) <= 64:
                    raise self.fault(f"a button {button}")
        with self.lock:
            self.calls.append((method, params))
            if self.limits and method != "getUpdates":
                raise Refused(429, "Too Many Requests: retry after 1", {"retry_after": self.limits.pop(0)})

    def getUpdates(self, params):
        """Confirms what is before `offset`; of two pollers the older one is sent away."""
        with self.lock:
            self.poller = mine = object()
            self.lock.notify_all()
            offset = params.get("offset", 0)
            self.updates = [u for u in self.updates if u["update_id"] >= offset]
            ends = time.monotonic() + min(params.get("timeout", 0), 0.5)
            while not self.updates and time.monotonic() < ends and self.poller is mine and not self.down:
                self.lock.wait(0.05)
            if self.poller is not mine:
                self.conflicts += 1
                raise Refused(
                    409,
                    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
                )
            if not self.updates:
                self.empty.append(offset)
            return [u.get("sent", u) for u in self.updates[: params.get("limit", 100)]]

    def markup(self, params):
        if params.get("parse_mode") and self.refuse_markup:
            raise Refused(400, "Bad Request: can't parse entities: Unsupported start tag at byte offset 0")
        if str(params["chat_id"]) not in (str(CHAT), CHAT_NAME):
            raise Refused(400, "Bad Request: chat not found")
        return {
            "text": parsed(params),
            "keyboard": (params.get("reply_markup") or {}).get("inline_keyboard", []),
        }

    def sendMessage(self, params):
        shown = self.markup(params)
        with self.lock:
            self.next_message += 1
            self.messages[self.next_message] = shown | {
                "reply_to": params.get("reply_parameters", {}).get("message_id")
            }
            self.lock.notify_all()
            return self.message(self.next_message)

    def editMessageText(self, params):
        shown = self.markup(params)
        with self.lock:
            old = self.messages.get(params["message_id"])
            if old is None:
                raise Refused(400, "Bad Request: message to edit not found")
            if (old["text"], old["keyboard"]) == (shown["text"], shown["keyboard"]):
                raise Refused(
                    400,
                    "Bad Request: message is not modified: specified new message content and reply markup are exactly "
                    "the same as a current content and reply markup of the message",
                )
            old.update(shown)
            self.lock.notify_all()
            return self.message(params["message_id"])

    def answerCallbackQuery(self, params):
        if len(params.get("text", "")) > 200:
            raise self.fault("an answer of more than 200 characters")
        with self.lock:
            self.answered.append((params["callback_query_id"], params.get("text", "")))
            self.lock.notify_all()
        return True

    def sendDocument(self, params):
        part = params["document"]
        with self.lock:
            self.documents.append(
                (part.get_filename(), part.get_payload(decode=True), params["caption"].get_content())
            )
            self.lock.notify_all()
            self.next_message += 1
            return self.message(self.next_message)

    def sendPhoto(self, params):
        part = params["photo"]
        with self.lock:
            about = reply_parameters(params).get("message_id")
            self.photos.append((part.get_content_type(), part.get_payload(decode=True), about))
            self.lock.notify_all()
            self.next_message += 1
            return self.message(self.next_message)

    def message(self, number):
        chat = {"id": CHAT, "type": "supergroup", "title": "Approvals"}
        return {
            "message_id": number,
            "from": BOT,
            "chat": chat,
            "date": int(time.time()),
            "text": self.messages.get(number, {}).get("text", ""),
        }

    def update(self, **content):
        with self.lock:
            self.next_update += 1
            self.updates.append({"update_id": self.next_update, **content})
            self.lock.notify_all()
            return self.next_update

    def damaged(self, sent):
        """An update that arrives as `sent`, whatever it was."""
        return self.update(sent=sent)

    def user(self, ident):
        return {"id": ident, "is_bot": False, "first_name": "Somebody"}

    def press(self, number, label, user, data=None, chat=CHAT, chat_name=None):
        """Somebody presses a button; returns what the bot then says to them."""
        buttons = {b["text"]: b["callback_data"] for row in self.messages[number]["keyboard"] for b in row}
        data = data if data is not None else buttons[label]
        where = {"id": chat, "type": "supergroup"} | ({"username": chat_name} if chat_name else {})
        message = self.message(number) | {"chat": where}
        query = f"query-{uuid4()}"
        self.update(
            callback_query={
                "id": query, "from": self.user(user), "message": message, "chat_instance": "1",
                "data": data,
            }
        )  # fmt: skip
        return self.wait(lambda: next((text for ident, text in self.answered if ident == query), None))

    def say(self, text, user, reply_to=None):
        with self.lock:
            self.next_message += 1
            number = self.next_message
        content = self.message(number) | {"from": self.user(user), "text": text}
        if reply_to is not None:
            content["reply_to_message"] = self.message(reply_to)
        self.update(message=content)
        return number

    def wait(self, found):
        """The first true value of `found`, as soon as it is there."""

        def look():
            with self.lock:
                return found()

        return wait_until(look, "what is waited for at the bot")

    def question(self, about=""):
        """The newest message with buttons that holds `about`."""
        return self.wait(
            lambda: next(
                (
                    n
                    for n in sorted(self.messages, reverse=True)
                    if self.messages[n]["keyboard"] and about in self.messages[n]["text"]
                ),
                None,
            )
        )
