"""A source that broke, over the admin API: since when, its last error, and the last lines of its program."""

import sys

from tests.gateway import Api, in_front_of
from tests.surfaces.admin.admin_gate import CONFIG, PERMISSIONS, TOOLS
from tests.waiting import wait_until

DYING = """\
import sys
print("the database at hunter2-very-secret is locked", file=sys.stderr)
sys.exit(3)
"""


def test_the_last_lines_of_a_program_that_died_are_there_masked_with_since_when_it_is_broken(tmp_path):
    (tmp_path / "dying.py").write_text(DYING)
    env = "env: {KEY_TOKEN: hunter2-very-secret}"
    more = f"servers:\n  dying: {{command: {sys.executable}, args: [{tmp_path}/dying.py], {env}}}\n"
    with Api() as api, in_front_of(api, tmp_path, CONFIG, TOOLS, PERMISSIONS, more=more) as gateway:

        def state():
            return next(one for one in gateway.admin.get("/api/sources") if one["key"] == "dying")

        def tried(times):
            log = gateway.admin.get("/api/sources/dying/log")
            return log if sum(line["by"] == "program" for line in log) >= times else None

        wait_until(lambda: tried(1), "the first try")
        first = wait_until(lambda: state()["broken_since"], "the first failure")
        log = wait_until(lambda: tried(2), "the second try")
        assert state()["broken_since"] == first
        assert "it exited with code 3" in state()["last_error"]
        assert {"program", "error"} <= {line["by"] for line in log}
        assert "the database at" in str(log)
        assert "hunter2-very-secret" not in str(log)
