"""A gateway that ends in the middle of a sign-in: the next start goes on with it."""

from contextlib import suppress
from http.client import HTTPException

import pytest
from tests.gateway import running
from tests.processes import free_port
from tests.sign_in.conftest import files
from tests.sign_in.small_client import SmallClient, begin, follow, say_yes
from tests.waiting import PATIENCE

from agent_gate.errors import GatewayError


def see_it_end(gate, name):
    gate.process.wait(PATIENCE)
    assert f"failpoint {name}" in gate.stderr
    gate.process.stdout.close()
    gate.log.close()


def test_a_restart_while_a_person_is_asked_loses_nothing(tmp_path, api):
    with running(tmp_path, files(api, free_port()), "--insecure") as gate:
        client = SmallClient(gate)
        client.register()
        browser, place = begin(client)
        number = browser.get(place).number
        gate.kill()
        gate.start()
        assert browser.get(place).number == number
        say_yes(gate, number)
        code = follow(browser, place).answer()["code"]
        gate.stop()
        gate.start()
        assert client.redeem(code).status == 200
        gate.kill()
        gate.start()
        assert client.list_tools().status == 200
        assert client.refresh().status == 200
        gate.kill()
        gate.start()
        assert client.list_tools().status == 200


def test_a_gateway_that_is_killed_between_the_yes_and_the_code_hands_the_code_out_later(tmp_path, api):
    with running(tmp_path, files(api, free_port()), "--insecure") as gate:
        client = SmallClient(gate)
        client.register()
        browser, place = begin(client)
        number = browser.get(place).number
        gate.stop()
        gate.env["AGENT_GATE_FAILPOINT"] = "after_approve_commit"
        gate.start()
        with suppress(GatewayError):  # the answer is cut off
            say_yes(gate, number)
        see_it_end(gate, "after_approve_commit")
        gate.env["AGENT_GATE_FAILPOINT"] = "before_sign_in_code"
        gate.start()
        with pytest.raises((OSError, HTTPException)):
            follow(browser, place)
        see_it_end(gate, "before_sign_in_code")
        del gate.env["AGENT_GATE_FAILPOINT"]
        gate.start()
        assert client.redeem(follow(browser, place).answer()["code"]).status == 200
        assert client.list_tools().status == 200
