"""`make run` with the extra installed: an agent shops, and a person sees what it is about to order."""

import base64
import http.client
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright
from tests.browser.browser_house import need_browser
from tests.nursery import COMMAND
from tests.processes import eventually
from tests.ui import chromium

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
    """An agent in the demo. Where the shop's usual port is taken, its rules ask for each step, which a person allows."""

    def __init__(self, folder, said):
        self.url = re.search(r"up at (http://\S+)", said)[1]
        self.shop = re.search(r"the shop at (http://\S+)/", said)[1]
        self.token = read_dotenv(folder / "home" / ".env")["AGENT_TOKEN"]
        self.admin = AdminClient(folder / "home" / "data" / "admin.sock")
        self.seen = ""

    def send(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.url.rpartition("/")[2], timeout=60)
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
        [question] = eventually(lambda: self.admin.get("/api/approvals"))
        return said, question

    def do(self, tool, **arguments):
        said, question = self.asked(tool, **arguments)
        return self.after(said, question)

    def after(self, said, question):
        """What the tool says once a person allowed it."""
        if question is not None:
            assert self.shop.rpartition(":")[2] != "8126" or "Place order" in question["signature"]
            self.admin.request("POST", f"/api/approvals/{question['id']}", {"verdict": "approve"})
            said = eventually(lambda: self.result(said["call"]))
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
def shopper(tmp_path):
    need_browser()
    said = tmp_path / "said.txt"
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    with said.open("wb") as out:
        command = [COMMAND, "demo", "--folder", "home", "--port", "0"]
        process = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=out, stderr=out)
    try:
        eventually(lambda: "The operator's page" in said.read_text())
        yield Shopper(Path(tmp_path), said.read_text())
    finally:
        process.terminate()
        process.wait(20)


def tinted(picture):
    """How many pixels of a picture are marked, and how far they reach across and down."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=list(chromium.FLAGS))
        page = browser.new_page()
        found = page.evaluate(TINTED, f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}")
        browser.close()
    return found


def test_in_the_demo_an_agent_shops_and_the_order_arrives_with_a_picture_of_its_button(shopper):
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
