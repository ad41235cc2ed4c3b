"""A metric, a limit, an admin route and a page are each added where ARCHITECTURE.md says, and nowhere else."""

import subprocess

import pytest
from tests.gateway import COMMAND, running
from tests.shape.program_copy import ProgramCopy, named_in_architecture
from tests.surfaces.admin.admin_gate import browser

CONFIG = "gateway: {port: 0}\nadmin: {port: 0, socket: ./data/admin.sock}\n"
TEA = """
from agent_gate.net.http import json_response
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.net.http import HttpAnswer
from agent_gate.surfaces.admin.routing import OperatorRequest, Route


class Tea:
    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def routes(self) -> list[Route]:
        return [Route("GET", "/api/tea", self._tea, "Whether there is tea")]

    async def _tea(self, ask: OperatorRequest) -> HttpAnswer:
        return json_response(200, {"tea": ask.person})
"""


@pytest.fixture
def program(tmp_path):
    return ProgramCopy(tmp_path / "program")


@pytest.fixture
def serve(program, tmp_path):
    def begin(config=CONFIG):
        return running(tmp_path, {"config.yaml": config}, "--insecure", env=program.env)

    return begin


def test_a_metric_is_one_line(program, serve):
    program.insert(
        "src/agent_gate/observe/metrics.py",
        "        self.series: dict[str, Counter | Histogram] = {}\n",
        '        self.tea = self.add(Counter("agent_gate_tea_total", "Cups of tea.", ("kind",)))\n',
    )
    assert program.touched == [f"src/agent_gate/{path}" for path in named_in_architecture("a metric")]
    with serve() as gateway:
        assert b"# TYPE agent_gate_tea_total counter" in browser(gateway).send("GET", "/metrics").body


def test_a_limit_is_one_line(program, serve, tmp_path):
    program.insert(
        "src/agent_gate/config/settings.py",
        '    """Bounds that protect the process."""\n',
        '    cups: Annotated[int, "Cups of tea at a time.", AtLeast(1)] = 3\n',
    )
    assert program.touched == [f"src/agent_gate/{path}" for path in named_in_architecture("a limit")]
    with serve(CONFIG + "limits: {cups: 2}\n") as gateway:
        assert gateway.admin.get("/api/status")["warnings"] == []
    (tmp_path / "config.yaml").write_text(CONFIG + "limits: {cups: 0}\n")
    checked = subprocess.run(
        [COMMAND, "check"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin", **program.env},
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 8
    assert "config.yaml:3" in checked.stdout + checked.stderr


def test_an_admin_route_and_its_page_are_a_file_each_and_a_line_of_their_tables(program, serve):
    program.write("src/agent_gate/surfaces/admin/routes/tea.py", TEA)
    api = "src/agent_gate/surfaces/admin/api.py"
    program.insert(api, "PARTS = (", "Tea, ")
    program.insert(
        api,
        "from agent_gate.errors import GatewayError\n",
        "from agent_gate.surfaces.admin.routes.tea import Tea\n",
    )
    program.write("ui/pages/tea.js", "export function tea(main) { main.textContent = 'tea'; }\n")
    program.insert("ui/app.js", "const PAGES = {\n", '  tea: ["Tea", "x"],\n')
    named = named_in_architecture("an admin route and its page")
    assert program.touched[1::2] == [f"src/agent_gate/{named[1]}", named[3]]
    assert [str(path) for path in program.touched[0::2]] == [
        f"src/agent_gate/{named[0]}".replace("*", "tea"),
        named[2].replace("*", "tea"),
    ]
    with serve() as gateway:
        someone = browser(gateway)
        assert someone.get("/api/tea") == {"tea": "operator"}
        assert "/api/tea" in someone.get("/openapi.json")["paths"]
        assert someone.send("GET", "/pages/tea.js").headers["content-type"].startswith("text/javascript")
