// Tools: what there is, what it takes, who may call it, and trying one as an agent would.
import { get, post, query, segment } from "../api.js";
import { at, button, empty, h, live, show } from "../dom.js";
import { count, many } from "../format.js";
import { chosen, field, jsonOf, twoLines } from "../layout.js";
import { may } from "../me.js";
import { Collection } from "../parts/collection.js";
import { jsonArea, saidAt } from "../parts/form.js";
import { List } from "../parts/list.js";
import { effectWord, ruleWord } from "../words.js";

const BYTES_PER_TOKEN = 4;
const MOST_AGENTS = 200;
const SAMPLES = { string: "", number: 0, integer: 0, boolean: false, array: [], object: {} };

export function sample(schema) {
	const properties = schema.properties ?? {};
	const names = schema.required?.length ? schema.required : Object.keys(properties).slice(0, 3);
	const value = ({ default: given, enum: choices, type } = {}) => given ?? choices?.[0] ?? SAMPLES[type] ?? "";
	return Object.fromEntries(names.map((name) => [name, value(properties[name])]));
}

const toolRow = (tool) =>
	twoLines(
		tool.name,
		tool.effect ? ruleWord(tool.effect) : "",
		[tool.available ? null : h("span.word.fail", "unavailable · "), tool.description || "no description"],
		`≈ ${count(tool.bytes / BYTES_PER_TOKEN)} tokens`,
	);

export const toolList = (label) =>
	new List({ row: toolRow, key: ({ name }) => name, label, onSelect: ({ name }) => (location.hash = `#/tools/${segment(name)}`) });

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
		field("source", h("a", { href: `#/sources/${segment(tool.source)}` }, h("code", tool.source)), tool.available ? "" : ", unavailable now"),
		field("size", `${many(tool.tokens, "token")} in an agent's prompt`),
		field("traits", traits || "none declared", traits && !tool.traits.trusted ? " (the server's own claim)" : ""),
	);
}

function outcome(value) {
	if (value.error) return h("p", h("code", value.error.code), ` ${value.error.message}`);
	if (value.status !== "pending")
		return h("pre", typeof value.data === "string" ? value.data : JSON.stringify(value.data, null, 2));
	return h("p.asks", "A person is asked. ", h("a", { href: `#/approvals/${value.approval}` }, "Look and answer"));
}

function trial(tool, agents, chosenAgent) {
	let agent = chosenAgent || agents[0]?.name;
	const area = jsonArea(JSON.stringify(sample(tool.input_schema), null, 2));
	const result = live();
	const run = saidAt(area, async () => {
		let value = await post(`/api/tools/${segment(tool.name)}/try`, { agent, arguments: jsonOf(area.node) });
		show(result, outcome(value));
		while (value.status === "pending" && result.isConnected) {
			value = await get(`/api/tries/${value.call}${query({ agent, wait: 20 })}`);
			show(result, outcome(value));
		}
	});
	const names = agents.slice(0, MOST_AGENTS).map(({ name }) => [name, name]);
	return h(
		"div",
		h("p.soft", "It passes the same rules, questions and record as the agent's own call would."),
		h("label.block", h("span", "as the agent"), chosen(names, agent, (name) => (agent = name), "Agent")),
		area.row,
		h("div.buttons", button("Run", run, { kind: "strong" })),
		result,
	);
}

function described(tool, agents, agent) {
	const who = tool.who.slice(0, MOST_AGENTS).map(whoRow);
	return [
		h("h2", tool.title || tool.name),
		tool.title && tool.title !== tool.name && h("p.signature", tool.name),
		h("p", tool.description || "It has no description."),
		facts(tool),
		h("h3", "Who may call it"),
		who.length ? h("table", h("tbody", who)) : h("p.soft", "There is no agent yet."),
		may("operate") && agents.length ? [h("h3", "Try it"), trial(tool, agents, agent)] : null,
		h("h3", "What it takes"),
		h("pre", JSON.stringify(tool.input_schema, null, 2)),
		tool.output_schema && [h("h3", "What it gives"), h("pre", JSON.stringify(tool.output_schema, null, 2))],
	];
}

export function tools(main, [wanted], params) {
	const kept = { agent: params.get("agent") ?? "" };
	const who = h("span.who_");
	let agents = [];
	const page = new Collection(main, {
		load,
		key: ({ name }) => name,
		row: toolRow,
		text: (tool) => `${tool.name} ${tool.id} ${tool.description} ${tool.effect ?? ""}`,
		group: ({ source }) => source,
		told: async ({ name }) => described(await get(`/api/tools/${segment(name)}`), agents, kept.agent),
		thing: "Tool",
		none: () => empty("There are no tools", "Tools come from sources. Add one, or see why one is not ready.", h("a.button", { href: "#/sources" }, "See the sources")),
		bar: who,
		wanted,
		params,
		kept,
	});

	async function load() {
		agents = await get("/api/agents");
		if (!agents.some(({ name }) => name === kept.agent)) kept.agent = "";
		const agent = kept.agent || agents[0]?.name;
		offer(agent);
		return (await get(`/api/tools${query({ brief: 1, agent })}`)).tools;
	}

	function offer(agent) {
		const names = agents.slice(0, MOST_AGENTS).map(({ name }) => [name, `for ${name}`]);
		const choose = (name) => {
			kept.agent = name;
			page.remember();
			page.load();
		};
		if (who.dataset.agent !== agent) show(who, agents.length ? chosen(names, agent, choose, "What the rules say for") : null);
		who.dataset.agent = agent;
	}

	return page.close;
}
