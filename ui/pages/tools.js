// Tools: what there is, what it takes, who may call it, and trying one as an agent would.
import { get, post, query, segment } from "../api.js";
import { at, button, empty, fault, h, show } from "../dom.js";
import { count, many } from "../format.js";
import { listen } from "../inbox.js";
import { keys } from "../keyboard.js";
import { chosen, field, jsonOf, panes } from "../layout.js";
import { List, listOrEmpty } from "../list.js";
import { effectWord } from "../words.js";

const BYTES_PER_TOKEN = 4;
const SAMPLES = { string: "", number: 0, integer: 0, boolean: false, array: [], object: {} };

function sample(schema) {
  const properties = schema.properties ?? {};
  const names = schema.required?.length ? schema.required : Object.keys(properties).slice(0, 3);
  return Object.fromEntries(names.map((name) => {
    const property = properties[name] ?? {};
    return [name, property.default ?? property.enum?.[0] ?? SAMPLES[property.type] ?? ""];
  }));
}

export const toolRow = (tool) =>
  h("div.two", h("span.lead", tool.name), h("span.end", tool.available ? "" : "unavailable"), h("span.rest", tool.description || "no description"), h("span.end", `≈ ${count(tool.bytes / BYTES_PER_TOKEN)} tokens`));

function whoRow(who) {
  const rules = who.rules.map((rule) => h("div", rule.rule || rule.description, at(rule.where), rule.default ? h("span.soft", " (default)") : null));
  return h("tr", h("td", h("code", who.agent)), h("td", effectWord(who.effect)), h("td", rules.length > 3 ? h("details", h("summary", many(rules.length, "rule")), rules) : rules));
}

function outcome(value) {
  if (value.error) return h("p", h("code", value.error.code), ` ${value.error.message}`);
  if (value.status === "pending") return h("p.asks", "A person is asked. ", h("a", { href: `#/approvals/${value.approval}` }, "Look and answer"));
  return h("pre", typeof value.data === "string" ? value.data : JSON.stringify(value.data, null, 2));
}

export function tools(main, [wanted]) {
  let all = [];
  let agents = [];
  let needle = "";
  let round = 0;
  const search = h("input", { type: "search", placeholder: "Search name and description", "aria-label": "Search tools", oninput: (event) => { needle = event.target.value.toLowerCase(); draw(); } });
  const tally = h("span.soft");
  const nothing = h("div");
  const list = new List({ row: toolRow, key: (tool) => tool.name, onSelect: open, label: "Tools" });
  const view = panes(main, { bar: h("div.bar", search, tally), list: list.node, nothing, hint: "Choose a tool to see what it takes and who may call it." });

  function draw() {
    const words = needle.split(/\s+/).filter(Boolean);
    const found = words.length ? all.filter((tool) => { const text = `${tool.name} ${tool.id} ${tool.description}`.toLowerCase(); return words.every((word) => text.includes(word)); }) : all;
    tally.textContent = many(found.length, "tool");
    listOrEmpty(list, found, nothing);
    if (!found.length) show(nothing, all.length ? empty("No tool fits", "Try fewer words.") : empty("There are no tools", "Tools come from sources. Add one to the configuration, or see why a source is not ready.", h("a", { href: "#/sources" }, "Sources")));
  }

  async function load() {
    try {
      all = (await get("/api/tools?brief=1")).tools;
      draw();
    } catch (error) {
      all = [];
      draw();
      show(nothing, fault(error, load));
    }
  }

  async function open(tool, byHand = true) {
    const mine = (round += 1);
    if (byHand) main.setAttribute("data-open", "");
    try {
      const [full, who] = await Promise.all([get(`/api/tools/${segment(tool.name)}`), get("/api/agents")]);
      agents = who;
      if (mine === round) drawOne(full);
    } catch (error) {
      if (mine === round) view.fill(fault(error, () => open(tool)));
    }
  }

  function drawOne(tool) {
    const traits = Object.entries(tool.traits).filter(([name, held]) => held && name !== "trusted").map(([name]) => name.replaceAll("_", " "));
    view.fill(
      h("h2", tool.title || tool.name),
      tool.title && tool.title !== tool.name ? h("p.signature", tool.name) : null,
      h("p", tool.description || "It has no description."),
      h("dl.facts",
        field("id", h("code", tool.id)),
        field("source", h("a", { href: "#/sources" }, h("code", tool.source)), tool.available ? "" : ", unavailable now"),
        field("size", `${many(tool.tokens, "token")} in an agent's prompt`),
        field("traits", traits.join(", ") || "none declared", traits.length && !tool.traits.trusted ? " (the server's own claim)" : ""),
        field("definition", h("code", tool.pin))),
      h("h3", "Who may call it"),
      tool.who.length ? h("table", h("tbody", tool.who.slice(0, 200).map(whoRow))) : h("p.soft", "There is no agent yet."),
      h("h3", "Try it"),
      trial(tool),
      h("h3", "What it takes"),
      h("pre", JSON.stringify(tool.input_schema, null, 2)),
      tool.output_schema ? [h("h3", "What it gives"), h("pre", JSON.stringify(tool.output_schema, null, 2))] : null,
    );
  }

  function trial(tool) {
    let agent = agents[0]?.name;
    const area = h("textarea", { spellcheck: false, "aria-label": "Arguments as JSON", value: JSON.stringify(sample(tool.input_schema), null, 2) });
    const result = h("div", { "aria-live": "polite" });
    const run = button("Run", async () => {
      let value = await post(`/api/tools/${segment(tool.name)}/try`, { agent, arguments: jsonOf(area) });
      show(result, outcome(value));
      while (value.status === "pending" && result.isConnected) {
        value = await get(`/api/tries/${value.call}${query({ agent, wait: 20 })}`);
        show(result, outcome(value));
      }
    }, { kind: "strong" });
    return h(
      "div",
      h("p.soft", "It passes the same rules, questions and record as the agent's own call would."),
      h("label.block", h("span", "as the agent"), chosen(agents.map(({ name }) => [name, name]), agent, (name) => { agent = name; }, "Agent")),
      area,
      h("div.buttons", run),
      result,
    );
  }

  keys({
    j: { does: () => list.move(1), says: "next tool" },
    k: { does: () => list.move(-1), says: "previous tool" },
    ArrowDown: { does: () => list.move(1) },
    ArrowUp: { does: () => list.move(-1) },
  });
  load();
  if (wanted) open({ name: wanted });
  const stop = listen((kind) => kind === "catalog" && load());
  return () => {
    stop();
    list.close();
  };
}
