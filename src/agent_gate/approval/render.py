"""A question as a person sees it: `Approval` (or its JSON form) into a `Card`, and a card into plain lines.

Pure. Every channel shows the same card: nothing hidden, nothing that can pretend to be something else, secrets
masked, long values folded with their length and digest.
"""

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from agent_gate.approval.risk import SAID
from agent_gate.core.approval import Approval
from agent_gate.core.call import Outcome, State
from agent_gate.core.facts import beside
from agent_gate.observe.redact import Redact, mask_arguments

FOLD = 400
OWN_SURFACE = "connections"
"""Where the questions of the gateway itself come from; no agent calls by it."""
NUMBER_WANTED = "A yes needs the number that the browser shows. If you did not begin this yourself, deny it."
INVISIBLE = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
LOOK_ALIKES = (
    frozenset(
        "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04af\u04bb\u04cf\u0501\u051b\u051d"  # Cyrillic
        "\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u04ae\u04c0\u051a\u051c"
        "\u03bd\u03bf\u03f2\u03f3\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"  # Greek
        "\u0570\u0578\u057d\u0581\u0585\u0251\u0261"  # Armenian, phonetic
    )
    | frozenset(
        map(
            chr,
            (
                *range(0x2160, 0x2180),
                *range(0xFF21, 0xFF3B),
                *range(0xFF41, 0xFF5B),
                *range(0x1D400, 0x1D6A6),
            ),
        )
    )
)
"""Letters that pass for those of ASCII; `ui/dom.js` has the same."""
WORD = re.compile(r"[^\W_]+(?:[.@_-]+[^\W_]+)*")
PLAIN_NAME = re.compile(r"[\w.$@:/-]+")
STATES = {
    "approved": "Approved",
    "denied": "Denied",
    "expired": "Expired: nobody answered in time",
    "withdrawn": "Withdrawn",
}
SPANS = {"once": "once", "session": "for this session", "hour": "for one hour", "always": "always for this"}


def escaped(character: str) -> str:
    """A character as JSON writes it when it must not appear itself."""
    return "\\u007f" if character == "\x7f" else json.dumps(character)[1:-1]


def passes(word: str) -> bool:
    """Whether a word that is not ASCII could be taken for one that is; a single honest letter gives it away."""
    foreign = {c for c in word if not c.isascii()}
    return bool(foreign) and foreign <= LOOK_ALIKES and re.search("[A-Za-z]", word) is not None


def undisguised(found: re.Match[str]) -> str:
    word = found[0]
    return "".join(c if c.isascii() else escaped(c) for c in word) if passes(word) else word


def visible(text: str) -> str:
    """What could deceive as escapes: characters without a shape of their own, and letters in another's shape."""
    if text.isascii() and text.isprintable():
        return text
    text = WORD.sub(undisguised, text)
    return "".join(c if c.isprintable() and not INVISIBLE.match(c) else escaped(c) for c in text)


def clip(text: str, longest: int) -> str:
    """A text of at most so many characters; what is cut off is told by its end."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def visible_lines(text: str) -> str:
    """The same for text of several lines, whose line breaks are meant."""
    return "\n".join(map(visible, text.split("\n")))


def whole(value: Any) -> str:
    """A value as JSON on one line, so that a text can look neither like a number nor like two arguments."""
    return visible(json.dumps(value, ensure_ascii=False, default=str))


def named(name: str) -> str:
    """An argument's name; in quotes where it could be read as more than a name."""
    return visible(name) if PLAIN_NAME.fullmatch(name) else whole(name)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its name and its whole value, both made visible."""

    name: str
    value: str

    def folded(self, room: int = FOLD) -> str:
        """The value, or its beginning with what is needed to recognise the whole."""
        if len(self.value) <= room:
            return self.value
        digest = sha256(self.value.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return f"{self.value[:room]}… ({len(self.value)} characters, sha256 {digest})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Everything a person needs to judge one question, as text that can be shown as it is."""

    id: str
    state: str
    sentence: str
    signature: str
    arguments: tuple[Argument, ...]
    agent: str
    surface: str
    rule: str
    where: str
    near: str
    approvers: tuple[str, ...]
    asked_at: float
    expires_at: float
    answered_by: str = ""
    answered_on: str = ""
    answered_at: float | None = None
    answer_reason: str = ""
    lifetime: str = "once"
    link: str = ""
    """What the gateway itself asks the person to open."""
    wants_number: bool = False
    """Whether a yes must name the number that a browser shows."""
    count: int = 1
    yeses: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        return self.id[-8:]

    @property
    def open(self) -> bool:
        return self.state == "pending"

    def warned(self, text: str) -> str:
        """A text with the dangers before it, where nothing that is long can push them out."""
        named = ", ".join(SAID[risk][0] for risk in self.risks)
        return f"[{named}] {text}" if named else text

    def title(self) -> str:
        return self.warned(f"{self.agent} asks: {self.sentence or self.signature}")

    def folds(self, room: int = FOLD) -> bool:
        return any(len(argument.value) > room for argument in self.arguments)

    def because(self) -> str:
        near = f"; {self.near}" if self.near else ""
        return f"{self.rule or 'no rule, so a person is asked'} ({self.where or 'built in'}){near}"

    def left(self, now: float) -> str:
        return f"{span(self.expires_at - now)}, until {clock(self.expires_at)}"

    def agreed(self) -> str:
        """Who said yes already, where more than one person has to; else empty."""
        if self.count <= 1:
            return ""
        return f"{self.count} people have to say yes; so far: {', '.join(self.yeses) or 'nobody'}"

    def outcome(self) -> str:
        """How the question ended: what, by whom, where and when; while it is open, who said yes already."""
        if self.open:
            return self.agreed()
        said = STATES.get(self.state, self.state.capitalize())
        if self.state in ("approved", "denied"):
            covered = f" {SPANS.get(self.lifetime, self.lifetime)}" if self.state == "approved" else ""
            said += f"{covered} by {self.answered_by} on {self.answered_on}"
        elif self.state == "withdrawn" and self.answered_by == self.agent:
            said += " by the agent"
        at = f" at {clock(self.answered_at)}" if self.answered_at is not None else ""
        return f"{said}{at}" + (f": {self.answer_reason}" if self.answer_reason else "")


def fate(answered: Approval, outcome: Outcome | None) -> str:
    """What became of the call of an answered question, for the person who answered it."""
    if answered.state is State.PENDING:
        return f"It waits for {answered.decision.count - len(answered.yeses)} more to say yes."
    if answered.state is not State.APPROVED:
        return "It does not run."
    if outcome is None:
        return "It is under way."
    if outcome.state is State.COMPLETED:
        return "It ran."
    why = outcome.error.message if outcome.error is not None else "it ended without a result"
    if outcome.state is State.APPROVED:
        return f"It waits: {why}. It runs if that changes before {clock(answered.asked.expires_at)}."
    said = "It is not known whether it ran" if outcome.state is State.UNKNOWN else "It failed"
    return f"{said}: {why}"


def keep(text: str) -> str:
    return text


def card(approval: Approval, redact: Redact = keep) -> Card:
    """The card of a question. `redact` takes out secrets that were passed where nobody declared one."""
    return card_of(
        {
            "id": approval.id,
            "state": str(approval.state),
            "sentence": approval.asked.sentence,
            "signature": approval.signature,
            "arguments": mask_arguments(approval.arguments, approval.asked.secret),
            "facts": approval.asked.facts,
            "agent": approval.caller.name,
            "surface": approval.call.surface,
            "rule": approval.decision.rule,
            "where": approval.decision.where,
            "near": approval.decision.near,
            "approvers": approval.decision.approvers,
            "asked_at": approval.asked.at,
            "expires_at": approval.asked.expires_at,
            "answered_by": approval.answered.by,
            "answered_on": approval.answered.channel,
            "answered_at": approval.answered.at,
            "answer_reason": approval.answered.reason,
            "lifetime": approval.answered.lifetime,
            "wants_number": bool(approval.asked.number),
            "count": approval.decision.count,
            "yeses": approval.yeses,
            "risks": approval.asked.risks,
        },
        redact,
    )


TEXTS = (
    "sentence",
    "signature",
    "agent",
    "surface",
    "rule",
    "where",
    "near",
    "answered_by",
    "answered_on",
    "answer_reason",
)


def card_of(data: Mapping[str, Any], redact: Redact = keep) -> Card:
    """The card of a question as the admin API gives it."""
    shown = beside(data["arguments"], data.get("facts"))
    arguments = tuple(Argument(named(redact(name)), redact(whole(value))) for name, value in shown.items())
    texts = {name: visible(redact(str(data.get(name) or ""))) for name in TEXTS}
    return Card(
        id=str(data["id"]),
        state=str(data["state"]),
        arguments=arguments,
        approvers=tuple(map(visible, data.get("approvers") or ())),
        asked_at=data["asked_at"],
        expires_at=data["expires_at"],
        answered_at=data.get("answered_at"),
        lifetime=str(data.get("lifetime") or "once"),
        wants_number=bool(data.get("wants_number")),
        count=int(data.get("count") or 1),
        yeses=tuple(map(visible, data.get("yeses") or ())),
        risks=tuple(risk for risk in data.get("risks") or () if risk in SAID),
        link=visible(str(shown.get("link", ""))) if data.get("surface") == OWN_SURFACE else "",
        **texts,
    )


def argument_lines(shown: Card, room: int = FOLD) -> list[str]:
    """Every argument and fact, also those that the signature does not show."""
    return [f"{argument.name} = {argument.folded(room)}" for argument in shown.arguments] or ["(none)"]


def lines(shown: Card, now: float, room: int = FOLD, *, titled: bool = False) -> list[str]:
    """The card as plain text, without the choices, which each channel offers in its own way, and without what the title
    says where that stands above."""
    out = [shown.signature]
    if shown.sentence and not (titled and shown.open):
        out.append(f"  {shown.sentence}")
    out += [f"  {': '.join(SAID[risk])}" for risk in shown.risks]
    if shown.link and shown.open:
        out.append(f"  open: {shown.link}")
    if shown.wants_number and shown.open:
        out.append(f"  {NUMBER_WANTED}")
    out += ["  arguments:", *(f"    {line}" for line in argument_lines(shown, room))]
    out.append(f"  asked by {shown.agent} over {shown.surface or 'a call'} at {clock(shown.asked_at)}")
    out.append(f"  because of {shown.because()}")
    if shown.approvers:
        out.append(f"  only {', '.join(shown.approvers)} may answer")
    if shown.open and shown.agreed():
        out.append(f"  {shown.agreed()}")
    if shown.open:
        out.append(f"  time left: {shown.left(now)}")
    elif not titled:
        out.append(f"  {shown.outcome()}")
    return out


def span(seconds: float) -> str:
    """A duration in the largest unit that says enough."""
    left = max(0, round(seconds))
    if left < 120:
        return f"{left} s"
    return f"{left // 60} min" if left < 7200 else f"{left // 3600} h"


def clock(at: float) -> str:
    """The gateway's local time with its zone, since whoever reads it may be in another one."""
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(at)).rstrip()
