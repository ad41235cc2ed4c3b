"""An agent signs in without seeing the password."""

import pytest
from tests.browser.browser_house import ALLOW, Agent, browser_house, page
from tests.gateway import COMMAND, Api
from tests.nursery import run

FORM = """<form action=/in method=post><label>Mail <input type=email name=u></label>
<label>Password <input type=password name=p id=p></label><button>Sign in</button></form><p id=o></p>
<button onclick="o.textContent='it is '+p.value">Tell</button>"""
SECRET = "ada@example.org:correct-horse"


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """The login is in the vault, where a person puts it while the gateway runs."""
    with Api() as other:
        folder = tmp_path_factory.mktemp("login")
        with browser_house(folder, ALLOW, login_to_site="vault:shop", also=other, max_contexts=16) as (
            gateway,
            site,
        ):
            site.other = other
            site.replies["/login"] = page(FORM)
            early = Agent(gateway, site, "early")
            early.open("/login")
            asked, call = early.asks("login")
            early.answer(asked)
            site.before = gateway.request("GET", f"/api/calls/{call['call']}?wait=20").body.decode()
            site.still = early.call("snapshot")
            keep(gateway, "shop", SECRET)
            yield gateway, site


def keep(gateway, name, secret):
    """As a person does it in a terminal."""
    command = [COMMAND, "secrets", "set", name, "--admin-socket", gateway.announced["socket"]]
    run(command, input=f"{secret}\n", capture_output=True, text=True, check=True)


def test_a_login_that_is_not_in_the_vault_yet_says_how_to_put_it_there(house):
    assert "agent-gate secrets set shop" in house[1].before
    assert "Sign in" in house[1].still, "the browser itself goes on"


def test_the_password_stands_in_no_file_of_the_gateway_and_in_no_log(agent):
    agent.site.replies["/login"] = page(FORM)
    agent.open("/login")
    ask, call = agent.asks("login")
    agent.answer(ask)
    assert (
        "Filled in the login"
        in agent.gateway.request("GET", f"/api/calls/{call['call']}?wait=20").body.decode()
    )
    kept = [path for path in agent.gateway.folder.rglob("*") if path.is_file()]
    assert kept
    assert [path.name for path in kept if b"correct-horse" in path.read_bytes()] == []


def test_a_login_is_asked_for_and_fills_what_the_agent_does_not_see(agent):
    agent.site.replies["/login"] = page(FORM)
    agent.site.replies["/in"] = page("<h1>Welcome</h1>")
    agent.open("/login")
    ask, call = agent.asks("login", submit=True)
    assert ask["signature"] == f"browser_login({agent.site.url})"
    assert "correct-horse" not in str(ask)
    agent.answer(ask)
    reply = agent.gateway.request("GET", f"/api/calls/{call['call']}?wait=20")
    assert "Welcome" in reply.body.decode()
    assert "correct-horse" not in reply.body.decode()
    [sent] = [one["body"] for one in agent.site.requests if one["path"] == "/in"]
    assert sent == b"u=ada%40example.org&p=correct-horse"


def test_a_page_that_shows_the_password_does_not_get_it_to_the_agent(agent):
    agent.site.replies["/login"] = page(FORM)
    agent.open("/login")
    first = agent.last
    ask, call = agent.asks("login")
    agent.answer(ask)
    agent.gateway.request("GET", f"/api/calls/{call['call']}?wait=20")
    said = agent.call("click", ref=agent.ref("Tell", first))
    assert "it is" in said
    assert "correct-horse" not in said + agent.call("snapshot", full=True)


def test_another_origin_gets_no_login(agent):
    agent.site.other.replies["/login"] = page(FORM)
    agent.call("navigate", url=f"{agent.site.other.url}/login")
    assert "There is no login for" in agent.refused("login")


def test_a_frame_of_another_origin_gets_no_login(agent):
    agent.site.other.replies["/login"] = page(FORM)
    agent.site.replies["/frame"] = page(f"<h1>Outer</h1><iframe src={agent.site.other.url}/login></iframe>")
    agent.open("/frame")
    assert "no password field of its own origin" in agent.refused("login")
