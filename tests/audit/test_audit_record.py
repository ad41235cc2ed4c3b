"""One state change as a row, and the hash that chains it."""

import asyncio
import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import AT, opened, step

from agent_gate.audit import row, show
from agent_gate.core.call import State
from agent_gate.store import StoreSettings
from agent_gate.store.chain import GENESIS, link

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=8,
)


async def test_a_call_has_its_story_in_order(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        for state in (State.PENDING, State.APPROVED, State.DISPATCHING, State.COMPLETED):
            await store.write(row("c1", state, AT, "coder", "git:push", {"state is": state}))
        rows = await show(store, "c1")
        assert [r.state for r in rows] == ["pending", "approved", "dispatching", "completed"]
        assert [r.step for r in rows] == [1, 2, 3, 4]
        assert rows[0].decoded()["body"] == {"state is": "pending"}
        assert await show(store, "c2") == []


async def test_each_row_is_hashed_with_the_one_before_as_documented(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await asyncio.gather(*(store.write(step(f"c{i}", b=1, a="ü")) for i in range(3)))
        rows = [(await show(store, f"c{i}"))[0] for i in range(3)]
    before = bytes(32)
    for found in rows:
        assert found.body == '{"a":"ü","b":1}'
        covered = [found.chain, found.seq, found.call, found.step, found.at, found.state]
        covered += [found.caller, found.tool, found.body]
        text = json.dumps(covered, separators=(",", ":"), ensure_ascii=False)
        assert found.hash == hashlib.sha256(before + text.encode()).hexdigest()
        before = bytes.fromhex(found.hash)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), json_values, max_size=4))
def test_the_same_body_is_the_same_text_in_whatever_order_it_was_made(body: dict) -> None:
    backwards = dict(reversed(body.items()))
    first, second = (row("c", State.REFUSED, 1, "a", "t", b) for b in (body, backwards))
    assert first.params == second.params
    assert json.loads(str(first.params[6])) == body


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=2, max_size=4), st.integers(1, 9))
def test_no_text_can_pass_for_another_row(parts: list[str], seq: int) -> None:
    joined = ["".join(parts[:2]), *parts[2:]]
    assert link(GENESIS, "a", seq, parts) != link(GENESIS, "a", seq, joined)
    assert link(GENESIS, "a", seq, parts) != link(GENESIS, "a", seq + 1, parts)
    assert link(GENESIS, "a", seq, parts) != link(GENESIS, "b", seq, parts)


async def test_hostile_text_is_kept_exactly(settings: StoreSettings, tmp_path: Path) -> None:
    nasty = {"k": "\x00\x1f'\"\\%s?;--\u2028\U0001f600", "n": [1.5, -0.0, 1e300, None, True]}
    async with opened(settings) as store:
        await store.write(row("c1", State.REFUSED, AT, "a'b", "t%?", nasty))
        (found,) = await show(store, "c1")
        assert found.decoded()["body"] == nasty
        assert (found.caller, found.tool, found.at) == ("a'b", "t%?", AT)


@pytest.mark.parametrize("state", list(State))
def test_a_row_has_the_step_of_its_state(state: State) -> None:
    params = row("c", state, 1, "a", "t", {}).params
    assert (params[1], params[3], type(params[3]), type(params[2])) == (state.step, state.value, str, float)
