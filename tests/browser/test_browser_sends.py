"""What a page's script sends because of an act counts as a submission, where it can be told from what it sends anyway."""

import pytest
from tests.browser.browser_house import page
from tests.waiting import wait_until

from agent_gate.sources.browser.posts import operation_of

ORDER = """<h1>Shop</h1><button id=b>Place order</button><p id=p></p><script>
b.onclick = async () => { p.textContent = await fetch('/order', SENT).then((r) => r.text(), () => 'failed') }</script>"""
XHR = """<h1>Shop</h1><button id=b>Place order</button><script>
b.onclick = () => { const x = new XMLHttpRequest(); x.open('PUT', '/order'); x.send('1') }</script>"""
HEARTBEAT = """<h1>Beats</h1><button id=b>Look</button><p id=p></p><p id=n></p><script>let n = 0;
const beat = () => fetch('/beat', {method: 'POST', body: '1'}).then(() => { n++; document.title = 'beats ' + n });
beat(); setInterval(beat, 40);
b.onclick = () => { p.textContent = 'looked'; beat() }</script>"""
GRAPH = """<h1>Graph</h1><button id=r>Read</button><button id=w>Write</button><p id=p></p><script>
const send = (query) => fetch('/graphql', {method: 'POST', body: JSON.stringify({query})})
  .then(() => { p.textContent += ' sent' }, () => { p.textContent += ' failed' });
send('query First { me { name } }');
r.onclick = () => send('{ me { name } }'); w.onclick = () => send('mutation Order { order(id: 1) { id } }')</script>"""
SELECT = """<h1>Choose</h1><form id=f action=/order method=post><label>Size
<select name=size onchange=f.submit()><option>S<option>L</select></label></form>"""
KEYS = """<h1>Keys</h1><input id=i aria-label=Message onkeydown="if (event.key === 'Enter')
fetch('/order', {method: 'POST', body: i.value})">"""


def orders(agent):
    return [one["method"] for one in agent.site.requests if one["path"] == "/order"]


def serve(agent, body):
    agent.site.replies.update({"/page": page(body), "/order": page("ordered"), "/beat": page("x")})
    agent.site.replies["/graphql"] = page("{}", "application/json")
    return agent.open("/page")


def approve(agent, tool, **arguments):
    """Ask for the call, have it approved, and wait for its end."""
    ask, call = agent.asks(tool, **arguments)
    assert ask["facts"]["submits"].endswith(agent.site.url)
    assert orders(agent) == []
    agent.answer(ask)
    return agent.gateway.request("GET", f"/api/calls/{call['call']}?wait=20")


@pytest.mark.parametrize(
    ("body", "method"),
    [(ORDER.replace("SENT", "{method: 'POST'}"), "POST"), (XHR, "PUT")],
    ids=["fetch", "xhr"],
)
def test_a_click_whose_script_sends_something_is_held_back_and_asked_for(agent, body, method):
    ref = agent.ref("Place order", serve(agent, body))
    said = agent.refused("click", ref=ref)
    assert f"would submit something ({method} {agent.site.url})" in said
    assert "Call again" in said
    approve(agent, "click", ref=ref)
    wait_until(lambda: orders(agent) == [method])


def test_a_click_whose_script_only_asks_for_something_is_none(agent):
    ref = agent.ref("Place order", serve(agent, ORDER.replace("SENT", "{}")))
    assert "+ ordered" in agent.call("click", ref=ref)
    assert orders(agent) == ["GET"]


def test_what_a_page_sends_by_itself_makes_no_submission_of_a_click(agent):
    serve(agent, HEARTBEAT)
    wait_until(lambda: "beats" in agent.call("snapshot"))
    assert "+ looked" in agent.call("click", ref=agent.ref("Look"))


def test_of_graphql_only_what_changes_something_is_held_back(agent):
    first = serve(agent, GRAPH)
    assert "sent" in agent.call("click", ref=agent.ref("Read", first))
    assert "would submit something" in agent.refused("click", ref=agent.ref("Write", first))
    assert "failed" in agent.call("snapshot")


def test_a_choice_whose_script_sends_its_form_is_held_back_and_asked_for(agent):
    ref = agent.ref("Size", serve(agent, SELECT))
    assert "would submit something" in agent.refused("select_option", ref=ref, values=["L"])
    approve(agent, "select_option", ref=ref, values=["S"])
    wait_until(lambda: orders(agent) == ["POST"])


def test_a_key_whose_script_sends_something_is_held_back_and_asked_for(agent):
    serve(agent, KEYS)
    agent.call("type", ref=agent.ref("Message"), text="hi")
    assert "would submit something" in agent.refused("press_key", key="Enter")
    approve(agent, "press_key", key="Enter")
    wait_until(lambda: orders(agent) == ["POST"])


def test_typing_and_sending_by_enter_is_held_back_and_asked_for(agent):
    ref = agent.ref("Message", serve(agent, KEYS))
    assert "would submit something" in agent.refused("type", ref=ref, text="hi", submit=True)
    approve(agent, "type", ref=ref, text="hi", submit=True)
    wait_until(lambda: orders(agent) == ["POST"])


@pytest.mark.parametrize(
    ("body", "operation"),
    [
        ('{"query": "query A { a }"}', "query"),
        ('{"query": "{ a }"}', "query"),
        ('{"query": "fragment F on A { b } mutation M { a }"}', "mutation"),
        ('[{"query": "{ a }"}, {"query": "mutation { a }"}]', "mutation"),
        ('{"query": "lamps"}', ""),
        ('{"order": 1}', ""),
        ("{", ""),
        ("a=1", ""),
        ("", ""),
        ("[]", ""),
    ],
)
def test_an_operation_of_graphql_is_told_from_other_bodies(body, operation):
    assert operation_of(body) == operation
