"""A sentence reaches Home Assistant whole, with the bundled tools as `init` writes them."""

import json
import os
import subprocess

from tests import nursery
from tests.gateway import COMMAND, TOKEN, Api, running
from tests.waiting import PATIENCE, wait_until

from agent_gate.cli.demo.starter import write_starter

SENTENCE = "Dinner is ready, come!"


def test_a_notification_may_hold_a_comma(tmp_path):
    with Api() as api:
        write_starter(tmp_path)
        config = (tmp_path / "config.yaml").read_text().replace("admin:   {", "admin: {port: 0, ")
        env = {"HOME_URL": api.url, "HOME_TOKEN": "token-of-the-home", "AGENT_TOKEN": TOKEN}
        with running(tmp_path, {"config.yaml": config}, "--insecure", "--port", "0", env=env) as gateway:
            words = ["domain=notify", "service=mobile_app", f"message={SENTENCE}"]
            url = ["--url", gateway.announced["url"]]
            call = nursery.ForkedCommand(
                [COMMAND, "request", *url, "ha_call_service", *words],
                env={**os.environ, "AGENT_TOKEN": TOKEN},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            wait_until(lambda: gateway.admin.get("/api/approvals"), "the question")
            gateway.answer("approve")
            out, err = call.communicate(timeout=PATIENCE)
        assert call.returncode == 0, err
        [request] = [one for one in api.requests if one["path"] == "/api/services/notify/mobile_app"]
    assert json.loads(request["body"]) == {"message": SENTENCE}
    assert json.loads(out)
