// Calls: the record, one line per call; each with where its time went and what the record says.
import { get, query, segment } from "../api.js";
import { at, copyButton, empty, fault, h, show } from "../dom.js";
import { bytes, copies, moment, span } from "../format.js";
import { listen } from "../inbox.js";
import { keys } from "../keyboard.js";
import { chosen, field, panes } from "../layout.js";
import { List, listOrEmpty } from "../list.js";
import { STATE_NAMES, rowWord, stateWord } from "../words.js";
import { callRow } from "./now.js";

const PAGE = 400;

function waterfall(spans) {
  if (!spans.length) return h("p.soft", "The call ended before there was anything to measure.");
  const start = spans[0].start;
  const whole = Math.max(spans.at(-1).end - start, 1e-6);
  return h(
    "div.waterfall",
    spans.map((part) => {
      const bit = h(part.name.endsWith("for a person") ? "div.bit.you" : "div.bit");
      bit.style.left = `${((part.start - start) / whole) * 100}%`;
      bit.style.width = `${((part.end - part.start) / whole) * 100}%`;
      return [h("span.label", part.name), h("div.track", bit), h("span.time", span(part.end - part.start))];
    }),
  );
}

const recordRow = (row) =>
  h("tr", h("td", moment(row.at)), h("td", rowWord(row.state)), h("td", h("details", h("summary", `row ${row.seq} of ${row.chain}`), h("pre", JSON.stringify(row.body, null, 2)))));

export function calls(main, [wanted]) {
  const filters = { text: "", state: "" };
  const found = new Map();
  let next = null;
  let loading = false;
  let timer = 0;
  let url = "";
  const search = h("input", { type: "search", placeholder: "Search tool, signature, arguments", "aria-label": "Search calls", oninput: (event) => change({ text: event.target.value }) });
  const states = chosen([["", "every state"], ...STATE_NAMES.map((name) => [name, name])], "", (state) => change({ state }), "State");
  const nothing = h("div");
  const list = new List({ row: callRow, key: (call) => call.call, onSelect: open, onEnd: more, label: "Calls" });
  const view = panes(main, { bar: h("div.bar", search, states), list: list.node, nothing, hint: "Choose a call to see its story." });

  function change(values) {
    Object.assign(filters, values);
    clearTimeout(timer);
    timer = setTimeout(() => load(), 200);
  }

  function take(page) {
    for (const call of page.calls) if (!found.has(call.call)) found.set(call.call, call);
  }

  function draw() {
    listOrEmpty(list, [...found.values()], nothing);
    if (!found.size) {
      show(nothing, filters.text || filters.state
        ? empty("No call fits", "The record has no call with these words and this state.")
        : empty("No call was made yet", "Every call an agent makes is listed here, also those that were refused."));
    }
  }

  async function load() {
    loading = true;
    try {
      const page = await get(`/api/calls${query({ by: "call", limit: PAGE, ...filters })}`);
      found.clear();
      take(page);
      next = page.next;
      draw();
    } catch (error) {
      found.clear();
      draw();
      show(nothing, fault(error, load));
    }
    loading = false;
  }

  async function more() {
    if (!next || loading) return;
    loading = true;
    try {
      const page = await get(`/api/calls${query({ by: "call", limit: PAGE, cursor: next, ...filters })}`);
      take(page);
      next = page.next;
      list.set([...found.values()]);
    } catch {
      next = null;
    }
    loading = false;
  }

  async function open(call, byHand = true) {
    if (byHand) main.setAttribute("data-open", "");
    try {
      const story = await get(`/api/calls/${segment(call.call)}/timeline`);
      if (list.selected === null || list.selected === call.call) drawOne(story);
    } catch (error) {
      view.fill(fault(error, () => open(call)));
    }
  }

  function drawOne(story) {
    const forms = copies(story.tool, story.arguments, url);
    view.fill(
      h("h2", story.tool, " ", stateWord(story.state)),
      h("p.signature", story.signature),
      story.error ? h("p", h("code", story.error.code), ` ${story.error.message}`) : null,
      h("h3", story.seconds === null ? "Where the time goes" : `Where the time went: ${span(story.seconds)} in all`),
      waterfall(story.spans),
      h("h3", "What was decided"),
      h("dl.facts",
        field("caller", h("code", story.caller), story.surface ? ` over ${story.surface}` : ""),
        field("decision", story.decision || "refused before a decision", story.granted ? ", by a grant" : ""),
        story.rule ? field("rule", story.rule, at(story.where)) : null,
        field("tool", h("code", story.tool_id || "unknown")),
        field("result", story.size === null ? "none" : bytes(story.size)),
        field("call", h("code", story.call))),
      h("h3", "Arguments"),
      h("pre", JSON.stringify(story.arguments, null, 2)),
      h("div.buttons", Object.entries(forms).map(([name, text]) => copyButton(`Copy as ${name}`, () => text))),
      h("h3", "On the record"),
      h("table", h("tbody", story.rows.map(recordRow))),
    );
  }

  keys({
    j: { does: () => list.move(1), says: "next call" },
    k: { does: () => list.move(-1), says: "previous call" },
    ArrowDown: { does: () => list.move(1) },
    ArrowUp: { does: () => list.move(-1) },
  });
  get("/api/status").then((status) => { url = status.url; }, () => {});
  load();
  if (wanted) open({ call: wanted });
  const stop = listen((kind) => kind === "calls" && list.node.scrollTop < 200 && found.size < PAGE * 2 && change({}));
  return () => {
    stop();
    list.close();
    clearTimeout(timer);
  };
}
