// Connections: which accounts the gateway has with servers and services, and the one way to give it another.
import { get, post, segment } from "../api.js";
import { button, empty, fault, h, say, show } from "../dom.js";
import { ago, many, moment } from "../format.js";
import { listen } from "../inbox.js";
import { keys } from "../keyboard.js";
import { every, field, movement, panes } from "../layout.js";
import { List, listOrEmpty } from "../list.js";

const HINT = "Choose a source to see its account, to sign in, or to end the connection.";
const PASTE =
  "If the browser ends at an address that does not open, copy that address whole and paste it here. The code alone will do too.";

const standing = (one) => {
  if (one.unconfirmed) return "waits for you in Approvals";
  if (one.needed) return "needs you";
  return one.connected ? "connected" : "not needed so far";
};

const row = (one) =>
  h(
    "div.two",
    h("span.lead", one.agent ? `${one.title} for ${one.agent}` : one.title),
    h("span.end", standing(one)),
    h("span.rest", one.account || one.reason.split("\n", 1)[0] || many(one.tools, "tool")),
    h("span.end", one.renewed_at ? `refreshed ${ago(one.renewed_at)}` : ""),
  );

const facts = (one) =>
  h(
    "dl.facts",
    field("state", standing(one)),
    one.account ? field("account", one.account) : null,
    one.scopes.length ? field("may", one.scopes.join(" ")) : null,
    one.since ? field("since", `${moment(one.since)}, by ${one.by}`) : null,
    one.expires_at ? field("token ends", moment(one.expires_at)) : null,
    one.renewed_at ? field("last refresh", `${moment(one.renewed_at)}, ${ago(one.renewed_at)}`) : null,
    field("tools", many(one.tools, "tool")),
    one.reason ? field("reason", one.reason) : null,
  );

// One row of a source, or of one agent's own account there.
const name = (one) => (one.agent ? `${one.source} ${one.agent}` : one.source);

class Connections {
  constructor(main, wanted) {
    Object.assign(this, { wanted, all: [], needle: "", round: 0, shown: "", drawn: "" });
    this.nothing = h("div");
    this.list = new List({
      row,
      key: name,
      onSelect: (one) => this.open(one),
      label: "Connections",
    });
    const oninput = (event) => {
      this.needle = event.target.value.toLowerCase();
      this.draw();
    };
    const bar = h(
      "div.bar",
      h("input", { type: "search", placeholder: "Search", "aria-label": "Search connections", oninput }),
    );
    this.view = panes(main, { bar, list: this.list.node, nothing: this.nothing, hint: HINT });
    keys(movement(this.list, "connection"));
    this.load();
  }

  async load() {
    const mine = (this.round += 1);
    try {
      const found = await get("/api/connections");
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
    const found = this.all.filter((one) => `${one.title} ${one.account} ${one.agent}`.toLowerCase().includes(this.needle));
    listOrEmpty(this.list, found, this.nothing);
    const none = empty(
      "Nothing needs an account",
      "Servers that want a sign-in appear here by themselves; docs/credentials.md says how others get a key.",
    );
    if (!found.length) show(this.nothing, this.all.length ? empty("No connection fits") : none);
    if (this.wanted && this.all.some((one) => name(one) === this.wanted)) {
      this.list.select(this.wanted, true);
      this.wanted = null;
    } else this.redraw();
  }

  // A link that was just made stays where it is until something happened with it.
  redraw() {
    const one = this.all.find((other) => name(other) === this.shown);
    if (one && JSON.stringify(one) !== this.drawn) this.open(one);
  }

  open(one) {
    if (!one) return;
    Object.assign(this, { shown: name(one), drawn: JSON.stringify(one) });
    const steps = h("div");
    this.view.open(
      h("h2", one.agent ? `${one.title} for ${one.agent}` : one.title),
      facts(one),
      h(
        "div.buttons",
        one.how === "key" ? null : button("Sign in", () => this.signIn(one, steps), { kind: "strong" }),
        one.connected ? button("End", () => this.act(one, "end")) : null,
      ),
      one.how === "key" ? this.entry(one, "Key", "key", "password") : null,
      steps,
    );
  }

  async signIn(one, steps) {
    const said = await post(`/servers/${segment(one.source)}/auth/start`, { agent: one.agent });
    if (said.connected) return this.load();
    const link = h("a", { href: said.auth_url, target: "_blank", rel: "noopener noreferrer" }, "Open the sign-in page");
    const code = said.user_code ? h("p", "and enter the code ", h("code", said.user_code)) : null;
    const paste = said.user_code ? null : [h("p.soft", PASTE), this.entry(one, "Code or address", "code", "text")];
    show(steps, h("p", link), code, paste);
    return say("The link is good for ten minutes");
  }

  entry(one, label, what, type) {
    const input = h("input", { type, autocomplete: "off", "aria-label": label });
    const send = () => this.act(one, what, { [what]: input.value });
    return h("label.block", h("span", label), input, h("div.buttons", button("Use it", send)));
  }

  async act(one, what, body) {
    const said = await post(`/servers/${segment(one.source)}/auth/${what}`, { agent: one.agent, ...body });
    say(said.message);
    await this.load();
    this.open(this.all.find((other) => name(other) === name(one)));
  }
}

export function connections(main, [wanted]) {
  const page = new Connections(main, wanted);
  const stop = [
    every(3000, () => page.load()),
    listen((kind) => (kind === "catalog" || kind === "online") && page.load()),
  ];
  return () => stop.forEach((end) => end());
}
