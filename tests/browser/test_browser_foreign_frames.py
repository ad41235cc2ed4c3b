"""Frames of other sites run in processes of their own, and are seen, clicked and decided on like the rest."""

import pytest
from tests.browser.browser_house import browser_house, page
from tests.gateway import Api

FRAME = """<form action=/paid method=post><button>Pay</button></form>
<button onclick="this.textContent='Pressed inside'">Inside</button><label>Code <input></label>
<label>Pin <input type=password value=geheim></label>"""


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with Api() as other:
        other.name = other.url.replace("127.0.0.1", "localhost")
        also = type("Also", (), {"url": other.name})
        with browser_house(tmp_path_factory.mktemp("frames"), also=also) as (gateway, site):
            site.other = other
            yield gateway, site


@pytest.fixture
def framed(agent):
    agent.site.other.replies["/frame"] = page(FRAME)
    agent.site.replies["/outer"] = page(f"<h1>Outer</h1><iframe src={agent.site.other.name}/frame></iframe>")
    agent.open("/outer")
    return agent


def test_an_element_of_a_foreign_frame_is_clicked(framed):
    assert "Pressed inside" in framed.call("click", ref=framed.ref("Inside"))


def test_text_is_typed_into_a_foreign_frame(framed):
    assert '= "42"' in framed.call("type", ref=framed.ref("Code"), text="42")


def test_the_signature_names_the_origin_of_the_frame_and_not_of_the_page(framed):
    ask, _ = framed.asks("click", ref=framed.ref("Pay"))
    assert ask["signature"] == f"browser_click({framed.site.other.name}, Pay)"
    assert ask["facts"]["submits"] == f"POST {framed.site.other.name}"


def test_a_password_in_a_foreign_frame_is_not_seen(framed):
    assert "geheim" not in framed.last + framed.call("snapshot", full=True)
