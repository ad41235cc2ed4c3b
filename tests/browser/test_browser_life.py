"""How long browsers live: opened on first use, bounded, replaced when they die, and gone with the gateway."""

import signal
from contextlib import contextmanager

import psutil
import pytest
from tests.browser.browser_house import Agent, browser_house, page, stop_browsers
from tests.waiting import wait_until

from agent_gate.sources.browser.engine import folder_for
from agent_gate.sources.state import FAILURES_TO_OPEN


def browsers_below(gateway):
    """Every process of the browser and its driver."""
    try:
        below = psutil.Process(gateway.process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    named = [(one, command(one)[:1]) for one in below]
    return [one for one, program in named if program and program[0].endswith(("chromium", "node", "chrome"))]


def command(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def alive(processes):
    return [one for one in processes if lives(one)]


def lives(process):
    """Whether it runs; it may end between two looks at it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextmanager
def small_house(folder):
    with browser_house(folder, max_contexts=2, max_tabs=3, timeout=8) as (gateway, site):
        site.replies["/here"] = page("<h1>Here</h1><button onclick='for(;;);'>Hang</button>")
        site.replies["/many"] = page(
            "<button onclick='for(let i=0;i<50;i++)window.open(\"/here\")'>Many</button>"
        )
        yield gateway, site


@pytest.fixture
def small(tmp_path):
    """A house of the test's own, which may end it."""
    with small_house(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    with small_house(tmp_path_factory.mktemp("kept")) as made:
        yield made


@pytest.fixture
def shared(kept):
    """The house of those that leave it standing, with nobody in it."""
    yield kept
    stop_browsers(kept[0])


def test_nothing_is_left_after_a_stop(small):
    gateway, site = small
    Agent(gateway, site, "a").open("/here")
    started = browsers_below(gateway)
    assert len(started) > 2
    gateway.stop()
    wait_until(lambda: alive(started) == [])


def test_of_a_gateway_that_is_killed_no_process_is_left_and_its_files_go_with_the_next_start(small):
    gateway, site = small
    Agent(gateway, site, "a").open("/here")
    started, files = browsers_below(gateway), folder_for(gateway.folder / "data")
    assert len(started) > 2
    gateway.kill()
    wait_until(lambda: alive(started) == [])
    assert files.exists()
    gateway.start()
    wait_until(lambda: not files.exists())


def test_a_browser_that_is_killed_is_replaced_and_the_agent_told(small):
    gateway, site = small
    agent = Agent(gateway, site, "a")
    agent.open("/here")
    for process in browsers_below(gateway):
        words = command(process)
        if words and words[0].endswith("chromium") and "--type=" not in " ".join(words):
            process.send_signal(signal.SIGKILL)
    wait_until(lambda: "No page is open" in agent.refused("snapshot"))
    assert "crashed and was replaced" in agent.open("/here")
    assert "# Here" in agent.last


def test_a_page_that_hangs_is_stopped_and_goes_on(shared):
    gateway, site = shared
    agent = Agent(gateway, site, "a")
    agent.open("/here")
    said = agent.refused("click", ref=agent.ref("Hang"))
    assert "did not answer within" in said
    assert "# Here" in (agent.call("snapshot") if "stopped" in said else agent.open("/here"))


def test_a_page_that_opens_fifty_windows_gets_no_more_than_the_tabs_it_may_have(shared):
    gateway, site = shared
    agent = Agent(gateway, site, "a")
    agent.open("/many")
    agent.call("click", ref=agent.ref("Many"))
    assert len(agent.call("tabs", action="list").split("\n")) <= 5
    lines = [line for line in agent.last.splitlines() if ": http" in line]
    assert 1 <= len(lines) <= 3


def test_sessions_beyond_the_most_are_refused(shared):
    gateway, site = shared
    for name in "ab":
        Agent(gateway, site, name).open("/here")
    assert "browser.max_contexts" in Agent(gateway, site, "c").refused("navigate", url=site.url)


def test_sessions_that_are_refused_again_and_again_keep_nobody_from_their_own_pages(shared):
    gateway, site = shared
    first, second, third = (Agent(gateway, site, name) for name in "abc")
    first.open("/here")
    second.open("/here")
    for _ in range(FAILURES_TO_OPEN + 1):
        assert "browser.max_contexts" in third.refused("navigate", url=site.url)
    assert "# Here" in first.call("snapshot")


def test_a_session_that_closes_its_browser_makes_room_for_another(shared):
    gateway, site = shared
    first, second, third = (Agent(gateway, site, name) for name in "abc")
    first.open("/here")
    second.open("/here")
    assert first.call("close") == "Closed."
    assert first.call("close") == "Nothing was open."
    assert "# Here" in third.open("/here")
    assert "No page is open" in first.refused("snapshot")


def test_a_browser_that_nobody_uses_is_closed_and_started_again(tmp_path):
    with browser_house(tmp_path, idle=2) as (gateway, site):
        site.replies["/here"] = page("<h1>Here</h1>")
        agent = Agent(gateway, site, "a")
        agent.open("/here")
        wait_until(lambda: browsers_below(gateway) == [])
        assert "# Here" in agent.open("/here")


def test_a_browser_whose_page_eats_memory_is_replaced_and_the_agent_told(tmp_path):
    with browser_house(tmp_path, idle=60, max_megabytes=700) as (gateway, site):
        eats = "<h1>Eats</h1><script>kept=[];for(let i=0;i<60;i++)kept.push(new Uint8Array(10<<20).fill(i))</script>"
        site.replies.update({"/here": page("<h1>Here</h1>"), "/eats": page(eats)})
        agent = Agent(gateway, site, "a")
        agent.open("/here")
        before = browsers_below(gateway)
        agent.reply("navigate", url=f"{site.url}/eats")  # which the end of the browser may overtake
        wait_until(lambda: alive(before) == [])
        assert "took more than 700 MB and was replaced" in agent.open("/here")
        assert "# Here" in agent.call("snapshot")


def test_without_a_browser_the_source_says_what_to_install(tmp_path):
    nowhere = tmp_path / "nowhere"
    with browser_house(tmp_path, executable=str(nowhere)) as (gateway, _):
        [source] = [one for one in gateway.admin.get("/api/sources") if one["key"] == "browser"]
        wait_until(lambda: "is not a program" in str(gateway.admin.get("/api/sources")))
        assert source["kind"] == "browser"
