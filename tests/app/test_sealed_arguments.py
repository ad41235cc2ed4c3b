"""A running gateway keeps the secret arguments of a call that waits in its vault, and nowhere in plain text."""

import json
import os

from tests import nursery
from tests.app.small import CONFIG
from tests.gateway import COMMAND, TOKEN, Gateway, running
from tests.waiting import wait_until

PIN = "pin-of-the-front-door-4711"
TOOLS = """
tools:
  unlock: {args: {door: {required: true}, pin: {secret: true}}, request: {method: POST, path: /unlock}}
"""


def command(gateway, *words):
    done = nursery.run(
        [COMMAND, *words],
        cwd=gateway.folder,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files_with_the_pin(folder):
    return [path.name for path in folder.rglob("*") if path.is_file() and PIN.encode() in path.read_bytes()]


def test_a_secret_argument_survives_a_rotation_and_a_kill_and_is_in_no_file(tmp_path, api):
    files = {
        "config.yaml": CONFIG.format(url=api.url, token=TOKEN),
        "tools.yaml": TOOLS,
        "permissions.yaml": "rules: []",
        "data/arguments.key": "ab" * 32,
    }
    (tmp_path / "data").mkdir(mode=0o700)
    api.replies["*"] = (200, {}, b"{}")
    with running(tmp_path, files, "--insecure") as gateway:
        before = gateway.admin.get("/api/vault")["values"]
        assert not (tmp_path / "data" / "arguments.key").exists()
        call = gateway.call("unlock", {"door": "front", "pin": PIN}, wait=0).json["call"]
        assert f"Sealed {before + 1} values" in command(gateway, "vault", "rotate")
        command(gateway, "backup", str(tmp_path / "copy"))
        assert files_with_the_pin(tmp_path) == []
        assert json.loads(command(gateway, "doctor", "--json")) == []
        gateway.kill()
        again = Gateway(tmp_path, "--insecure").start()
        try:
            again.answer("approve")
            wait_until(lambda: again.story(call)[-1] == "completed")
            assert [json.loads(request["body"]) for request in api.requests] == [
                {"door": "front", "pin": PIN}
            ]
            assert again.admin.get("/api/vault")["values"] == before
            command(again, "backup", str(tmp_path / "later"))
        finally:
            again.stop()
    assert files_with_the_pin(tmp_path) == []
