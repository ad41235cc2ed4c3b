"""What a newcomer does with `make run`: connect the demo's server by a link, use it, see it renew, end it, find nothing."""

import json
import os
import re

import pytest
from tests import nursery
from tests.gateway import COMMAND
from tests.oauth.test_signing_in import traces
from tests.ui.ui_house import one_demo
from tests.waiting import PATIENCE, wait_until

from agent_gate.config.files.dotenv import read_dotenv

LINK = re.compile(r"http://127\.0\.0\.1:\d+/authorize\S+")
TOKENS = ("demo_at_", "demo_rt_")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo as `make run` starts it, but on any free ports and with tokens of two seconds."""
    tmp_path = tmp_path_factory.mktemp("newcomer")
    said = tmp_path / "said.txt"
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = [COMMAND, "demo", "--folder", "home", "--port", "0", "--token-seconds", "2"]
    with one_demo(), said.open("wb") as out:
        process = nursery.ForkedCommand(command, cwd=tmp_path, env=env, stdout=out, stderr=out)
        try:
            wait_until(lambda: "The operator's page" in said.read_text())
            yield tmp_path, said
        finally:
            process.terminate()
            process.wait(PATIENCE)


class Newcomer:
    """Types the commands that the demo prints."""

    def __init__(self, folder, said):
        url = re.search(r"up at (http://\S+)", said.read_text())[1]
        token = read_dotenv(folder / "home" / ".env")["AGENT_TOKEN"]
        self._folder, self._env = folder, {"AGENT_GATE_URL": url, "AGENT_TOKEN": token, "HOME": str(folder)}

    def types(self, *words):
        return nursery.run(
            [COMMAND, *words],
            cwd=self._folder,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def auth(self, *words):
        done = self.types("auth", *words, "--config", "home/config.yaml")
        assert done.returncode == 0, done.stderr
        return done.stdout

    def account(self):
        [found] = json.loads(self.types("auth", "--config", "home/config.yaml", "--json").stdout)
        return found


def test_a_newcomer_connects_the_demos_server_by_a_link_watches_a_refresh_and_ends_it(browser, demo):
    folder, said = demo
    person = Newcomer(folder, said)
    refused = person.types("request", "notes__list_notes")
    assert refused.returncode != 0
    link = LINK.search(person.auth("start", "notes"))[0]
    page = browser.new_context().new_page()
    page.goto(link)
    page.fill("input[name=name]", "grace")
    page.click("text=Allow")
    page.wait_for_selector("text=notes has its account")
    wait_until(lambda: person.types("request", "notes__list_notes").stdout.count("Welcome"))
    first = person.account()
    assert (first["account"], first["connected"], first["scopes"]) == ("grace", True, ["notes"])

    def renewed():
        assert person.types("request", "notes__list_notes").returncode == 0
        return person.account()["renewed_at"]

    wait_until(renewed)
    shown = person.auth()
    assert re.search(r"notes +connected +grace +notes +\d+ s +\d+ s ago", shown), shown
    assert "Ended." in person.auth("end", "notes")
    ended = person.types("request", "notes__list_notes")
    assert (ended.returncode, "agent-gate auth start notes" in ended.stderr) == (5, True), ended.stderr
    assert traces(folder, *TOKENS) == []
    page.context.close()


def test_a_denied_consent_connects_nothing(browser, demo):
    folder, said = demo
    person = Newcomer(folder, said)
    link = LINK.search(person.auth("start", "notes"))[0]
    page = browser.new_context().new_page()
    page.goto(link)
    page.click("text=Deny")
    page.wait_for_selector("text=Nothing was connected")
    assert person.account()["connected"] is False
    page.context.close()
