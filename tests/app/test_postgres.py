"""The same gateway on PostgreSQL: a question survives the kill, the answer runs once, the record verifies."""

import pytest
from tests.gateway import TOKEN, Api, Gateway, running
from tests.postgres import server

CONFIG = """
gateway: {{id: pg, port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agent: {{token: {token}}}
services: {{home: {{url: "{url}", tools: {{write: {{args: {{n: {{type: integer}}}}, request: {{method: POST, path: /write}}}}, read: {{request: {{method: GET, path: /read}}}}}}}}}}
storage: {{type: postgres, url: "{database}"}}
permissions: permissions.yaml
"""


@pytest.fixture
def database():
    return server().new_database()


def test_a_question_survives_the_kill_and_runs_once_on_postgresql(tmp_path, database):
    api = Api()
    files = {
        "config.yaml": CONFIG.format(token=TOKEN, url=api.url, database=database),
        "permissions.yaml": "rules: [{pattern: read, action: allow}]",
    }
    again = Gateway(tmp_path, "--insecure")
    with running(tmp_path, files, "--insecure") as first:
        assert first.call("read").status == 200
        call = first.call("write", {"n": 1}, wait=0).json["call"]
        first.kill()
    again.start()
    try:
        again.answer("approve", lifetime="hour")
        assert again.request("GET", f"/api/calls/{call}?wait=10").json["status"] == "executed"
        assert again.call("write", {"n": 1}, wait=0).status == 200
        assert [request["path"] for request in api.requests] == ["/read", "/write", "/write"]
        assert again.story(call) == ["pending", "approved", "dispatching", "completed"]
        report = again.admin.get("/api/audit/verify")
        assert report["ok"]
        assert report["rows"] == 8
    finally:
        again.stop()
        api.close()


def test_a_second_gateway_of_the_same_name_is_refused(tmp_path, database):
    api = Api()
    files = {
        "config.yaml": CONFIG.format(token=TOKEN, url=api.url, database=database),
        "permissions.yaml": "rules: []",
    }
    (tmp_path / "other").mkdir()
    with running(tmp_path, files, "--insecure"):
        (tmp_path / "other" / "config.yaml").write_text(files["config.yaml"])
        (tmp_path / "other" / "permissions.yaml").write_text("rules: []")
        with pytest.raises(AssertionError, match="did not start"):
            Gateway(tmp_path / "other", "--insecure").start()
    api.close()
