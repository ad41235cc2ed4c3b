"""`make run` with the extra installed: an agent shops, and a person sees what it is about to order."""

import base64
import http.client
import json
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest
from tests import nursery
from tests.conformance.node_packages import installed, node
from tests.nursery import COMMAND
from tests.ui import chromium
from tests.ui.ui_house import one_demo
from tests.waiting import PATIENCE, wait_until

from agent_gate.cli.commands.demo import SHOP_PORT
from agent_gate.cli.operator import AdminClient
from agent_gate.config.files.dotenv import read_dotenv

TINTED = """async (data) => { const image = new Image(); image.src = data; await image.decode();
  const at = document.createElement("canvas").getContext("2d");
  at.canvas.width = image.width; at.canvas.height = image.height; at.drawImage(image, 0, 0);
  const { data: all } = at.getImageData(0, 0, image.width, image.height), xs = [], ys = [];
  for (let i = 0; i < all.length; i += 4) if (all[i] > 150 && all[i + 1] < 100 && all[i + 2] < 150) {
    xs.push((i / 4) % image.width); ys.push(Math.floor(i / 4 / image.width)); }
  const span = (numbers) => numbers.length ? numbers.reduce((a, b) => Math.max(a, b)) - numbers.reduce((a, b) => Math.min(a, b)) : 0;
  return [xs.length, span(xs), span(ys)]; }"""


class Shopper:
    """An agent in the demo, over REST and over the Inspector."""

    def __init__(self, folder, said):
        self.folder, self.said = folder, said
        self.url = re.search(r"up at (http://\S+)", said)[1]
        self.shop = re.search(r"the shop at (http://\S+)/", said)[1]
        self.token = read_dotenv(folder / "home" / ".env")["AGENT_TOKEN"]
        self.admin = AdminClient(folder / "home" / "data" / "admin.sock")
        self.seen = ""

    def send(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.url.rpartition("/")[2], timeout=PATIENCE)
        headers = {"Authorization": f"Bearer {self.token}", "Agent-Session": "shopping", "Prefer": "wait=0"}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        reply = connection.getresponse()
        status, said = reply.status, json.loads(reply.read())
        connection.close()
        return status, said

    def asked(self, tool, **arguments):
        """The call, and the question that it led to; none where it was allowed."""
        status, said = self.send("POST", f"/api/tools/browser_{tool}", arguments)
        assert status in (200, 202), said
        if status == 200:
            return said, None
        [question] = wait_until(lambda: self.admin.get("/api/approvals"))
        return said, question

    def do(self, tool, **arguments):
        said, question = self.asked(tool, **arguments)
        return self.after(said, question)

    def after(self, said, question):
        """What the tool says once a person allowed it."""
        if question is not None:
            assert "Place order" in question["signature"]
            self.admin.request("POST", f"/api/approvals/{question['id']}", {"verdict": "approve"})
            said = wait_until(lambda: self.result(said["call"]))
        self.seen = json.dumps(said, ensure_ascii=False)
        return self.seen

    def result(self, call):
        status, said = self.send("GET", f"/api/calls/{call}?wait=10")
        return said if status == 200 else None

    def ref(self, name):
        return re.search(rf'"{name}\\" \[(\w+)\]', self.seen)[1]

    def picture(self, question):
        connection = self.admin.connection()
        connection.request("GET", f"/api/approvals/{question['id']}/picture")
        body = connection.getresponse().read()
        connection.close()
        return body


@pytest.fixture
def taken():
    """The shop's usual port, held by somebody else: by this, or by a demo that runs on this machine anyway. The one of
    another test has ended, whose port could become free in the meantime."""
    with one_demo(), socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if can_bind(holder):
            holder.listen()
        yield


def can_bind(holder):
    try:
        holder.bind(("127.0.0.1", SHOP_PORT))
    except OSError:
        return False
    return True


@pytest.fixture
def shopper(tmp_path, taken):
    chromium.need()
    said = tmp_path / "said.txt"
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    with said.open("wb") as out:
        command = [COMMAND, "demo", "--folder", "home", "--port", "0"]
        process = nursery.ForkedCommand(command, cwd=tmp_path, env=env, stdout=out, stderr=out)
    try:
        wait_until(lambda: "The operator's page" in said.read_text())
        yield Shopper(Path(tmp_path), said.read_text())
    finally:
        process.terminate()
        process.wait(PATIENCE)


def tinted(picture):
    """How many pixels of a picture are marked, and how far they reach across and down."""
    with chromium.started() as browser:
        page = browser.new_page()
        return page.evaluate(TINTED, f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}")


def test_in_the_demo_an_agent_shops_and_the_order_arrives_with_a_picture_of_its_button(shopper):
    """The shop has another port than usual here, which the rules of the demo follow."""
    assert shopper.shop.rpartition(":")[2] != str(SHOP_PORT)
    shopper.do("navigate", url=f"{shopper.shop}/product/2")
    shopper.do("click", ref=shopper.ref("Add to basket"))
    shopper.do("navigate", url=f"{shopper.shop}/checkout/review")
    said, question = shopper.asked("click", ref=shopper.ref("Place order"))
    assert question["signature"] == f"browser_click({shopper.shop}, Place order)"
    pixels, across, down = tinted(shopper.picture(question))
    assert pixels > 100
    assert 40 < across < 400
    assert 10 < down < 80
    assert "order number is B-" in shopper.after(said, question)
    inspect_the_shop(shopper)
    follow_the_introduction(shopper)
    consult(shopper)


def inspect_the_shop(shopper):
    """The same by the Inspector, whose every call is a process of its own."""
    inspector = Inspector(shopper)
    assert "browser_click" in inspector.run("--method", "tools/list")
    inspector.use("browser_navigate", url=f"{shopper.shop}/product/3")
    inspector.use("browser_click", ref=inspector.ref("Add to basket"))
    inspector.use("browser_navigate", url=f"{shopper.shop}/checkout/review")
    with inspector.begin("browser_click", ref=inspector.ref("Place order")) as waiting:
        [question] = wait_until(lambda: shopper.admin.get("/api/approvals"))
        assert tinted(shopper.picture(question))[0] > 100
        shopper.admin.request("POST", f"/api/approvals/{question['id']}", {"verdict": "approve"})
        assert "order number is B-" in waiting.communicate(timeout=PATIENCE)[0]


def follow_the_introduction(shopper):
    """What the demo says to try in a terminal, to the letter."""
    lines = [line.strip().partition("  #")[0].strip() for line in shopper.said.splitlines()]
    begin = lines.index("AGENT_GATE_SESSION=shopping")
    before = next(line for line in lines if line.startswith("set -a"))
    script = "\n".join([before, f"PATH={Path(COMMAND).parent}:$PATH", *lines[begin : begin + 3]])
    done = subprocess.run(
        ["sh", "-ec", script], cwd=shopper.folder, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("# Harbour lamp") == 2


def consult(shopper):
    """What the demo wrote has no fault, and doctor knows of nothing but the sign-in that is left for a person."""
    env = {**os.environ, **read_dotenv(shopper.folder / "home" / ".env")}
    told = {}
    for command in ("check", "doctor"):
        asked = [COMMAND, command, "--config", "home/config.yaml"]
        done = subprocess.run(
            asked, cwd=shopper.folder, env=env, capture_output=True, text=True, timeout=PATIENCE
        )
        told[command] = done.stdout + done.stderr
    assert told["check"] == "No faults.\n"
    problems = [line for line in told["doctor"].splitlines() if line.startswith("problem: ")]
    assert [line.partition(":")[2].split(":")[0] for line in problems] == [" notes needs a sign-in"]


class Inspector:
    """MCP Inspector at the demo, without sessions of MCP, so that a header says which calls are of one agent."""

    def __init__(self, shopper):
        self.folder, self.seen = shopper.folder, ""
        program = installed("clients") / ".bin" / "mcp-inspector"
        self.common = [node(), str(program), "--cli", f"{shopper.url}/mcp", "--transport", "http"]
        self.common += ["--protocol-era", "modern", "--format", "json", "-q", "--stored-auth-only"]
        self.common += [
            "--header",
            f"Authorization: Bearer {shopper.token}",
            "--header",
            "Agent-Session: inspected",
        ]

    def begin(self, tool, **arguments):
        given = [part for name, value in arguments.items() for part in ("--tool-arg", f"{name}={value}")]
        return self.start("--method", "tools/call", "--tool-name", tool, *given)

    def start(self, *words):
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "MCP_INSPECTOR_SECRET_STORE": "memory"}
        return subprocess.Popen(
            [*self.common, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, *words):
        with self.start(*words) as process:
            said, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said + errors
        return said

    def use(self, tool, **arguments):
        with self.begin(tool, **arguments) as process:
            self.seen, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, self.seen + errors

    def ref(self, name):
        return re.search(rf'"{name}\\" \[(\w+)\]', self.seen)[1]
