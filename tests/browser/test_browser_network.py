"""What pages can reach: every way out meets the checking proxy."""

import re
import socket

import pytest
from tests.browser.browser_house import Agent, browser_house, page
from tests.http_server import HttpServer, QuietHandler
from tests.ui import chromium
from tests.waiting import wait_until


class Secret:
    """Something on loopback that no page may reach; it counts who came."""

    def __init__(self):
        reached = self.reached = []

        class Handler(QuietHandler):
            def do_GET(self):
                reached.append(self.path)
                self.send_response(200)
                self.send_header("Access-Control-Allow-Origin", "*")
                self.end_headers()
                self.wfile.write(b"<h1>secret</h1>")

            do_POST = do_GET

        self.server = HttpServer(Handler)
        self.port = self.server.server_port
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.udp.setblocking(False)

    def close(self):
        self.server.close()
        self.udp.close()

    def datagrams(self):
        try:
            return self.udp.recv(2048)
        except BlockingIOError:
            return b""


@pytest.fixture
def secret():
    made = Secret()
    yield made
    made.close()


WAYS = """<!doctype html><title>Ways</title><h1>Ways</h1><p id=done></p>
<img src=//127.0.0.1:PORT/img><img src=http://localhost:PORT/name><img src=http://0x7f.1:PORT/hex>
<img src=http://[::ffff:127.0.0.1]:PORT/mapped><img src=/hop><iframe src=http://127.0.0.1:PORT/frame></iframe>
<link rel=stylesheet href=http://127.0.0.1:PORT/css><link rel=prefetch href=http://127.0.0.1:PORT/prefetch>
<script src=http://127.0.0.1:PORT/script></script><video src=http://127.0.0.1:PORT/video></video>
<script>
const at = "127.0.0.1:PORT";
const tried = [fetch(`http://${at}/fetch`, {mode: "no-cors"}).catch(() => 0), fetch("/hop").catch(() => 0)];
navigator.sendBeacon(`http://${at}/beacon`, "x");
for (const url of [`ws://${at}/socket`]) tried.push(new Promise((go) => { const s = new WebSocket(url); s.onclose = go; s.onopen = go; }));
const code = `fetch("http://${at}/worker",{mode:"no-cors"}).catch(()=>0).then(()=>{const s=new WebSocket("ws://${at}/wsocket");s.onclose=s.onopen=()=>postMessage(1)})`;
tried.push(new Promise((go) => { const w = new Worker(URL.createObjectURL(new Blob([code]))); w.onmessage = go; w.onerror = go; }));
const peer = new RTCPeerConnection({iceServers: [{urls: "stun:127.0.0.1:STUN"}]});
peer.createDataChannel("x"); peer.createOffer().then((o) => peer.setLocalDescription(o));
Promise.all(tried).then(() => setTimeout(() => { done.textContent = "all tried"; }, 300));
</script>"""


def test_no_way_out_of_a_page_leads_to_a_private_address(agent, secret):
    stun = secret.udp.getsockname()[1]
    agent.site.replies["/ways"] = page(WAYS.replace("PORT", str(secret.port)).replace("STUN", str(stun)))
    agent.site.replies["/hop"] = (302, {"Location": f"http://127.0.0.1:{secret.port}/redirected"}, b"")
    said = agent.open("/ways")
    wait_until(lambda: "all tried" in agent.call("snapshot"))
    assert secret.reached == []
    assert secret.datagrams() == b""
    assert "kept from 127.0.0.1" in said + agent.last


def test_a_redirect_to_a_private_address_is_refused(agent, secret):
    agent.site.replies["/away"] = (302, {"Location": f"http://127.0.0.1:{secret.port}/"}, b"")
    assert "may not be opened" in agent.refused("navigate", url=f"{agent.site.url}/away")
    assert secret.reached == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "0x7f000001", "2130706433", "0177.0.0.1"]
)
def test_a_private_address_is_refused_however_it_is_written(agent, secret, host):
    said = agent.refused("navigate", url=f"http://{host}:{secret.port}/")
    assert "public" in said or "may not be opened" in said
    assert secret.reached == []


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "chrome://version",
        "data:text/html,hi",
        "javascript:alert(1)",
        "view-source:http://a",
        "FILE:///etc",
    ],
)
def test_other_schemes_are_refused_before_a_browser_is_asked(agent, url):
    assert re.search("Only http and https", agent.refused("navigate", url=url))


def test_a_page_that_goes_to_a_blank_data_address_is_left(agent):
    agent.site.replies["/here"] = page(
        "<h1>Here</h1><a href='data:text/html,<h1>Bad</h1>' target=_self>Go</a>"
    )
    agent.open("/here")
    agent.call("click", ref=agent.ref("Go"))
    assert "Bad" not in agent.call("snapshot")


WORKERS = """<!doctype html><title>Workers</title><h1>Workers</h1><p id=done></p><script>
const ran = [];
function tell(name) { ran.push(name); done.textContent = [...ran].sort().join(' ') }
for (const name of ['dedicated', 'module']) {
  const one = new Worker(`/worker.js?${name}`, name === 'module' ? {type: 'module'} : {});
  one.onmessage = () => tell(name) }
const shared = new SharedWorker('/worker.js?shared'); shared.port.onmessage = () => tell('shared'); shared.port.start();
navigator.serviceWorker.onmessage = () => tell('service');
navigator.serviceWorker.register('/worker.js?service').then(() => navigator.serviceWorker.ready)
  .then((it) => it.active.postMessage('go'));
</script>"""
WORKER = """const at = '127.0.0.1:PORT', name = location.search.slice(1);
const tell = (port) => Promise.allSettled([
  fetch(`http://${at}/${name}`, {mode: 'no-cors'}), fetch(`http://localhost:PORT/${name}-name`, {mode: 'no-cors'}),
  fetch('/hop'), new Promise((go) => { const s = new WebSocket(`ws://${at}/${name}-socket`); s.onopen = s.onclose = go }),
]).then(() => fetch(`/ran-${name}`)).then(() => port.postMessage('tried'));
if (name === 'service') {
  self.addEventListener('install', (e) => e.waitUntil(Promise.allSettled([fetch(`http://${at}/install`, {mode: 'no-cors'})])));
  self.addEventListener('message', (e) => e.waitUntil(tell(e.source)));
  self.addEventListener('fetch', (e) => { if (e.request.url.endsWith('/through')) e.respondWith(fetch(`http://${at}/through`, {mode: 'no-cors'})) });
} else if (name === 'shared') self.onconnect = (e) => tell(e.ports[0]);
else tell(self);"""
POPUPS = """<!doctype html><title>Popups</title><h1>Popups</h1>
<button onclick="window.open('http://127.0.0.1:PORT/opened')">Open</button>
<button onclick="window.open('http://localhost:PORT/alone', '', 'noopener,width=200')">Alone</button>
<button onclick="const w = window.open('about:blank'); w.location = 'http://127.0.0.1:PORT/moved'">Moved</button>
<button onclick="const w = window.open('about:blank'); w.document.write('<img src=http://127.0.0.1:PORT/written>')">Written</button>
<a target=_blank href=http://127.0.0.1:PORT/blank>Blank</a><a target=_blank href=/hop>Hop</a>"""
CHANNELS = """<!doctype html><title>Channels</title><h1>Channels</h1><p id=done></p><script>
const rest = [], left = (name) => (why) => { rest.push(name); if (rest.length === 2) done.textContent = 'all tried' };
const transport = new WebTransport('https://127.0.0.1:UDP/');
transport.ready.then(left('transport'), left('transport')); transport.closed.catch(() => 0);
const peer = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:UDP'}, {urls: 'turn:127.0.0.1:UDP', username: 'a', credential: 'b'}]});
peer.createDataChannel('x'); peer.onicegatheringstatechange = () => peer.iceGatheringState === 'complete' && left('rtc')();
peer.createOffer().then((offer) => peer.setLocalDescription(offer));
</script>"""


def test_no_worker_of_a_page_reaches_a_private_address(agent, secret):
    worker = page(WORKER.replace("PORT", str(secret.port)), "text/javascript")
    agent.site.replies.update({"/workers": page(WORKERS), "/through": page("x")})
    agent.site.replies["/worker.js"] = worker
    for name in ("dedicated", "module", "shared", "service"):
        agent.site.replies[f"/ran-{name}"] = page("x")
    agent.site.replies["/hop"] = (302, {"Location": f"http://127.0.0.1:{secret.port}/redirected"}, b"")
    agent.open("/workers")
    wait_until(lambda: "dedicated module service shared" in agent.call("snapshot"))
    ran = {one["path"] for one in agent.site.requests if one["path"].startswith("/ran-")}
    assert ran == {"/ran-dedicated", "/ran-module", "/ran-shared", "/ran-service"}
    assert secret.reached == []


def test_no_window_that_a_page_opens_reaches_a_private_address(agent, secret):
    agent.site.replies["/popups"] = page(POPUPS.replace("PORT", str(secret.port)))
    agent.site.replies["/hop"] = (302, {"Location": f"http://127.0.0.1:{secret.port}/redirected"}, b"")
    first = agent.open("/popups")
    for name in ("Open", "Alone", "Moved", "Written", "Blank", "Hop"):
        agent.call("click", ref=agent.ref(name, first))
        wait_until(lambda: "kept from" in agent.last + agent.call("console"))
        for index in range(len(agent.call("tabs", action="list").splitlines()) - 1, 0, -1):
            agent.reply("tabs", action="close", index=index)
        agent.call("tabs", action="select", index=0)
    assert secret.reached == []


@pytest.fixture(params=["chromium", "headless shell"])
def channels_agent(request, agent, tmp_path):
    """Each program reads the flag that holds WebRTC to the proxy under a name of its own."""
    if request.param == "chromium":
        yield agent
        return
    if (shell := chromium.find_shell()) is None:
        pytest.skip("there is no headless shell")
    with browser_house(tmp_path, executable=shell) as (gateway, site):
        yield Agent(gateway, site, "shell")


def test_neither_webtransport_nor_webrtc_sends_a_datagram(channels_agent, secret):
    agent = channels_agent
    port = secret.udp.getsockname()[1]
    agent.site.replies["/channels"] = page(CHANNELS.replace("UDP", str(port)))
    agent.open("/channels")
    ended = wait_until(
        lambda: secret.datagrams() or ("all tried" in agent.call("snapshot") and b"nothing came")
    )
    assert ended == b"nothing came"
