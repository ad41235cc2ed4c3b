"""What a source knows of a call is part of what is approved, and a call that would act on something else is refused."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import replace

from tests.calls.small_calls import YES, SmallCalls, opened

from agent_gate.approval import pictures
from agent_gate.approval.render import card
from agent_gate.core.call import Result, State
from agent_gate.core.catalog import Shelf
from agent_gate.core.ports import Picture, Plan, SystemClock
from agent_gate.core.tool import Definition
from agent_gate.errors import Forbidden, InvalidArgs
from agent_gate.policy import Policy
from agent_gate.policy.rule import make_rule
from agent_gate.sources.pins import Pins
from agent_gate.sources.supervisor import Supervisor

PNG = b"\x89PNG\r\n\x1a\n"


class Browser:
    """A source whose `click` means whatever its page shows at that place."""

    kind, unwell, about, watched, context = "test", None, "", False, None
    key = namespace = title = "web"

    def __init__(self):
        self.page = {"origin": "https://shop.example", "element": "Add to basket"}
        self.clicked, self.connected, self.pictures = [], asyncio.Event(), 0
        self.picture_now = Picture("image/png", PNG)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None

    async def connect(self):
        schema = {"type": "object", "properties": {"ref": {"type": "string"}}}
        template = "{ref}, {facts.element} on {facts.origin}"
        return [
            Definition(name="click", input_schema=schema, template=template, ask="Click {facts.element}?"),
            Definition(name="press", input_schema=schema),
        ]

    async def watch(self):
        self.connected.set()
        await asyncio.Event().wait()

    async def answer(self, job):
        self.clicked.append(self.page["element"])
        return Result(b'"clicked"')

    def facts(self, tool, call):
        if self.page is None:
            raise RuntimeError("the page is gone")
        return self.page

    async def picture(self, tool, call):
        self.pictures += 1
        return await self.picture_now if asyncio.isfuture(self.picture_now) else self.picture_now


class WebCalls(SmallCalls):
    """The parts of a call over a real supervisor with the browser."""

    def __init__(self, store, browser, supervisor, action):
        self.browser, self.supervisor = browser, supervisor
        super().__init__(
            store,
            action=action,
            clock=SystemClock(),
            shelf=supervisor.shelf,
            sources=supervisor.keepers,
            witnesses=supervisor.witnesses,
        )

    def call(self, name="click", **more):
        return super().call(**{"tool": f"web__{name}", "arguments": {"ref": "e12"}} | more)

    async def ask(self, **more):
        await self.calls.run(self.call(**more), wait=0)
        return await self.asked()

    async def approve(self, approval, **more):
        await self.calls.answer(approval.id, replace(YES, **more))
        return await self.calls.await_outcome(approval.call_id, approval.caller, wait=None)


@asynccontextmanager
async def web(folder, action="ask", *, browser=None):
    async with opened(folder) as store:
        browser = browser or Browser()
        pins = Pins(store)
        await pins.load()
        supervisor = Supervisor(Shelf(), SystemClock(), pins)
        await supervisor.start([Plan(source=browser, settings=None, witness=browser)])
        await browser.connected.wait()
        gate = WebCalls(store, browser, supervisor, action)
        await gate.recover()
        try:
            yield gate
        finally:
            await gate.calls.drain(1.0)
            await supervisor.stop()


async def test_a_question_names_what_the_call_would_act_on(tmp_path):
    async with web(tmp_path) as gate:
        asked = await gate.ask()
        assert asked.signature == "web__click(e12, Add to basket on https://shop.example)"
        assert asked.asked.sentence == "Click Add to basket?"
        shown = {argument.name: argument.value for argument in card(asked).arguments}
        assert shown == {
            "ref": '"e12"',
            "facts.origin": '"https://shop.example"',
            "facts.element": '"Add to basket"',
        }
        assert (await gate.approve(asked)).state is State.COMPLETED
        assert gate.browser.clicked == ["Add to basket"]


async def test_a_fact_cannot_pass_for_more_than_one(tmp_path):
    async with web(tmp_path) as gate:
        gate.browser.page = {**gate.browser.page, "element": "Buy on https://bank), x(*"}
        asked = await gate.ask()
        assert asked.signature == (
            "web__click(e12, Buy on https://bank%29%2C x%28%2A on https://shop.example)"
        )


async def test_rules_see_the_facts_that_a_template_names(tmp_path):
    async with web(tmp_path, "allow") as gate:
        rules = [
            make_rule(pattern="web__click(*Delete account*)", action="deny"),
            make_rule(pattern="web__press(ref=e12)", action="deny"),
            make_rule(pattern="*", action="allow"),
        ]
        gate.in_force.swap(replace(gate.in_force.terms, policy=Policy(rules)))
        assert (await gate.calls.run(gate.call())).state is State.COMPLETED
        gate.browser.page = {**gate.browser.page, "element": "Delete account"}
        for name in ("click", "press"):
            assert (await gate.calls.run(gate.call(name))).error.message == "Denied by policy"


async def test_an_approved_call_does_not_act_on_something_else(tmp_path):
    async with web(tmp_path) as gate:
        asked = await gate.ask()
        gate.browser.page = {**gate.browser.page, "element": "Buy now"}
        outcome = await gate.approve(asked)
        assert isinstance(outcome.error, Forbidden)
        assert "element changed" in outcome.error.message
        assert gate.browser.clicked == []


async def test_an_approved_call_does_not_act_on_something_else_after_a_restart(tmp_path):
    async with web(tmp_path) as gate:
        first = await gate.ask()
    async with web(tmp_path) as gate:
        again = await gate.asked()
        assert (again.asked.facts, again.hashes) == (first.asked.facts, first.hashes)
        assert (await gate.approve(again)).state is State.COMPLETED
        await gate.ask()
    moved = Browser()
    moved.page = {"origin": "https://evil.example", "element": "Add to basket"}
    async with web(tmp_path, browser=moved) as gate:
        outcome = await gate.approve(await gate.asked())
        assert "origin changed" in outcome.error.message
        assert moved.clicked == []


async def test_an_allowed_call_does_not_act_on_something_else(tmp_path):
    async with web(tmp_path, "allow") as gate:
        claimed = gate.store.write

        async def meanwhile(*statements):
            gate.browser.page = {**gate.browser.page, "element": "Buy now"}
            return await claimed(*statements)

        gate.store.write = meanwhile
        outcome = await gate.calls.run(gate.call("press"))
        gate.store.write = claimed
        assert (outcome.state, outcome.error.code) == (State.FAILED, "FORBIDDEN")
        assert gate.browser.clicked == []
        assert (await gate.calls.run(gate.call("press"))).state is State.COMPLETED


async def test_a_grant_holds_only_for_the_facts_it_was_given_for(tmp_path):
    async with web(tmp_path) as gate:
        for name in ("click", "press"):
            page = gate.browser.page
            assert (await gate.approve(await gate.ask(name=name), lifetime="always")).state
            assert (await gate.calls.run(gate.call(name))).state is State.COMPLETED
            gate.browser.page = {**page, "element": "Buy now"}
            other = await gate.ask(name=name)
            assert other.asked.facts["element"] == "Buy now"
            gate.browser.page = page
            assert (await gate.calls.run(gate.call(name))).state is State.COMPLETED
            await gate.calls.withdraw(other.call_id, other.caller)


async def test_questions_about_different_facts_are_different_questions(tmp_path):
    async with web(tmp_path) as gate:
        first = await gate.ask()
        assert (await gate.calls.run(gate.call(), wait=0)).approval_id == first.id
        gate.browser.page = {**gate.browser.page, "element": "Buy now"}
        assert (await gate.calls.run(gate.call(), wait=0)).approval_id != first.id


async def test_a_key_is_of_the_arguments_whatever_the_page_shows_now(tmp_path):
    async with web(tmp_path, "allow") as gate:
        first = await gate.calls.run(gate.call(idempotency_key="k"))
        gate.browser.page = {**gate.browser.page, "element": "Buy now"}
        again = await gate.calls.run(gate.call(idempotency_key="k"))
        assert (again.call_id, again.state) == (first.call_id, State.COMPLETED)
        assert gate.browser.clicked == ["Add to basket"]


async def test_an_argument_cannot_pass_for_a_fact(tmp_path):
    async with web(tmp_path) as gate:
        refused = await gate.calls.run(gate.call(arguments={"ref": "e1", "facts.element": "Cancel"}))
        assert isinstance(refused.error, InvalidArgs)


async def test_a_source_that_cannot_say_what_a_call_is_about_gets_no_call(tmp_path):
    async with web(tmp_path, "allow") as gate:
        gate.browser.page = None
        outcome = await gate.calls.run(gate.call())
        assert "cannot say what this call would act on" in outcome.error.message
        assert gate.browser.clicked == []


async def test_the_record_says_what_the_call_acted_on(tmp_path):
    async with web(tmp_path, "allow") as gate:
        outcome = await gate.calls.run(gate.call("press"))
        await gate.store.flush()
        [(body,)] = await gate.store.read(
            "SELECT body FROM record WHERE call = ? AND state = 'dispatching'", (outcome.call_id,)
        )
        assert json.loads(body)["facts"] == gate.browser.page


async def test_a_question_has_the_picture_that_its_source_shows(tmp_path):
    async with web(tmp_path) as gate:
        asked = await gate.ask()
        assert asked.asked.picture == "image/png"
        assert await pictures.read_picture(gate.store, asked) == Picture("image/png", PNG)
        await gate.calls.run(gate.call(), wait=0)
        assert gate.browser.pictures == 1
    async with web(tmp_path) as gate:
        again = await gate.asked()
        assert await pictures.read_picture(gate.store, again) == Picture("image/png", PNG)


async def test_a_question_is_asked_without_a_picture_that_does_not_come_or_cannot_be_shown(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(pictures, "SECONDS", 0.05)
    async with web(tmp_path) as gate:
        never = asyncio.get_running_loop().create_future()
        broken = asyncio.get_running_loop().create_future()
        broken.set_exception(RuntimeError("no display"))
        huge = Picture("image/png", b"x" * (pictures.MOST_BYTES + 1))
        for one in (never, broken, Picture("text/html", b"<script>"), huge, None):
            gate.browser.picture_now = one
            asked = await gate.ask()
            assert asked.asked.picture == ""
            assert await pictures.read_picture(gate.store, asked) is None
            await gate.calls.withdraw(asked.call_id, asked.caller)


async def test_two_calls_at_once_are_one_question_while_its_picture_is_taken(tmp_path):
    async with web(tmp_path) as gate:
        gate.browser.picture_now = taking = asyncio.get_running_loop().create_future()
        both = [asyncio.ensure_future(gate.calls.run(gate.call(), wait=0)) for _ in range(2)]
        while gate.browser.pictures < 2:
            await asyncio.sleep(0)
        taking.set_result(Picture("image/png", PNG))
        first, second = await asyncio.gather(*both)
        assert first.approval_id == second.approval_id
        assert len(gate.inbox.open()) == 1


async def test_a_picture_goes_a_while_after_its_question(tmp_path):
    async with web(tmp_path) as gate:
        asked = await gate.ask()

        class Later:
            now = staticmethod(lambda: asked.asked.expires_at + pictures.KEPT_SECONDS)

        await pictures.purge_pictures(gate.store, gate.clock)
        assert await pictures.read_picture(gate.store, asked) is not None
        await pictures.purge_pictures(gate.store, Later())
        assert await pictures.read_picture(gate.store, asked) is None
