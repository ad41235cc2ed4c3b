// Tools: what there is, what it takes, who may call it, and trying one as an agent would.
import { get, post, query, segment } from "../api.js";
import { at, button, empty, fault, h, show } from "../dom.js";
import { count, many } from "../format.js";
import { listen } from "../inbox.js";
import { keys } from "../keyboard.js";
import { chosen, field, jsonOf, movement, panes } from "../layout.js";
import { List, listOrEmpty } from "../list.js";
import { effectWord } from "../words.js";

const BYTES_PER_TOKEN = 4;
const MOST_AGENTS = 200;
const SAMPLES = { string: "", number: 0, integer: 0, boolean: false, array: [], object: {} };

// Arguments to start from: what is required, else the first few.
function sample(schema) {
  const properties = schema.properties ?? {};
  const names = schema.required?.length ? schema.required : Object.keys(properties).slice(0, 3);
  const value = ({ default: given, enum: choices, type } = {}) => given ?? choices?.[0] ?? SAMPLES[type] ?? "";
  return Object.fromEntries(names.map((name) => [name, value(properties[name])]));
}

export const toolRow = (tool) =>
  h(
    "div.two",
    h("span.lead", tool.name),
    h("span.end", tool.available ? "" : "unavailable"),
    h("span.rest", tool.description || "no description"),
    h("span.end", `≈ ${count(tool.bytes / BYTES_PER_TOKEN)} tokens`),
  );

function whoRow(who) {
  const line = (rule) =>
    h("div", rule.rule || rule.description, at(rule.where), rule.default ? h("span.soft", " (default)") : null);
  const rules = who.rules.map(line);
  const shown = rules.length > 3 ? h("details", h("summary", many(rules.length, "rule")), rules) : rules;
  return h("tr", h("td", h("code", who.agent)), h("td", effectWord(who.effect)), h("td", shown));
}

function facts(tool) {
  const held = Object.entries(tool.traits).filter(([name, is]) => is && name !== "trusted");
  const traits = held.map(([name]) => name.replaceAll("_", " ")).join(", ");
  return h(
    "dl.facts",
    field("id", h("code", tool.id)),
    field("source", h("a", { href: "#/sources" }, h("code", tool.source)), tool.available ? "" : ", unavailable now"),
    field("size", `${many(tool.tokens, "token")} in an agent's prompt`),
    field("traits", traits || "none declared", traits && !tool.traits.trusted ? " (the server's own claim)" : ""),
    field("definition", h("code", tool.pin)),
  );
}

function outcome(value) {
  if (value.error) return h("p", h("code", value.error.code), ` ${value.error.message}`);
  if (value.status !== "pending")
    return h("pre", typeof value.data === "string" ? value.data : JSON.stringify(value.data, null, 2));
  return h("p.asks", "A person is asked. ", h("a", { href: `#/approvals/${value.approval}` }, "Look and answer"));
}

// A real call as one of the agents; while a person is asked, the outcome is waited for.
function trial(tool, agents) {
  let agent = agents[0]?.name;
  const arguments_ = JSON.stringify(sample(tool.input_schema), null, 2);
  const area = h("textarea", { spellcheck: false, "aria-label": "Arguments as JSON", value: arguments_ });
  const result = h("div", { "aria-live": "polite" });
  const run = async () => {
    let value = await post(`/api/tools/${segment(tool.name)}/try`, { agent, arguments: jsonOf(area) });
    show(result, outcome(value));
    while (value.status === "pending" && result.isConnected) {
      value = await get(`/api/tries/${value.call}${query({ agent, wait: 20 })}`);
      show(result, outcome(value));
    }
  };
  const names = agents.map(({ name }) => [name, name]);
  return h(
    "div",
    h("p.soft", "It passes the same rules, questions and record as the agent's own call would."),
    h(
      "label.block",
      h("span", "as the agent"),
      chosen(names, agent, (name) => (agent = name), "Agent"),
    ),
    area,
    h("div.buttons", button("Run", run, { kind: "strong" })),
    result,
  );
}

function described(tool, agents) {
  const who = tool.who.slice(0, MOST_AGENTS).map(whoRow);
  return [
    h("h2", tool.title || tool.name),
    tool.title && tool.title !== tool.name ? h("p.signature", tool.name) : null,
    h("p", tool.description || "It has no description."),
    facts(tool),
    h("h3", "Who may call it"),
    who.length ? h("table", h("tbody", who)) : h("p.soft", "There is no agent yet."),
    h("h3", "Try it"),
    trial(tool, agents),
    h("h3", "What it takes"),
    h("pre", JSON.stringify(tool.input_schema, null, 2)),
    tool.output_schema ? [h("h3", "What it gives"), h("pre", JSON.stringify(tool.output_schema, null, 2))] : null,
  ];
}

class Tools {
  constructor(main, wanted) {
    Object.assign(this, { main, all: [], needle: "", round: 0 });
    this.nothing = h("div");
    this.tally = h("span.soft");
    this.list = new List({
      row: toolRow,
      key: (tool) => tool.name,
      onSelect: (tool) => this.open(tool),
      label: "Tools",
    });
    const hint = "Choose a tool to see what it takes and who may call it.";
    const bar = h("div.bar", this.search(), this.tally);
    this.view = panes(main, { bar, list: this.list.node, nothing: this.nothing, hint });
    keys(movement(this.list, "tool"));
    this.load();
    if (wanted) this.open({ name: wanted });
  }

  search() {
    const oninput = (event) => {
      this.needle = event.target.value.toLowerCase();
      this.draw();
    };
    return h("input", {
      type: "search",
      placeholder: "Search name and description",
      "aria-label": "Search tools",
      oninput,
    });
  }

  found() {
    const words = this.needle.split(/\s+/).filter(Boolean);
    if (!words.length) return this.all;
    return this.all.filter((tool) => {
      const text = `${tool.name} ${tool.id} ${tool.description}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
  }

  draw() {
    const found = this.found();
    this.tally.textContent = many(found.length, "tool");
    listOrEmpty(this.list, found, this.nothing);
    if (found.length) return;
    const advice = "Tools come from sources. Add one to the configuration, or see why a source is not ready.";
    const none = () => empty("There are no tools", advice, h("a", { href: "#/sources" }, "Sources"));
    show(this.nothing, this.all.length ? empty("No tool fits", "Try fewer words.") : none());
  }

  async load() {
    try {
      this.all = (await get("/api/tools?brief=1")).tools;
      this.draw();
    } catch (error) {
      this.all = [];
      this.draw();
      show(
        this.nothing,
        fault(error, () => this.load()),
      );
    }
  }

  async open(tool) {
    const mine = (this.round += 1);
    this.view.turn();
    try {
      const [full, agents] = await Promise.all([get(`/api/tools/${segment(tool.name)}`), get("/api/agents")]);
      if (mine === this.round) this.view.fill(described(full, agents));
    } catch (error) {
      if (mine === this.round) this.view.fill(fault(error, () => this.open(tool)));
    }
  }
}

export function tools(main, [wanted]) {
  const page = new Tools(main, wanted);
  const stop = listen((kind) => (kind === "catalog" || kind === "back") && page.load());
  return () => {
    stop();
    page.list.close();
  };
}
