// Peers: the machines that were paired with this gateway, until when each is believed, and taking it back.
import { get, post, remove, segment } from "../api.js";
import { button, empty, fault, h, say, show } from "../dom.js";
import { ago, moment } from "../format.js";
import { listen } from "../inbox.js";
import { keys } from "../keyboard.js";
import { every, field, movement, panes } from "../layout.js";
import { List, listOrEmpty } from "../list.js";

const HINT = "Choose a peer to see its certificate, to trust it, or to revoke it.";
const NONE = "Pairing starts on the gateway's own machine: agent-gate pair tool URL NAME. See docs/peers.md.";

const standing = (peer) => {
  if (peer.status !== "active") return peer.status;
  return peer.not_after * 1000 > Date.now() ? "active" : "expired";
};

const row = (peer) =>
  h(
    "div.two",
    h("span.lead", peer.name),
    h("span.end", standing(peer)),
    h("span.rest", `${peer.role} · ${peer.endpoint || "dials in"}`),
    h("span.end", peer.last_seen ? `seen ${ago(peer.last_seen)}` : "not seen yet"),
  );

const facts = (peer) =>
  h(
    "dl.facts",
    field("state", standing(peer)),
    field("role", peer.role),
    field("reached at", peer.endpoint || "it dials in"),
    peer.namespace ? field("namespace of its tools", peer.namespace) : null,
    peer.publishes.length ? field("publishes", peer.publishes.join(", ")) : null,
    field("key", peer.fingerprint),
    peer.certificate ? field("certificate", peer.certificate) : null,
    peer.not_after ? field("certificate ends", moment(peer.not_after)) : null,
    field("paired", moment(peer.paired_at)),
    field("last seen", peer.last_seen ? `${moment(peer.last_seen)}, ${ago(peer.last_seen)}` : "not yet"),
    peer.revoked_at ? field("revoked", `${moment(peer.revoked_at)}: ${peer.reason}`) : null,
    peer.role === "tool_host" ? field("what it says of its tools", peer.trusted ? "is believed" : "is a claim") : null,
  );

class Peers {
  constructor(main, wanted) {
    Object.assign(this, { wanted, all: [], needle: "", round: 0, shown: "", drawn: "" });
    this.nothing = h("div");
    this.list = new List({ row, key: (peer) => peer.name, onSelect: (peer) => this.open(peer), label: "Peers" });
    const oninput = (event) => {
      this.needle = event.target.value.toLowerCase();
      this.draw();
    };
    const bar = h(
      "div.bar",
      h("input", { type: "search", placeholder: "Search", "aria-label": "Search peers", oninput }),
    );
    this.view = panes(main, { bar, list: this.list.node, nothing: this.nothing, hint: HINT });
    keys(movement(this.list, "peer"));
    this.load();
  }

  async load() {
    const mine = (this.round += 1);
    try {
      const found = await get("/api/peers");
      if (mine !== this.round) return;
      this.all = found;
      this.draw();
    } catch (error) {
      if (mine !== this.round) return;
      this.all = [];
      this.draw();
      show(
        this.nothing,
        fault(error, () => this.load()),
      );
    }
  }

  draw() {
    const found = this.all.filter((peer) => `${peer.name} ${peer.role}`.toLowerCase().includes(this.needle));
    listOrEmpty(this.list, found, this.nothing);
    if (!found.length) show(this.nothing, this.all.length ? empty("No peer fits") : empty("Nobody is paired", NONE));
    if (this.wanted && this.all.some((peer) => peer.name === this.wanted)) {
      this.list.select(this.wanted, true);
      this.wanted = null;
      return;
    }
    const peer = this.all.find((other) => other.name === this.shown);
    if (peer && JSON.stringify(peer) !== this.drawn) this.open(peer);
  }

  open(peer) {
    if (!peer) return;
    Object.assign(this, { shown: peer.name, drawn: JSON.stringify(peer) });
    const active = peer.status === "active";
    this.view.open(
      h("h2", peer.name),
      facts(peer),
      h(
        "div.buttons",
        active && peer.role === "tool_host"
          ? button(peer.trusted ? "Trust it no more" : "Trust what it says", () => this.trust(peer))
          : null,
        active ? button("Revoke", () => this.revoke(peer)) : null,
      ),
    );
  }

  async trust(peer) {
    await post(`/api/peers/${segment(peer.name)}/trust`, { trusted: !peer.trusted });
    say(peer.trusted ? `${peer.name} is trusted no more` : `${peer.name} is trusted`);
    await this.load();
  }

  async revoke(peer) {
    if (!confirm(`Revoke ${peer.name}? Its connections are closed, and it has to be paired again.`)) return;
    await remove(`/api/peers/${segment(peer.name)}`);
    say(`${peer.name} is revoked`);
    await this.load();
  }
}

export function peers(main, [wanted]) {
  const page = new Peers(main, wanted);
  const stop = [
    every(5000, () => page.load()),
    listen((kind) => (kind === "catalog" || kind === "online") && page.load()),
  ];
  return () => stop.forEach((end) => end());
}
