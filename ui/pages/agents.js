// Agents: who may call, what each sees, tokens made and revoked here; and who operates the gateway.
import { get, post, remove, segment } from "../api.js";
import { button, copyButton, empty, fault, h, say, show } from "../dom.js";
import { many, moment } from "../format.js";
import { keys } from "../keyboard.js";
import { chosen, field, panes } from "../layout.js";
import { List, listOrEmpty } from "../list.js";
import { toolRow } from "./tools.js";

const MODES = [["full", "full: every tool with its schema"], ["proxy", "proxy: a stripped list"], ["gateway", "gateway: three meta-tools"]];

const secretBox = (title, secret, advice) =>
  h("div.secret", h("strong", title), h("code", secret), h("p", advice), h("div.buttons", copyButton("Copy", () => secret)));

const row = (agent) =>
  h("div.two", h("span.lead", agent.name), h("span.end", many(agent.tools, "tool")), h("span.rest", `${agent.mode} · ${agent.namespaces ? agent.namespaces.join(", ") : "sees every source"}`), h("span.end", agent.made_here ? "made here" : "in the files"));

export function agents(main) {
  let all = [];
  let needle = "";
  const search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search agents", oninput: (event) => { needle = event.target.value.toLowerCase(); draw(); } });
  const nothing = h("div");
  const list = new List({ row, key: (agent) => agent.name, onSelect: open, label: "Agents" });
  const bar = h("div.bar", search, button("New agent", create), button("Operators", operators, { kind: "quiet" }));
  const view = panes(main, { bar, list: list.node, nothing, hint: "Choose an agent to see what it sees." });
  const seen = new List({ row: toolRow, key: (tool) => tool.name, label: "Tools it sees", onSelect: (tool, byHand) => byHand && (location.hash = `#/tools/${segment(tool.name)}`) });

  function draw() {
    const found = all.filter((agent) => agent.name.toLowerCase().includes(needle));
    listOrEmpty(list, found, nothing);
    if (!found.length) show(nothing, all.length ? empty("No agent fits") : empty("There is no agent", "Make one here, or name one under agents in the configuration."));
  }

  async function load() {
    try {
      all = await get("/api/agents");
      draw();
    } catch (error) {
      all = [];
      draw();
      show(nothing, fault(error, load));
    }
  }

  async function open(agent) {
    main.setAttribute("data-open", "");
    try {
      drawOne(await get(`/api/agents/${segment(agent.name)}`));
    } catch (error) {
      view.fill(fault(error, () => open(agent)));
    }
  }

  function drawOne(agent, token) {
    const revoke = button("Revoke its token", async () => {
      if (!confirm(`Revoke the token of ${agent.name}? It is refused from now on.`)) return;
      await remove(`/api/agents/${segment(agent.name)}`);
      say(`Revoked ${agent.name}`);
      view.clear();
      load();
    });
    view.open(
      h("h2", agent.name),
      token ? secretBox("Its token, shown this once", token, "Give it to the agent as AGENT_TOKEN. Only its hash is kept here.") : null,
      h("dl.facts",
        field("mode", agent.mode),
        field("sees", agent.namespaces ? agent.namespaces.join(", ") : "every source"),
        field("calls a minute", agent.calls_per_minute || "no limit"),
        field("questions open at a time", agent.max_pending || "no limit"),
        field("token", agent.made_here ? `made here, ${moment(agent.created_at)}` : "in the configuration files")),
      agent.made_here ? h("div.buttons", revoke) : null,
      h("h3", `It sees ${many(agent.sees.length, "tool")}`),
      agent.sees.length ? h("div.boxed", seen.node) : h("p.soft", "Nothing: no source it may see has tools that the rules leave to it."),
    );
    seen.node.style.height = `min(50vh, calc(${agent.sees.length} * var(--row)))`;
    seen.set(agent.sees);
  }

  function create() {
    const name = h("input", { type: "text", required: true, pattern: "[A-Za-z0-9][A-Za-z0-9_.\\-]{0,63}", placeholder: "such as kitchen-pi" });
    const spaces = h("input", { type: "text", placeholder: "all; or names with commas between" });
    let mode = "full";
    const make = button("Make the agent", async () => {
      const namespaces = spaces.value.split(",").map((word) => word.trim()).filter(Boolean);
      const made = await post("/api/agents", { name: name.value.trim(), mode, namespaces: namespaces.length ? namespaces : null });
      await load();
      list.select(null);
      drawOne(await get(`/api/agents/${segment(made.name)}`), made.token);
    }, { kind: "strong" });
    view.open(h("h2", "A new agent"), h("label.block", h("span", "Name"), name), h("label.block", h("span", "What /mcp shows it"), chosen(MODES, mode, (value) => { mode = value; }, "Mode")), h("label.block", h("span", "Sources it sees"), spaces), h("div.buttons", make));
    name.focus();
  }

  async function operators() {
    main.setAttribute("data-open", "");
    try {
      drawOperators(await get("/api/operators"));
    } catch (error) {
      view.fill(fault(error, operators));
    }
  }

  function drawOperators(found, made) {
    const name = h("input", { type: "text", required: true, placeholder: "such as backup-script" });
    const make = button("Make a token", async () => {
      const token = await post("/api/operators", { name: name.value.trim() });
      drawOperators(await get("/api/operators"), token);
    }, { kind: "strong" });
    const link = button("Make a login link", async () => {
      const { url } = await post("/api/logins");
      show(place, secretBox("A link that works once, for 15 minutes", url, "Open it where you want to be logged in."));
    });
    const place = h("div");
    const line = (one) => h("tr", h("td", h("code", one.name)), h("td", `answers as ${one.person}`), h("td", moment(one.created_at)), h("td", button("Revoke", async () => {
      await remove(`/api/operators/${segment(one.name)}`);
      drawOperators(await get("/api/operators"));
    })));
    view.open(
      h("h2", "Operators"),
      h("p.soft", "People log in with a link. Programs send a token as Authorization: Bearer TOKEN to the admin API; an agent's token never opens it."),
      made ? secretBox("The token, shown this once", made.token, "Only its hash is kept here.") : null,
      found.length ? h("table", h("tbody", found.map(line))) : h("p", "No program has an operator token."),
      h("div.buttons", name, make),
      h("h3", "Log in on another device"),
      h("div.buttons", link),
      place,
    );
  }

  keys({ j: { does: () => list.move(1), says: "next agent" }, k: { does: () => list.move(-1), says: "previous agent" }, ArrowDown: { does: () => list.move(1) }, ArrowUp: { does: () => list.move(-1) } });
  load();
  return () => {
    list.close();
    seen.close();
  };
}
