"""What is promised of the web tools without a gateway in front: what they say of themselves, and how far they go."""

import socket

import pytest
from tests.toolboxes import toolbox

from agent_gate.core.call import Call, Caller, Case, Decision
from agent_gate.core.catalog import Listing, build
from agent_gate.core.ports import Job, SystemClock
from agent_gate.errors import CallTimeout, DependencyUnavailable, InvalidArgs
from agent_gate.net.addresses import PrivateHosts
from agent_gate.net.pool import Pool
from agent_gate.policy import Policy, Subject
from agent_gate.policy.rule import make_rule
from agent_gate.sources.web import reading
from agent_gate.sources.web.fetching import Fetched, WebClient
from agent_gate.sources.web.settings import SearchSettings, WebSettings
from agent_gate.sources.web.source import TOOLS, WebSource

CATALOG = build([Listing(key="web", namespace="web", definitions=TOOLS)])


def test_the_web_tools_only_read_and_say_so():
    traits = {tool.wire: tool.traits for tool in CATALOG.tools}
    assert set(traits) == {"browser_fetch", "browser_search", "weather_get"}
    assert all(one.read_only and one.open_world and one.trusted for one in traits.values())


def test_a_signature_shows_the_address_so_that_rules_can_name_it():
    [fetch] = [tool for tool in CATALOG.tools if tool.wire == "browser_fetch"]
    assert (
        fetch.sign({"url": "https://docs.example.com/a"}) == "browser_fetch(url=https://docs.example.com/a)"
    )


async def test_without_the_extra_a_page_is_refused_with_what_to_install_and_its_source_still_comes(
    monkeypatch,
):
    monkeypatch.setattr(reading, "can_read", lambda: False)
    fetched = Fetched(url="https://a.example/", status=200, content_type="text/html", body=b"<p>hello")
    with pytest.raises(DependencyUnavailable, match=r"agent-gate\[web\]"):
        await reading.make_readable(fetched, raw=False, seconds=20)
    assert "<p>hello" in (await reading.make_readable(fetched, raw=True, seconds=20)).text


async def test_a_page_that_does_not_come_in_time_is_given_up():
    web = WebClient(PrivateHosts(("127.0.0.1",)), 1000)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(CallTimeout, match="did not answer in time"):
            await web.read(f"http://127.0.0.1:{silent.getsockname()[1]}/", SystemClock.monotonic() + 0.1)
        await web.aclose()


@pytest.mark.parametrize(
    "rule",
    [
        {"pattern": "weather_get*", "action": "allow"},
        {"namespace": "web", "read_only": True, "action": "allow"},
    ],
)
def test_the_rules_of_the_page_spare_the_questions(rule):
    [weather] = [tool for tool in CATALOG.tools if tool.wire == "weather_get"]
    arguments = {"location": "Berlin"}
    subject = Subject(weather, arguments, weather.sign(arguments), "pi")
    assert Policy([make_rule(**rule)], []).decide(subject).effect == "allow"
    assert Policy([], []).decide(subject).effect != "allow"


@pytest.mark.parametrize(("given", "shown"), [({}, 8), ({"max_results": 20}, 20)])
async def test_a_search_gives_eight_results_or_as_many_as_are_asked_for(tmp_path, given, shown):
    for number in range(25):
        (tmp_path / f"{number}.md").write_text("The sea rises.")
    pool, [tool] = Pool(), [tool for tool in CATALOG.tools if tool.wire == "browser_search"]
    settings = WebSettings(search=SearchSettings(provider="local", folder=tmp_path))
    case = Case(
        call=Call(tool=tool.wire, arguments={"query": "sea", **given}, caller=Caller(name="pi")),
        tool=tool,
        signature="",
        decision=Decision(effect="allow"),
        arguments_hash="",
        definition_hash="",
    )
    async with WebSource(settings, toolbox(pool)) as source:
        result = await source.answer(Job(case=case, deadline=SystemClock.monotonic() + 20))
    await pool.aclose()
    assert result.body.decode().count("file://") == shown


def test_no_more_than_twenty_results_can_be_asked_for():
    [tool] = [tool for tool in CATALOG.tools if tool.wire == "browser_search"]
    tool.validate({"query": "sea", "max_results": 20})
    with pytest.raises(InvalidArgs):
        tool.validate({"query": "sea", "max_results": 21})
