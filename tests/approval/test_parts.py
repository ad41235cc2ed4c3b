"""Cards, buttons, quiet hours and the dispatcher's promises, on their own."""

import asyncio
import base64
import hmac
import json
import re
import time
import unicodedata
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.waiting import PATIENCE

from agent_gate.approval.channels import chat
from agent_gate.approval.channels import dispatcher as dispatching
from agent_gate.approval.channels.buttons import CODES, Buttons
from agent_gate.approval.channels.dispatcher import Dispatcher, ToldChannel
from agent_gate.approval.channels.kind import QuietHours
from agent_gate.approval.channels.push import message_of
from agent_gate.approval.channels.quiet import Quiet
from agent_gate.approval.channels.webhook import TITLE, filled, sign, slack
from agent_gate.approval.inbox import Inbox
from agent_gate.approval.render import INVISIBLE, card, clip, clock, fate, lines, visible, whole
from agent_gate.config.load import load
from agent_gate.core.approval import Answer, Answered, Approval, Asked, Hashes
from agent_gate.core.call import Call, Caller, Decision, Outcome, State, new_id
from agent_gate.core.ports import SystemClock
from agent_gate.errors import DependencyUnavailable
from agent_gate.observe.metrics import Metrics
from agent_gate.store import StoreSettings, open_store

HOSTILE = st.text(st.characters(codec=None), max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | HOSTILE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(HOSTILE, inner, max_size=3),
    max_leaves=8,
)


def approval(**more):
    given = {
        "id": new_id(),
        "call_id": new_id(),
        "caller": Caller(name="pi"),
        "tool_id": "home:light@1",
        "wire": "light",
        "signature": "light(on)",
        "arguments": {"entity": "light.bedroom"},
        "arguments_hash": "a" * 64,
        "definition_hash": "d" * 64,
        "decision": Decision(effect="ask", rule="ask *", where="permissions.yaml:3"),
        "at": 1000.0,
        "expires_at": 1900.0,
    }
    given |= more
    of_call = {name: given.pop(name) for name in Call.__struct_fields__[1:] if name in given and name != "id"}
    call = Call(id=given.pop("call_id"), tool=given.pop("tool_id"), **of_call)
    hashes = Hashes(given.pop("arguments_hash"), given.pop("definition_hash"))
    asked = Asked(**{field.name: given.pop(field.name) for field in fields(Asked) if field.name in given})
    return Approval(call=call, hashes=hashes, asked=asked, **given)


def test_a_card_names_the_rule_that_almost_allowed_the_call():
    decision = Decision(effect="ask", near="allow light* would allow it, but argument x is not declared")
    shown = "\n".join(lines(card(approval(decision=decision)), 1000.0))
    assert "no rule, so a person is asked (built in); allow light* would allow it, but argument x" in shown
    assert "would allow it" not in "\n".join(lines(card(approval()), 1000.0))


def test_every_channel_says_first_that_a_call_is_destructive():
    asked = approval(sentence="x" * 5000, risks=("destructive", "outward"))
    shown = card(asked)
    texts = {
        "terminal, client and link": "\n".join(lines(shown, 1000.0)),
        "telegram": chat.as_text(chat.parts(shown, 1000.0)[0]),
        "telegram's list": chat.pending_list([shown], 1000.0),
        "slack and ntfy": clip(shown.title(), TITLE),
        "push": message_of(shown, asked.id).title,
    }
    assert {name for name, text in texts.items() if "destructive" not in text.replace("x", "")} == set()
    assert texts["slack and ntfy"].startswith("[destructive, reaches outside] pi asks: ")
    assert "destructive" not in "\n".join([*lines(card(approval()), 1000.0), card(approval()).title()])


def test_below_its_title_a_card_says_nothing_twice():
    asked = approval(sentence="Turn on?")
    assert "Turn on?" not in "\n".join(lines(card(asked), 1000.0, titled=True))
    ended = asked.ended(State.DENIED, Answer(verdict="deny", person="ann", channel="page"), 1001.0)
    assert "Turn on?" in "\n".join(lines(card(ended), 1001.0, titled=True))
    assert "Denied by ann" not in "\n".join(lines(card(ended), 1001.0, titled=True))


def shows_everything(text):
    return all(
        c == "\n" or (c.isprintable() and not INVISIBLE.match(c) and unicodedata.category(c)[0] != "C")
        for c in text
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("anna@p\u0430ypal.com", "anna@p\\u0430ypal.com"),
        ("\u0440\u0430\u0443\u0440\u0430l-login.com", "\\u0440\\u0430\\u0443\\u0440\\u0430l-login.com"),
        ("IT-\u043e\u0442\u0434\u0435\u043b", "IT-\u043e\u0442\u0434\u0435\u043b"),
        ("\u0441\u043e\u0441 caf\u00e9 \u03b1-helix", "\u0441\u043e\u0441 caf\u00e9 \u03b1-helix"),
    ],
)
def test_a_letter_that_passes_for_another_is_written_out(text, shown):
    assert visible(text) == shown


@pytest.fixture
def in_nepal(monkeypatch):
    monkeypatch.setenv("TZ", "NPT-5:45")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_time_in_a_message_names_its_zone(in_nepal):
    assert clock(1_700_000_000) == "2023-11-15 03:58:20 NPT"


@given(HOSTILE)
def test_nothing_invisible_is_left_in_text(text):
    assert shows_everything(visible(text))
    assert "\n" not in visible(text)


@given(JSON)
def test_a_shown_value_is_json_and_is_the_value(value):
    assert json.loads(whole(value)) == json.loads(json.dumps(value))


@given(st.dictionaries(HOSTILE, JSON, max_size=6), HOSTILE, HOSTILE)
def test_hostile_questions_are_readable_on_every_channel(arguments, sentence, agent):
    asked = approval(arguments=arguments, sentence=sentence, caller=Caller(name=agent), surface=agent)
    shown = card(asked)
    plain = "\n".join(lines(shown, 1000.0))
    assert shows_everything(plain)
    assert len(plain.splitlines()) == 5 + max(1, len(arguments)) + bool(shown.sentence) - 0
    message, _ = chat.parts(shown, 1000.0)
    assert shows_everything(chat.as_text(message))
    assert chat.units(chat.as_text(message)) <= 4096
    inside = chat.as_html(message)
    for tag in ("<b>", "</b>", "<pre>", "</pre>"):
        inside = inside.replace(tag, "")
    assert "<" not in inside
    assert ">" not in inside


def test_a_text_cannot_look_like_another_argument():
    shown = card(approval(arguments={"a": "1\nb = 2", "b": "3", "c": 3, "d": "true", "e": True}))
    assert [line.strip() for line in lines(shown, 0)[2:7]] == [
        'a = "1\\nb = 2"',
        'b = "3"',
        "c = 3",
        'd = "true"',
        "e = true",
    ]


def test_a_name_cannot_look_like_another_argument():
    shown = card(approval(arguments={"to": "eve", 'to = "ann"': 1, "": 2, "größe.x": 3, "a\u180bb": 4}))
    assert [line.strip() for line in lines(shown, 0)[2:7]] == [
        'to = "eve"',
        '"to = \\"ann\\"" = 1',
        '"" = 2',
        "größe.x = 3",
        '"a\\u180bb" = 4',
    ]


def test_a_list_of_what_is_open_fits_into_a_message_whatever_it_says():
    cards = [card(approval(signature=f"say({'🙂' * 300})")) for _ in range(30)]
    text = chat.pending_list(cards, 0)
    assert chat.units(text) <= 4096
    assert text.splitlines()[-1] == f"… and {30 - len(text.splitlines()[:-1])} more"
    assert chat.pending_list(cards[:1], 0).count("\n") == 0
    assert chat.pending_list([], 0) == "Nothing waits for you."


def test_a_folded_value_names_its_length_and_digest():
    long = card(approval(arguments={"text": "x" * 5000}))
    assert long.folds()
    [line] = [line for line in lines(long, 0) if "text =" in line]
    assert "(5002 characters, sha256 " in line
    other = card(approval(arguments={"text": "x" * 4999 + "y"}))
    assert [line for line in lines(other, 0) if "text =" in line] != [line]


def test_declared_secrets_are_masked_and_known_ones_redacted():
    asked = approval(arguments={"code": "1234", "note": "the key is KEY-0815"}, secret=frozenset({"code"}))
    text = "\n".join(lines(card(asked, lambda text: text.replace("KEY-0815", "•••")), 0))
    assert "1234" not in text
    assert "KEY-0815" not in text


def test_every_end_says_who_where_when_and_how():
    said = Answered(at=1.0, by="ann", channel="page", lifetime="hour")
    ended = replace(approval(), state=State.APPROVED, answered=said)
    assert card(ended).outcome().startswith("Approved for one hour by ann on page at 1970-")
    assert "nobody answered" in card(replace(ended, state=State.EXPIRED)).outcome()
    assert card(approval()).outcome() == ""


def test_a_call_that_has_not_ended_yet_is_said_to_be_under_way():
    assert fate(replace(approval(), state=State.APPROVED), None) == "It is under way."
    assert fate(replace(approval(), state=State.DENIED), None) == "It does not run."
    away = Outcome(
        call_id="1", state=State.APPROVED, error=DependencyUnavailable("home cannot be called now")
    )
    said = fate(replace(approval(), state=State.APPROVED), away)
    assert said == f"It waits: home cannot be called now. It runs if that changes before {clock(1900.0)}."


@given(st.sampled_from(sorted(CODES.values())), st.text(max_size=12))
def test_a_button_is_read_back_only_on_its_own_channel_with_its_own_key(action, channel):
    buttons, ident = Buttons(b"k" * 32), new_id()
    made = buttons.make(channel, ident, action)
    assert len(made) <= 64
    assert buttons.read(channel, made) == (ident, action, "")
    assert buttons.read(channel + "x", made) is None
    assert Buttons(b"l" * 32).read(channel, made) is None


@given(st.text(max_size=70), st.integers(0, 43), st.characters())
def test_no_other_text_is_a_button(text, place, letter):
    buttons = Buttons(b"k" * 32)
    made = buttons.make("telegram", "0" * 32, "once")
    assert buttons.read("telegram", text) is None
    changed = made[:place] + letter + made[place + 1 :]
    assert buttons.read("telegram", changed) is None or changed == made


def at(text, zone="Europe/Berlin"):
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.fixture
def in_berlin(monkeypatch):
    """The machine's own time zone."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("now", "ends"),
    [
        ("2026-11-15T23:00", "2026-11-16T07:00"),
        ("2026-11-16T06:59", "2026-11-16T07:00"),
        ("2026-11-16T07:00", None),
        ("2026-11-16T21:59", None),
        ("2026-11-16T22:00", "2026-11-17T07:00"),
        ("2026-10-24T23:00", "2026-10-25T07:00"),
        ("2026-03-28T23:00", "2026-03-29T07:00"),
    ],
)
@pytest.mark.usefixtures("in_berlin")
@pytest.mark.parametrize("zone", ["Europe/Berlin", None])
def test_quiet_hours_reach_over_midnight_and_over_the_change_of_clocks(now, ends, zone):
    quiet = Quiet(QuietHours(start="22:00", end="07:00", timezone=zone))
    assert quiet.until(at(now)) == (at(ends) if ends else None)


@pytest.mark.usefixtures("in_berlin")
@pytest.mark.parametrize("zone", ["Europe/Berlin", None])
def test_quiet_hours_that_end_in_the_hour_that_comes_twice_never_end_in_the_past(zone):
    quiet = Quiet(QuietHours(start="22:00", end="02:30", timezone=zone))
    first = at("2026-10-25T02:00")
    assert quiet.until(first) == first + 1800
    assert quiet.until(first + 3600) is None


@pytest.mark.parametrize("secret", ["plain text", "whsec_" + base64.b64encode(b"plain text").decode()])
def test_a_message_is_signed_with_the_secret_or_with_what_follows_its_prefix(secret):
    wanted = hmac.digest(b"plain text", b"m1.7.{}", "sha256")
    assert sign(secret, "m1", 7, b"{}") == f"v1,{base64.b64encode(wanted).decode()}"


def test_a_template_keeps_types_and_leaves_unknown_names():
    assert filled({"a": "{n}", "b": ["{n} x", 3], "c": "{what}"}, {"n": {"k": 1}}) == {
        "a": {"k": 1},
        "b": ["{'k': 1} x", 3],
        "c": "{what}",
    }
    assert slack({"title": "p", "text": "t", "pressed": {}, "answer": {}})["blocks"] == [
        {"type": "section", "text": {"type": "plain_text", "text": "p\nt", "emoji": False}}
    ]


class Recorder:
    """A channel that writes down what it is told, and fails as often as it is told to."""

    name = "recorder"

    def __init__(self, failures=0):
        self.failures, self.seen, self.told = failures, [], asyncio.Event()

    async def ask(self, asked):
        if self.failures:
            self.failures -= 1
            raise DependencyUnavailable("down")
        self.seen.append(("asked", asked.id))
        self.told.set()
        return f"m{len(self.seen)}"

    async def show_end(self, ended, message):
        self.seen.append((str(ended.state), message))
        self.told.set()

    async def run(self):
        return


async def heard(channel, count):
    async with asyncio.timeout(PATIENCE):
        while len(channel.seen) < count:
            channel.told.clear()
            await channel.told.wait()


async def world(tmp_path):
    store = open_store(StoreSettings(path=tmp_path / "gate.db"))
    clock = SystemClock()
    inbox = Inbox(store, clock)
    return store, clock, inbox


def asked_now(clock, **more):
    return approval(at=clock.now(), expires_at=clock.now() + 600, **more)


async def test_each_question_is_told_once_across_failures_and_restarts(tmp_path):
    store, clock, inbox = await world(tmp_path)
    first = Recorder(failures=2)
    dispatcher = Dispatcher(store, inbox, clock, Metrics())
    await dispatcher.start([ToldChannel(channel=first)])
    question = asked_now(clock)
    await inbox.put(question)
    inbox.announce(question)
    await heard(first, 1)
    await dispatcher.stop()
    again = Recorder()
    await dispatcher.start([ToldChannel(channel=again)])
    resolved = await inbox.resolve(
        question.ended(State.DENIED, Answer(verdict="deny", person="ann", channel="page"), clock.now())
    )
    inbox.announce(resolved)
    await heard(again, 1)
    assert first.seen == [("asked", question.id)]
    assert again.seen == [("denied", "m1")]
    await dispatcher.stop()
    last = Recorder()
    await dispatcher.start([ToldChannel(channel=last)])
    await dispatcher.stop()
    assert last.seen == []
    await store.close()


async def test_what_a_reload_stopped_can_be_stopped_again_at_the_end(tmp_path):
    store, clock, inbox = await world(tmp_path)
    dispatcher, channel = Dispatcher(store, inbox, clock, Metrics()), Recorder()
    await dispatcher.start([ToldChannel(channel=channel)])
    await dispatcher.stop()
    await dispatcher.stop()
    question = asked_now(clock)
    await inbox.put(question)
    inbox.announce(question)
    await asyncio.sleep(0)
    assert channel.seen == []
    await store.close()


async def test_an_end_that_nobody_could_show_is_shown_after_a_restart(tmp_path):
    store, clock, inbox = await world(tmp_path)
    dispatcher, channel = Dispatcher(store, inbox, clock, Metrics()), Recorder()
    await dispatcher.start([ToldChannel(channel=channel)])
    question = asked_now(clock)
    await inbox.put(question)
    inbox.announce(question)
    await heard(channel, 1)
    await dispatcher.stop()
    await inbox.resolve(
        question.ended(State.EXPIRED, Answer(verdict="deny", person="nobody", channel="clock"), clock.now())
    )
    await dispatcher.start([ToldChannel(channel=channel)])
    await heard(channel, 2)
    assert channel.seen[1] == ("expired", "m1")
    await dispatcher.stop()
    await store.close()


@pytest.mark.parametrize("lifetime", ["once", "hour", "always"])
async def test_an_answer_is_remembered_with_how_long_it_counts(tmp_path, lifetime):
    store, clock, inbox = await world(tmp_path)
    question = asked_now(clock)
    await inbox.put(question)
    answer = Answer(verdict="approve", person="ann", channel="page", lifetime=lifetime)
    await inbox.resolve(question.ended(State.APPROVED, answer, clock.now()))
    kept = await inbox.get(question.id)
    assert kept.answered.lifetime == lifetime
    assert kept.state is State.APPROVED
    await store.close()


async def ask_and_withdraw(inbox, clock, channel):
    """A question comes and goes again, once the channel has heard of both; what it should have seen."""
    question = asked_now(clock)
    await inbox.put(question)
    await heard(channel, 1)
    await inbox.resolve(
        question.ended(State.WITHDRAWN, Answer(verdict="deny", person="pi", channel="rest"), clock.now())
    )
    await heard(channel, 2)
    return [("asked", question.id), ("withdrawn", "m1")]


async def test_a_question_that_nobody_announced_is_found_and_so_is_its_end(tmp_path):
    store, clock, inbox = await world(tmp_path)
    dispatcher, channel = Dispatcher(store, inbox, clock, Metrics(), look_every=0.02), Recorder()
    await dispatcher.start([ToldChannel(channel=channel)])
    assert await ask_and_withdraw(inbox, clock, channel) == channel.seen
    await dispatcher.stop()
    await store.close()


async def test_a_store_that_is_away_at_the_start_keeps_no_question_from_its_channel(tmp_path, monkeypatch):
    store, clock, inbox = await world(tmp_path)
    question = asked_now(clock)
    await inbox.put(question)
    flush, away = store.flush, [True, True]

    async def sometimes():
        if away:
            away.pop()
            raise DependencyUnavailable("The record cannot be written: disk full.")
        await flush()

    monkeypatch.setattr(store, "flush", sometimes)
    dispatcher, channel = Dispatcher(store, inbox, clock, Metrics(), look_every=0.02), Recorder()
    await dispatcher.start([ToldChannel(channel=channel)])
    assert channel.seen == []
    await heard(channel, 1)
    assert channel.seen == [("asked", question.id)]
    await dispatcher.stop()
    await store.close()


@pytest.mark.parametrize("step", ["ask", "show_end"])
async def test_a_channel_that_breaks_on_a_question_is_told_again_and_more_and_more_seldom(
    tmp_path, monkeypatch, step
):
    pauses = []
    monkeypatch.setattr(dispatching, "pause", lambda tries, _error: pauses.append(tries) or 0.0)

    store, clock, inbox = await world(tmp_path)
    channel = Recorder()
    told, faults = getattr(channel, step), [KeyError("a fault in the channel")] * 3

    async def breaks(*said):
        if faults:
            raise faults.pop()
        return await told(*said)

    setattr(channel, step, breaks)
    dispatcher = Dispatcher(store, inbox, clock, Metrics(), look_every=0)
    await dispatcher.start([ToldChannel(channel=channel)])
    assert await ask_and_withdraw(inbox, clock, channel) == channel.seen
    assert pauses == [0, 1, 2]
    await dispatcher.stop()
    await store.close()


async def test_a_channel_told_later_is_not_told_when_somebody_was_faster(tmp_path):
    store, clock, inbox = await world(tmp_path)
    dispatcher, early, late = Dispatcher(store, inbox, clock, Metrics()), Recorder(), Recorder()
    late.name = "late"
    await dispatcher.start([ToldChannel(channel=early), ToldChannel(channel=late, after=30)])
    question = asked_now(clock)
    await inbox.put(question)
    inbox.announce(question)
    await heard(early, 1)
    resolved = await inbox.resolve(
        question.ended(State.APPROVED, Answer(verdict="approve", person="ann", channel="page"), clock.now())
    )
    inbox.announce(resolved)
    await heard(early, 2)
    await store.flush()
    rows = await store.read("SELECT channel, state FROM deliveries ORDER BY channel")
    assert late.seen == []
    assert ("late", "closed") in rows
    await dispatcher.stop()
    await store.close()


def test_the_pages_examples_load(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "approvals.md").read_text()
    examples = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    *channels, rules = examples
    assert len(channels) == 2
    (tmp_path / "permissions.yaml").write_text(rules)
    assert load(None, tmp_path / "permissions.yaml").rules[0].count == 2
    for number, text in enumerate(channels):
        file = tmp_path / f"{number}.yaml"
        file.write_text(text)
        assert load(file, env={"BOT_TOKEN": "1:a", "HOOK_SECRET": "hook-secret"}).settings.channels


def test_the_pages_table_names_every_series():
    page = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text()
    for series in Metrics().series.values():
        [row] = [line for line in page.splitlines() if line.startswith(f"| `{series.name}`")]
        labels = {label.strip() for label in row.split("|")[2].split(",")}
        assert labels == {*series.labels, *getattr(series, "fixed", {})}
