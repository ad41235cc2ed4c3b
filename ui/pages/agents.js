// Agents: who may call, what each sees, tokens made and revoked here; and who operates the gateway.
import { get, post, remove, segment } from "../api.js";
import { button, copyButton, empty, fault, h, say, show } from "../dom.js";
import { many, moment } from "../format.js";
import { keys } from "../keyboard.js";
import { boxed, chosen, field, movement, panes } from "../layout.js";
import { List, listOrEmpty } from "../list.js";
import { toolRow } from "./tools.js";

const MODES = [
  ["full", "full: every tool with its schema"],
  ["proxy", "proxy: a stripped list"],
  ["gateway", "gateway: three meta-tools"],
];
const HOW =
  "People log in with a link. Programs send a token as Authorization: Bearer TOKEN to the admin API; an agent's token never opens it.";

const secretBox = (title, secret, advice) =>
  h(
    "div.secret",
    h("strong", title),
    h("code", secret),
    h("p", advice),
    h(
      "div.buttons",
      copyButton("Copy", () => secret),
    ),
  );

const sees = (agent) => (agent.namespaces ? agent.namespaces.join(", ") : "every source");

const row = (agent) =>
  h(
    "div.two",
    h("span.lead", agent.name),
    h("span.end", many(agent.tools, "tool")),
    h("span.rest", `${agent.mode} · sees ${sees(agent)}`),
    h("span.end", agent.made_here ? "made here" : "in the files"),
  );

const facts = (agent) =>
  h(
    "dl.facts",
    field("mode", agent.mode),
    field("sees", sees(agent)),
    field("calls a minute", agent.calls_per_minute || "no limit"),
    field("questions open at a time", agent.max_pending || "no limit"),
    field("token", agent.made_here ? `made here, ${moment(agent.created_at)}` : "in the configuration files"),
  );

class Agents {
  constructor(main) {
    Object.assign(this, { main, all: [], needle: "", round: 0 });
    this.nothing = h("div");
    this.list = new List({
      row,
      key: (agent) => agent.name,
      onSelect: (agent) => agent && this.open(agent.name),
      label: "Agents",
    });
    this.seen = new List({
      row: toolRow,
      key: (tool) => tool.name,
      label: "Tools it sees",
      onSelect: (tool) => (location.hash = `#/tools/${segment(tool.name)}`),
    });
    const hint = "Choose an agent to see what it sees.";
    this.view = panes(main, { bar: this.bar(), list: this.list.node, nothing: this.nothing, hint });
    keys(movement(this.list, "agent"));
    this.load();
  }

  bar() {
    const oninput = (event) => {
      this.needle = event.target.value.toLowerCase();
      this.draw();
    };
    const search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search agents", oninput });
    const create = button("New agent", () => this.create());
    return h(
      "div.bar",
      search,
      create,
      button("Operators", () => this.operators(), { kind: "quiet" }),
    );
  }

  draw() {
    const found = this.all.filter((agent) => agent.name.toLowerCase().includes(this.needle));
    listOrEmpty(this.list, found, this.nothing);
    if (found.length) return;
    const none = empty("There is no agent", "Make one here, or name one under agents in the configuration.");
    show(this.nothing, this.all.length ? empty("No agent fits") : none);
  }

  async load() {
    try {
      this.all = await get("/api/agents");
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

  // What was asked for last is shown, and in any case a token, which nobody can ask for again.
  async open(name, token) {
    const mine = (this.round += 1);
    this.view.turn();
    try {
      const agent = await get(`/api/agents/${segment(name)}`);
      if (mine === this.round || token) this.drawOne(agent, token);
    } catch (error) {
      if (mine === this.round || token) this.view.fill(fault(error, () => this.open(name, token)));
    }
  }

  drawOne(agent, token) {
    const advice = "Give it to the agent as AGENT_TOKEN. Only its hash is kept here.";
    const tools = h("div", h("p.soft", "Nothing: no source it may see has tools that the rules leave to it."));
    this.view.open(
      h("h2", agent.name),
      token ? secretBox("Its token, shown this once", token, advice) : null,
      facts(agent),
      agent.made_here
        ? h(
            "div.buttons",
            button("Revoke its token", () => this.revoke(agent.name)),
          )
        : null,
      h("h3", `It sees ${many(agent.sees.length, "tool")}`),
      tools,
    );
    if (agent.sees.length) boxed(tools, this.seen, agent.sees, { most: "50vh" });
  }

  async revoke(name) {
    if (!confirm(`Revoke the token of ${name}? It is refused from now on.`)) return;
    await remove(`/api/agents/${segment(name)}`);
    say(`Revoked ${name}`);
    this.view.clear();
    this.load();
  }

  create() {
    this.round += 1;
    const name = h("input", { type: "text", required: true, placeholder: "such as kitchen-pi" });
    const spaces = h("input", { type: "text", placeholder: "all; or names with commas between" });
    let mode = "full";
    const make = async () => {
      const wanted = spaces.value
        .split(",")
        .map((word) => word.trim())
        .filter(Boolean);
      const namespaces = wanted.length ? wanted : null;
      const made = await post("/api/agents", { name: name.value.trim(), mode, namespaces });
      await this.load();
      this.open(made.name, made.token);
    };
    this.view.open(
      h("h2", "A new agent"),
      h("label.block", h("span", "Name"), name),
      h(
        "label.block",
        h("span", "What /mcp shows it"),
        chosen(MODES, mode, (value) => (mode = value), "Mode"),
      ),
      h("label.block", h("span", "Sources it sees"), spaces),
      h("div.buttons", button("Make the agent", make, { kind: "strong" })),
    );
    name.focus();
  }

  async operators(made) {
    this.round += 1;
    this.view.turn();
    try {
      this.drawOperators(await get("/api/operators"), made);
    } catch (error) {
      this.view.fill(fault(error, () => this.operators(made)));
    }
  }

  operatorRow(operator) {
    const revoke = async () => {
      await remove(`/api/operators/${segment(operator.name)}`);
      this.operators();
    };
    const cells = [
      h("code", operator.name),
      `answers as ${operator.person}`,
      moment(operator.created_at),
      button("Revoke", revoke),
    ];
    return h(
      "tr",
      cells.map((cell) => h("td", cell)),
    );
  }

  drawOperators(found, made) {
    const name = h("input", {
      type: "text",
      placeholder: "such as backup-script",
      "aria-label": "Name of the program",
    });
    const make = async () => this.operators(await post("/api/operators", { name: name.value.trim() }));
    const place = h("div");
    const link = async () => {
      const { url, advice } = await post("/api/logins");
      show(place, secretBox("A link that works once, for 15 minutes", url, advice ?? "Open it where you want to be logged in."));
    };
    this.view.open(
      h("h2", "Operators"),
      h("p.soft", HOW),
      made ? secretBox("The token, shown this once", made.token, "Only its hash is kept here.") : null,
      found.length
        ? h(
            "table",
            h(
              "tbody",
              found.map((one) => this.operatorRow(one)),
            ),
          )
        : h("p", "No program has an operator token."),
      h("div.buttons", name, button("Make a token", make, { kind: "strong" })),
      h("h3", "Log in on another device"),
      h("div.buttons", button("Make a login link", link)),
      place,
    );
  }

  close() {
    this.list.close();
    this.seen.close();
  }
}

export function agents(main) {
  const page = new Agents(main);
  return () => page.close();
}
