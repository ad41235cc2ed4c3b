// Calls: the record, one line per call; each with where its time went and what the record says.
import { get, query, segment } from "../api.js";
import { at, copyButton, empty, fault, h, say, show } from "../dom.js";
import { bytes, copies, moment, span } from "../format.js";
import { listen } from "../inbox.js";
import { keys } from "../keyboard.js";
import { chosen, field, movement, panes } from "../layout.js";
import { List, listOrEmpty } from "../list.js";
import { callRow } from "../rows.js";
import { STATE_NAMES, ending, rowWord, stateWord } from "../words.js";

const PAGE = 400;
const PATIENCE = 200; // milliseconds after the last letter before the search runs

function waterfall(spans) {
  if (!spans.length) return h("p.soft", "The call ended before there was anything to measure.");
  const start = spans[0].start;
  const whole = Math.max(spans.at(-1).end - start, 1e-6);
  const row = (part) => {
    const bit = h(part.name.endsWith("for a person") ? "div.bit.you" : "div.bit");
    bit.style.left = `${((part.start - start) / whole) * 100}%`;
    bit.style.width = `${((part.end - part.start) / whole) * 100}%`;
    return [h("span.label", part.name), h("div.track", bit), h("span.time", span(part.end - part.start))];
  };
  return h("div.waterfall", spans.map(row));
}

function recordRow(row) {
  const body = h(
    "details",
    h("summary", `row ${row.seq} of ${row.chain}`),
    h("pre", JSON.stringify(row.body, null, 2)),
  );
  return h("tr", h("td", moment(row.at)), h("td", rowWord(row.state)), h("td", body));
}

const facts = (story) =>
  h(
    "dl.facts",
    field("caller", h("code", story.caller), story.surface ? ` over ${story.surface}` : ""),
    field("decision", story.decision || "refused before a decision", story.granted ? ", by a grant" : ""),
    story.rule ? field("rule", story.rule, at(story.where)) : null,
    story.answer ? field("answer", ending(story.answer.state, story.answer), `, ${moment(story.answer.at)}`) : null,
    story.answer?.reason ? field("reason given", story.answer.reason) : null,
    field("tool", h("code", story.tool_id || "unknown")),
    field("result", story.size === null ? "none" : bytes(story.size)),
    field("call", h("code", story.call)),
  );

function told(story, url) {
  const measured = story.seconds !== null && story.spans.length > 0;
  const took = measured ? `Where the time went: ${span(story.seconds)} in all` : "Where the time goes";
  const forms = Object.entries(copies(story.tool, story.arguments, url));
  return [
    h("h2", story.tool, " ", stateWord(story.state)),
    h("p.signature", story.signature),
    story.error ? h("p", h("code", story.error.code), ` ${story.error.message}`) : null,
    h("h3", took),
    waterfall(story.spans),
    h("h3", "What was decided"),
    facts(story),
    h("h3", "Arguments"),
    h("pre", JSON.stringify(story.arguments, null, 2)),
    h(
      "div.buttons",
      forms.map(([name, text]) => copyButton(`Copy as ${name}`, () => text)),
    ),
    h("h3", "On the record"),
    h("table", h("tbody", story.rows.map(recordRow))),
  ];
}

class Calls {
  constructor(main, wanted) {
    Object.assign(this, {
      main,
      filters: { text: "", state: "" },
      found: new Map(),
      next: null,
      loading: false,
      round: 0,
      url: "",
    });
    this.nothing = h("div");
    this.list = new List({
      row: callRow,
      key: (call) => call.call,
      onSelect: (call) => this.open(call),
      onEnd: () => this.more(),
      label: "Calls",
    });
    const hint = "Choose a call to see its story.";
    this.view = panes(main, { bar: this.bar(), list: this.list.node, nothing: this.nothing, hint });
    keys(movement(this.list, "call"));
    get("/api/status").then(
      (status) => (this.url = status.url),
      () => {},
    );
    this.load();
    if (wanted) this.open({ call: wanted });
  }

  bar() {
    const options = [["", "every state"], ...STATE_NAMES.map((name) => [name, name])];
    const search = h("input", {
      type: "search",
      placeholder: "Search",
      "aria-label": "Search tool, signature and arguments",
      oninput: (event) => this.change({ text: event.target.value }),
    });
    return h(
      "div.bar",
      search,
      chosen(options, "", (state) => this.change({ state }), "State"),
    );
  }

  change(values) {
    Object.assign(this.filters, values);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), PATIENCE);
  }

  page(cursor) {
    return get(`/api/calls${query({ by: "call", limit: PAGE, cursor, ...this.filters })}`);
  }

  take(page) {
    for (const call of page.calls) if (!this.found.has(call.call)) this.found.set(call.call, call);
    this.next = page.next;
  }

  draw() {
    listOrEmpty(this.list, [...this.found.values()], this.nothing);
    if (this.found.size) return;
    const filtered = this.filters.text || this.filters.state;
    show(
      this.nothing,
      filtered
        ? empty("No call fits", "The record has no call with these words and this state.")
        : empty("No call was made yet", "Every call an agent makes is listed here, also those that were refused."),
    );
  }

  // Only the answer to the last question counts; one that was slower is about other words.
  async load() {
    const mine = (this.round += 1);
    this.loading = true;
    try {
      const page = await this.page();
      if (mine !== this.round) return;
      this.found.clear();
      this.take(page);
      this.draw();
    } catch (error) {
      if (mine !== this.round) return;
      this.found.clear();
      this.draw();
      show(
        this.nothing,
        fault(error, () => this.load()),
      );
    }
    this.loading = false;
  }

  async more() {
    if (!this.next || this.loading) return;
    const mine = this.round;
    this.loading = true;
    try {
      const page = await this.page(this.next);
      if (mine !== this.round) return;
      this.take(page);
      this.list.set([...this.found.values()]);
    } catch (error) {
      if (mine !== this.round) return;
      this.next = null;
      say(`Older calls could not be loaded: ${error.message}`, { fault: true });
    }
    this.loading = false;
  }

  async open(call) {
    this.view.turn();
    try {
      const story = await get(`/api/calls/${segment(call.call)}/timeline`);
      if (this.list.selected === null || this.list.selected === call.call) this.view.fill(told(story, this.url));
    } catch (error) {
      if (this.list.selected === null || this.list.selected === call.call)
        this.view.fill(fault(error, () => this.open(call)));
    }
  }

  // New calls appear on top while somebody looks at the top, and leave the reader of old ones alone.
  happened() {
    if (this.list.node.scrollTop < 200 && this.found.size < PAGE * 2) this.change({});
  }

  close() {
    clearTimeout(this.timer);
    this.list.close();
  }
}

export function calls(main, [wanted]) {
  const page = new Calls(main, wanted);
  const stop = listen((kind) => (kind === "calls" || kind === "back") && page.happened());
  return () => {
    stop();
    page.close();
  };
}
