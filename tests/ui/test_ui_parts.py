"""Every part of the page in every state, and what the page weighs."""

import re

import pytest
from tests.ui.chromium import DESKTOP, PHONE
from tests.ui.ui_fixtures import Fixtures

from agent_gate.surfaces.admin.doors.page import folder

MOST_BYTES = 200 * 1024


@pytest.fixture(scope="module")
def fixtures():
    server = Fixtures().start()
    yield server
    server.stop()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_part_is_drawn_in_every_state_at_both_widths(browser, fixtures, scheme):
    for size in (DESKTOP, PHONE):
        context = browser.new_context(viewport=size, color_scheme=scheme)
        page, faults = context.new_page(), []
        page.on("pageerror", lambda error, faults=faults: faults.append(str(error)))
        page.goto(f"{fixtures.url}/gallery")
        page.wait_for_selector("body[data-ready]")
        page.evaluate("new Promise(requestAnimationFrame)")
        drawn = page.eval_on_selector_all(
            "[data-part]",
            "(parts) => parts.map((part) => [part.dataset.part, part.offsetHeight, part.scrollWidth <= part.clientWidth + 1])",
        )
        context.close()
        assert faults == []
        assert len(drawn) == 27
        assert [name for name, tall, _ in drawn if tall < 40] == []
        assert [name for name, _, fits in drawn if not fits] == []


def test_the_page_weighs_at_most_200_kilobytes():
    files = [file for file in folder().rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= MOST_BYTES


def test_colours_stand_in_one_file_alone():
    for file in folder().rglob("*.css"):
        if file.name != "tokens.css":
            found = re.findall(r"#[0-9a-fA-F]{3,8}\b|rgba?\(", file.read_text())
            assert found == [], file.name
