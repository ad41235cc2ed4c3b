// Policy: the rules with what is wrong with them, the file they stand in, and why a call would be decided so.
import { get, post } from "../api.js";
import { at, button, empty, h, show } from "../dom.js";
import { chosen, field, jsonOf, loader } from "../layout.js";
import { many, place } from "../format.js";
import { List } from "../list.js";
import { effectWord } from "../words.js";

const ruleRow = (rule) =>
  h("div",
    h("span.soft", rule.line ? `line ${rule.line}` : "–"),
    h("span.lead", rule.rule),
    h("span.end", rule.faults.length ? h("span.word.you", "never decides") : rule.default ? "default" : ""),
    h("span"),
    h("span.rest", { title: rule.faults.join(" ") }, rule.faults[0] ?? rule.description ?? ""),
    h("span"));

function considered(one) {
  return h("tr", h("td", one.matched ? h("strong", one.rule) : one.rule), h("td", h("code", { title: one.where }, place(one.where))), h("td", one.matched ? h("strong", "decides") : h("span.soft", one.why)));
}

function different(one) {
  return h("tr", h("td", h("code", one.signature), h("div.soft", one.caller)), h("td", effectWord(one.before), " → ", effectWord(one.after)), h("td", one.rule || "no rule matches", at(one.where)), h("td.number", many(one.count, "call")));
}

export function policy(main) {
  const [rules, file, trial, ideas] = [h("div"), h("div"), h("div"), h("section", { hidden: true })];
  const heading = h("h2", "The file");
  const tally = h("p.soft");
  show(main, h("section", h("h2", "Why would a call be decided so?"), explainer()), h("section", h("h2", "Rules"), tally, rules), ideas, h("section", heading, file), h("section", h("h2", "What would change?"), trial));
  const list = new List({ row: ruleRow, key: (rule) => `${rule.where}${rule.rule}`, label: "Rules" });
  const lines = new List({ row: lineRow, key: (line) => String(line.number), label: "Lines of the file" });
  lines.node.style.setProperty("--row", "22px");

  function lineRow(line) {
    return h(line.faults.length ? "div.marked" : "div", { title: line.faults.join(" ") }, h("span.number", line.number), h("span.text", line.text || " "));
  }

  function fit(node, list_, items, tall) {
    if (!node.contains(list_.node)) show(node, h(tall ? "div.boxed.code" : "div.boxed.rules", list_.node));
    list_.node.style.height = tall ? `min(60vh, ${items.length * tall + 4}px)` : `min(60vh, calc(${items.length} * var(--row)))`;
    list_.set(items);
  }

  const load = loader(rules, "/api/policy", (found) => {
    const faulty = found.rules.filter((rule) => rule.faults.length).length;
    tally.textContent = found.rules.length ? `${many(found.rules.length, "rule")}, looked at in this order: every deny, every allow, every ask, then the defaults. ${faulty ? `${many(faulty, "rule")} can never decide.` : "Each can decide something."}` : "";
    if (found.rules.length) fit(rules, list, found.rules);
    else show(rules, empty("There are no rules", "Every call is asked. Write rules into permissions.yaml; docs/permissions.md shows how."));
    drawTrial(found.text);
    show(heading, found.file ? ["The file ", h("code", found.file)] : "There is no file");
    if (!found.text) return show(file, h("p.soft", "Rules are read from permissions.yaml beside the configuration."));
    const faults = new Map();
    for (const rule of found.rules) if (rule.line) faults.set(rule.line, rule.faults);
    const rows = found.text.split("\n").map((text, index) => ({ number: index + 1, text, faults: faults.get(index + 1) ?? [] }));
    return fit(file, lines, rows, 22);
  });

  function explainer() {
    const tool = h("input", { type: "search", placeholder: "Tool", "aria-label": "Tool", list: "known-tools" });
    const area = h("textarea", { spellcheck: false, "aria-label": "Arguments as JSON", value: "{}" });
    const known = h("datalist", { id: "known-tools" });
    const who = h("span");
    const result = h("div", { "aria-live": "polite" });
    let caller = "default";
    get("/api/tools?brief=1").then(({ tools }) => show(known, tools.slice(0, 500).map(({ name }) => h("option", { value: name }))), () => {});
    get("/api/agents").then((agents) => {
      caller = agents[0]?.name ?? caller;
      show(who, chosen(agents.slice(0, 500).map(({ name }) => [name, name]), caller, (name) => { caller = name; }, "Agent"));
    }, () => {});
    const ask = button("Explain", async () => {
      const said = await post("/api/explain", { tool: tool.value.trim(), arguments: jsonOf(area), caller });
      show(result,
        h("dl.facts", field("signature", h("code", said.signature)), field("decision", effectWord(said.effect)), field("because", said.reason || "–"), field("rule", said.rule || "no rule matches", at(said.where))),
        h("h3", "Rules on the way"),
        h("table", h("tbody", said.considered.map(considered))));
    }, { kind: "strong" });
    return h("div", h("div.buttons", tool, who), h("label.block", h("span", "Arguments"), area), known, h("div.buttons", ask), result);
  }

  // Other rules against what was recorded: which calls would have met another decision.
  function drawTrial(text) {
    if (trial.childElementCount) return;
    let days = "7";
    const area = h("textarea.tall", { spellcheck: false, "aria-label": "Changed rules", value: text });
    const result = h("div", { "aria-live": "polite" });
    const run = button("Try on recorded calls", async () => {
      const report = await post("/api/policy/simulate", { text: area.value, since: Date.now() / 1000 - Number(days) * 86_400 });
      show(result,
        h("p", `${many(report.tried, "call")} tried, ${report.differences.length ? `${many(report.same, "is", "are")} decided as before.` : "all decided as before."}`),
        report.differences.length ? h("table", h("tbody", report.differences.slice(0, 500).map(different))) : null);
    }, { kind: "strong" });
    show(trial, h("p.soft", "Change the rules here and see what they would have decided. Nothing is saved."), area, h("div.buttons", run, chosen([["1", "the last day"], ["7", "the last week"], ["28", "the last four weeks"]], days, (value) => { days = value; }, "Since")), result);
  }

  get("/api/policy/suggest").then(({ suggestions }) => {
    ideas.hidden = !suggestions.length;
    show(ideas, h("h2", "Your answers suggest"), suggestions.slice(0, 20).map((idea) => h("div.card", h("p", idea.text), h("pre", JSON.stringify(idea.rule)))));
  }, () => {});
  load();
  return () => {
    list.close();
    lines.close();
  };
}
