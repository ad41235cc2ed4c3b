"""A question to which a yes must name a number that only a browser shows; and the terms that a yes makes narrower."""

import json
from dataclasses import replace

import pytest
from tests.approval.test_parts import approval
from tests.calls.small_calls import NO, YES, SmallCalls, opened

from agent_gate.approval.channels import chat
from agent_gate.approval.channels.buttons import Buttons
from agent_gate.approval.channels.telegram import Telegram, TelegramSettings
from agent_gate.approval.channels.webhook import Webhook, WebhookSettings
from agent_gate.approval.numbers import OFFERED, new_number, offered_numbers
from agent_gate.approval.render import card, lines
from agent_gate.core.call import State
from agent_gate.errors import Forbidden, InvalidArgs
from agent_gate.surfaces.admin import shown


async def test_a_yes_without_the_number_is_asked_again_and_with_it_the_call_runs(tmp_path):
    async with opened(tmp_path) as store:
        lab = SmallCalls(store, action="ask")
        asked = await lab.calls.ask_to_let_in(lab.call(), "47")
        with pytest.raises(InvalidArgs, match="Say the number"):
            await lab.calls.answer(asked.id, YES)
        assert [one.id for one in lab.inbox.open()] == [asked.id]
        answered = await lab.calls.answer(asked.id, replace(YES, number="47"))
        assert answered.state is State.APPROVED
        assert (await lab.calls.learn_outcome(answered)).state is State.COMPLETED


async def test_a_wrong_number_is_a_no_so_that_nobody_can_try_them_all(tmp_path):
    async with opened(tmp_path) as store:
        lab = SmallCalls(store, action="ask")
        asked = await lab.calls.ask_to_let_in(lab.call(), "47")
        answered = await lab.calls.answer(asked.id, replace(YES, number="46"))
        assert (answered.state, answered.answered.by) == (State.DENIED, "operator")
        assert "not the one that the browser shows" in answered.answered.reason
        with pytest.raises(InvalidArgs, match="Too late"):
            await lab.calls.answer(asked.id, replace(YES, number="47"))
        assert lab.jobs == []


async def test_a_no_needs_no_number_and_no_yes_is_remembered_for_the_next(tmp_path):
    async with opened(tmp_path) as store:
        lab = SmallCalls(store, action="ask")
        asked = await lab.calls.ask_to_let_in(lab.call(), "47")
        with pytest.raises(InvalidArgs, match="counts once"):
            await lab.calls.answer(asked.id, replace(YES, number="47", lifetime="always"))
        assert (await lab.calls.answer(asked.id, NO)).state is State.DENIED


@pytest.mark.parametrize("via", ["person", "client"])
async def test_no_rule_lets_anybody_in_by_itself(tmp_path, via):
    async with opened(tmp_path) as store:
        lab = SmallCalls(store, action="allow" if via == "person" else "ask", via=via)
        asked = await lab.calls.ask_to_let_in(lab.call(), "47")
        assert (asked.decision.effect, asked.decision.via) == ("ask", "person")
        assert lab.jobs == []


async def test_a_rule_that_denies_it_is_on_record(tmp_path):
    async with opened(tmp_path) as store:
        lab = SmallCalls(store, action="deny")
        call = lab.call()
        with pytest.raises(Forbidden):
            await lab.calls.ask_to_let_in(call, "47")
        await lab.calls.close()
        assert await lab.story(call.id) == ["refused"]


async def test_terms_are_refused_where_a_question_has_none_and_kept_where_it_has(tmp_path):
    async with opened(tmp_path) as store:
        lab = SmallCalls(store, action="ask")
        asked = await lab.calls.ask_to_let_in(lab.call(), "47")
        narrowed = replace(YES, number="47", terms={"days": 7})
        with pytest.raises(InvalidArgs, match="nothing to make narrower"):
            await lab.calls.answer(asked.id, narrowed)
        lab.calls.take_terms(lambda _approval, _answer: None)
        answered = await lab.calls.answer(asked.id, narrowed)
        await lab.calls.learn_outcome(answered)
        assert (await lab.inbox.get(asked.id)).answered.terms == {"days": 7}


async def test_the_number_survives_a_restart_and_no_channel_shows_which_it_is(tmp_path):
    async with opened(tmp_path) as store:
        lab = SmallCalls(store, action="ask")
        asked = await lab.calls.ask_to_let_in(lab.call(), "47")
        [after] = await SmallCalls(store, action="ask").inbox.load()
        assert after.asked.number == "47"
        said = "\n".join([*lines(card(after), 0.0), chat.as_text(chat.parts(card(after), 0.0)[0])])
        said += json.dumps(shown.approval(after, None) | {"id": "", "call": "", "arguments_hash": ""})
        assert "47" not in said.replace(asked.id, "").replace(asked.id[-8:], "")
        assert "needs the number" in said
        assert "47" not in repr(after).replace(asked.id, "").replace(asked.call_id, "").replace(
            asked.hashes.arguments, ""
        ).replace(asked.hashes.definition, "")


def test_the_numbers_to_press_are_the_same_everywhere_and_hold_the_right_one():
    question = approval(number="47")
    numbers = offered_numbers(question)
    assert len(set(numbers)) == OFFERED
    assert "47" in numbers
    assert list(numbers) == sorted(numbers)
    assert offered_numbers(replace(question)) == numbers
    assert offered_numbers(approval()) == ()
    assert all(10 <= int(new_number()) <= 99 for _ in range(200))


def test_a_button_carries_its_number_under_the_seal():
    buttons, question = Buttons(b"k" * 32), approval(number="47")
    made = buttons.make("telegram", question.id, "once", "47")
    assert len(made) == 44
    assert buttons.read("telegram", made) == (question.id, "once", "47")
    assert buttons.read("slack", made) is None


class NoDesk:
    """As much of a desk as buttons need."""

    buttons, pool, clock = Buttons(b"k" * 32), None, None

    @staticmethod
    def page():
        return "https://gate.example"


def test_telegram_offers_numbers_to_press_and_a_no():
    settings = TelegramSettings(token="t", chat_id=1, allowed_users=(1,))
    question = approval(number="47")
    rows = Telegram(settings, NoDesk, {})._keyboard(question, cut=False)
    pressed = {
        one["text"]: NoDesk.buttons.read("telegram", one["callback_data"]) for row in rows for one in row
    }
    assert pressed.pop("Deny").action == "deny"
    assert tuple(pressed) == offered_numbers(question)
    assert all(read == (question.id, "once", number) for number, read in pressed.items())


def test_slack_offers_numbers_and_links_offer_no_yes_that_lasts():
    question = approval(number="47")
    slack = Webhook(
        WebhookSettings(url="https://slack.example/x", format="slack", signing_secret="s"), NoDesk
    )
    assert set(slack._pressed(question)) == {*offered_numbers(question), "deny"}
    assert set(slack.links(question)) == {"once", "deny", "choose"}
