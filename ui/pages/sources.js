// Sources: where tools come from, how each is, closing and opening one, and definitions that changed since a person
// looked.
import { get, post, segment } from "../api.js";
import { diff } from "../diff.js";
import { button, empty, fault, h, say, show } from "../dom.js";
import { ago, due, many, moment } from "../format.js";
import { listen } from "../inbox.js";
import { keys } from "../keyboard.js";
import { because, boxed, every, field, movement, panes } from "../layout.js";
import { List, listOrEmpty } from "../list.js";
import { sourceWord } from "../words.js";
import { toolRow } from "./tools.js";

const HINT = "Choose a source to see how it is and what it brings.";
const MOST_CHANGES = 100;
const AGAIN = { failed: "Try now", degraded: "Try now" };
const CLOSED =
  "Its tools stay listed, and calls of them are refused, until it is connected again, its settings change, or the gateway starts anew.";

// A source that is disabled in the configuration has no reason; one that a person disconnected has.
const isDisconnected = (source) => source.status === "disabled" && source.reason !== "";
const canClose = (source) => !["disabled", "needs_auth"].includes(source.status);
const stateOf = (source) => sourceWord(isDisconnected(source) ? "disconnected" : source.status);
const named = ({ key, title }) => (title && title !== key ? `${key} (${title})` : key);
const nextTry = (source) => h("span.due", { "data-at": source.next_try }, due(source.next_try));

function row(source) {
  const short = source.reason.split("\n", 1)[0];
  return h(
    "div.two",
    h("span.lead", named(source)),
    h("span.end", stateOf(source)),
    h("span.rest", short || `${source.kind} · ${many(source.tools, "tool")}`),
    h("span.end", source.next_try ? ["next try ", nextTry(source)] : ""),
  );
}

const facts = (source) =>
  h(
    "dl.facts",
    field("kind", source.kind),
    field("tools", many(source.tools, "tool"), " in namespace ", h("code", source.namespace)),
    source.since ? field("since", `${moment(source.since)}, ${ago(source.since)}`) : null,
    source.next_try ? field("next try", nextTry(source)) : null,
  );

class Sources {
  constructor(main, wanted) {
    Object.assign(this, { main, wanted, all: [], changes: [], tools: [], needle: "", drawn: "", round: 0 });
    this.nothing = h("div");
    this.changed = h("div.buttons");
    this.list = new List({
      row,
      key: (source) => source.key,
      onSelect: (source, byHand) => this.open(source, byHand),
      label: "Sources",
    });
    this.brings = new List({
      row: toolRow,
      key: (tool) => tool.name,
      label: "Its tools",
      onSelect: (tool) => (location.hash = `#/tools/${segment(tool.name)}`),
    });
    const bar = h("div.bar", this.search(), this.changed);
    this.view = panes(main, { bar, list: this.list.node, nothing: this.nothing, hint: HINT });
    keys(movement(this.list, "source"));
    this.load();
  }

  search() {
    const oninput = (event) => {
      this.needle = event.target.value.toLowerCase();
      this.draw();
    };
    return h("input", { type: "search", placeholder: "Search", "aria-label": "Search sources", oninput });
  }

  async load() {
    const mine = (this.round += 1);
    try {
      const found = await Promise.all([get("/api/sources"), get("/api/changes")]);
      if (mine !== this.round) return;
      [this.all, this.changes] = found;
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
    const text = (source) => `${named(source)} ${source.status} ${source.reason}`.toLowerCase();
    const found = this.all.filter((source) => text(source).includes(this.needle));
    listOrEmpty(this.list, found, this.nothing);
    if (!found.length) show(this.nothing, this.all.length ? empty("No source fits", "Try fewer words.") : this.none());
    this.drawChanged();
    if (this.wanted && this.all.some((source) => source.key === this.wanted)) {
      this.list.select(this.wanted, true);
      this.wanted = null;
    } else this.redraw();
  }

  none() {
    const advice = "Add services, servers or mcpServers to the configuration; docs/configuration.md shows how.";
    return empty("No source is configured", advice);
  }

  drawChanged() {
    const number = this.changes.length;
    if (this.changed.dataset.number === String(number)) return;
    this.changed.dataset.number = number;
    const label = many(number, "changed definition");
    show(this.changed, number ? button(label, () => this.openChanges(), { kind: "asks" }) : null);
  }

  openChanges() {
    this.list.select(null);
    this.view.turn();
    this.drawn = "";
    this.redraw();
  }

  open(source, byHand) {
    this.view.turn(byHand);
    this.drawn = "";
    this.tools = [];
    this.redraw();
    this.loadTools(source.key);
  }

  async loadTools(key) {
    const { tools } = await get("/api/tools?brief=1").catch(() => ({ tools: [] }));
    if (this.list.selected !== key) return;
    this.tools = tools.filter((tool) => tool.source === key);
    this.redraw();
  }

  // Drawn only when there is something else to see: a button must stay where it is while it is pressed.
  redraw() {
    const source = this.all.find(({ key }) => key === this.list.selected);
    const seen = JSON.stringify([source, this.changes, this.tools]);
    if (seen === this.drawn) return;
    this.drawn = seen;
    if (source) this.view.fill(this.told(source));
    else if (this.changes.length) this.view.fill(h("h2", "Changed definitions"), this.cards(this.changes));
    else this.view.clear();
  }

  told(source) {
    const mine = this.changes.filter((change) => change.source === source.key);
    const tools = h("div");
    if (this.tools.length) boxed(tools, this.brings, this.tools, { most: "50vh" });
    return [
      h("h2", named(source), " ", stateOf(source)),
      source.reason ? because(source.reason) : null,
      facts(source),
      this.buttons(source),
      mine.length ? [h("h3", "Changed definitions"), this.cards(mine)] : null,
      this.tools.length ? [h("h3", "Its tools"), tools] : null,
    ];
  }

  buttons(source) {
    const again = isDisconnected(source) ? "Connect" : AGAIN[source.status];
    if (!again && !canClose(source))
      return source.status === "disabled"
        ? h("p.soft", "It is disabled in the configuration, and can be enabled there.")
        : null;
    return h(
      "div.buttons",
      again ? button(again, () => this.connect(source.key), { kind: "strong" }) : null,
      canClose(source) ? button("Disconnect", () => this.disconnect(source.key)) : h("p.soft", CLOSED),
    );
  }

  async connect(key) {
    await post(`/api/sources/${segment(key)}/connect`);
    say(`Connecting ${key}…`);
    setTimeout(() => this.load(), 600);
  }

  async disconnect(key) {
    if (!confirm(`Disconnect ${key}? What it is doing now is cut off. ${CLOSED}`)) return;
    await post(`/api/sources/${segment(key)}/disconnect`);
    say(`Disconnected ${key}`);
    await this.load();
  }

  cards(changes) {
    return changes.slice(0, MOST_CHANGES).map((change) =>
      h(
        "div.card",
        h(
          "header",
          h("h2", h("code", change.tool), ` of ${change.source}`),
          h("span.word.you", change.held ? "held until you accept" : "served already"),
        ),
        h("p.soft", `changed ${ago(change.changed_at)}`),
        diff(change.diff),
        h(
          "div.buttons",
          button("Accept the new definition", () => this.accept(change), { kind: "strong" }),
        ),
      ),
    );
  }

  async accept({ source, tool, pin }) {
    await post("/api/changes/accept", { source, tool, pin });
    say(`Accepted ${tool}`);
    await this.load();
  }

  tick() {
    for (const node of this.main.querySelectorAll(".due")) node.textContent = due(Number(node.dataset.at));
  }

  close() {
    this.list.close();
    this.brings.close();
  }
}

export function sources(main, [wanted]) {
  const page = new Sources(main, wanted);
  const stop = [
    every(3000, () => page.load()),
    every(1000, () => page.tick()),
    listen((kind) => (kind === "catalog" || kind === "online") && page.load()),
    () => page.close(),
  ];
  return () => stop.forEach((end) => end());
}
