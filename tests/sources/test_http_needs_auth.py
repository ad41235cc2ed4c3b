"""An HTTP service that refuses the gateway's credential waits for a person, and is back when one has acted."""

import pytest
from tests.gateway import Api, in_front_of
from tests.waiting import wait_until

CONFIG = """
gateway: {{port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agents: {{a: {{token: {token}}}}}
permissions: permissions.yaml
services:
  house:
    url: {url}
    auth: {{type: bearer, token: a-token-of-the-house}}
    tools: {{get_state: {{request: {{method: GET, path: /state}}}}}}
    {errors}
"""
ALLOW = "defaults: [{pattern: '*', action: allow}]\nrules: []\n"
REFUSED = (401, {"WWW-Authenticate": "Bearer"}, b"{}")


def state(gateway):
    [found] = [one for one in gateway.admin.get("/api/sources") if one["key"] == "house"]
    return found


@pytest.mark.parametrize("again", ["/api/sources/house/connect", "/api/reload"])
def test_a_401_is_shown_as_a_missing_credential_until_a_person_reconnects_or_reloads(tmp_path, again):
    with Api() as api, in_front_of(api, tmp_path, CONFIG, "", ALLOW, errors="") as gateway:
        assert gateway.call("get_state").status == 200
        api.replies["/state"] = REFUSED
        refused = gateway.call("get_state").json["error"]
        assert "check its auth" in refused["message"]
        wait_until(lambda: state(gateway)["status"] == "needs_auth", "the state that says so")
        assert "HTTP 401" in state(gateway)["reason"]
        sent = len(api.requests)
        assert "Nothing was sent" in gateway.call("get_state").json["error"]["message"]
        assert len(api.requests) == sent
        api.reset()
        gateway.admin.request("POST", again, {})
        wait_until(lambda: gateway.call("get_state").status == 200, "the service's return")
        assert state(gateway)["status"] == "ready"


def test_a_401_that_the_file_has_words_for_is_the_tools_own_error(tmp_path):
    errors = "errors: [{status: 401, message: 'Not for you'}]"
    with Api() as api, in_front_of(api, tmp_path, CONFIG, "", ALLOW, errors=errors) as gateway:
        api.replies["/state"] = REFUSED
        assert gateway.call("get_state").json["error"]["message"] == "Not for you"
        assert state(gateway)["status"] != "needs_auth"
        api.reset()
        assert gateway.call("get_state").status == 200
