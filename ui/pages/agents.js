// Agents: who may call and what each sees; tokens; programs that operate.
import { get, post, remove, segment } from "../api.js";
import { button, empty, h, say } from "../dom.js";
import { ago, many, moment, since } from "../format.js";
import { boxed, chosen, field, together, twoLines } from "../layout.js";
import { may } from "../me.js";
import { Collection } from "../parts/collection.js";
import { sure } from "../parts/dialog.js";
import { input, listed, saidAt } from "../parts/form.js";
import { secret } from "../parts/secret.js";
import { effectWord } from "../words.js";
import { toolList } from "./tools.js";

const MODES = [["full", "full: every tool with its schema"], ["proxy", "proxy: a stripped list"], ["gateway", "gateway: three meta-tools"]];
const ONCE = "Only its hash is kept here.";

const sees = (agent) => (agent.namespaces ? agent.namespaces.join(", ") : "every source");
const seen = (agent) => Math.max(agent.last_called ?? 0, agent.signed_in?.last_seen ?? 0);
const lately = (agent) => (seen(agent) ? `seen ${ago(seen(agent))}` : "not seen yet");

const origin = ({ signed_in: by, made_here: here, created_at: at }) => {
	if (by) return `signed in with ${by.client} ${moment(by.since)}, for ${by.person}, until ${moment(by.expires_at)}`;
	return here ? `made here, ${moment(at)}` : "in the configuration files";
};

const row = (agent) =>
	twoLines(
		agent.name,
		many(agent.tools, "tool"),
		agent.signed_in ? `${agent.signed_in.client}, for ${agent.signed_in.person}` : `sees ${sees(agent)}`,
		lately(agent),
	);

const facts = (agent) =>
	h(
		"dl.facts",
		field("sees", sees(agent)),
		field("how they are listed", MODES.find(([name]) => name === agent.mode)?.[1] ?? agent.mode),
		field("calls a minute", agent.calls_per_minute || "no limit"),
		field("questions open at a time", agent.max_pending || "no limit"),
		field("token", origin(agent)),
		field("last seen", seen(agent) ? since(seen(agent)) : "not since the gateway started"),
	);

function tally(tools) {
	const counted = (effect) => tools.filter((tool) => tool.effect === effect).length;
	const found = ["allow", "ask", "depends", "deny"].map((effect) => [effect, counted(effect)]).filter(([, number]) => number);
	return h("p.tallies", found.map(([effect, number]) => h("span", h("strong", number), " ", effectWord(effect))));
}

export function agents(main, [wanted], params) {
	const tools = toolList("Tools it sees");
	let token = null; // of the agent that was made last, until another is looked at
	const page = new Collection(main, {
		load: () => get("/api/agents"),
		key: ({ name }) => name,
		row,
		text: (agent) => `${agent.name} ${sees(agent)} ${agent.signed_in?.client ?? ""} ${agent.signed_in?.person ?? ""}`,
		told,
		thing: "Agent",
		none: () => empty("There is no agent", "An agent is a program that calls tools, with a token of its own.", h("a.button", { href: "#/connect" }, "Connect an agent")),
		bar: [may("operate") ? button("New agent", create) : null, button("Programs", () => operators(), { kind: "quiet" })],
		wanted,
		params,
	});

	async function told({ name }) {
		const agent = await get(`/api/agents/${segment(name)}`);
		const place = h("div", h("p.soft", "Nothing: no source it may see has tools that the rules leave to it."));
		if (agent.sees.length) boxed(place, tools, agent.sees, { most: "50vh" });
		const mine = token?.name === agent.name ? token.token : null;
		token = mine ? token : null;
		const revocable = may("operate") && (agent.made_here || agent.signed_in);
		return [
			h("h2", agent.name),
			mine && secret("Its token, shown this once", mine, `Give it to the agent as AGENT_TOKEN. ${ONCE}`),
			tally(agent.sees),
			facts(agent),
			h(
				"div.buttons",
				h("a.button", { href: `#/calls?agent=${segment(agent.name)}` }, "See its calls"),
				revocable && button(agent.signed_in ? "Revoke its sign-in" : "Revoke its token", () => revoke(agent.name)),
			),
			h("h3", `It sees ${many(agent.sees.length, "tool")}`),
			place,
		];
	}

	async function revoke(name) {
		if (!(await sure(`Revoke the token of ${name}?`, "It is refused from now on.", "Revoke"))) return;
		await remove(`/api/agents/${segment(name)}`);
		say(`Revoked ${name}`);
		await page.load();
	}

	function create() {
		const name = input("Name", { required: true, placeholder: "such as kitchen-pi" });
		const spaces = input("Sources it sees", { placeholder: "all; or names with commas between" });
		let mode = "full";
		const make = saidAt(name, async () => {
			const namespaces = listed(spaces.value());
			token = await post("/api/agents", { name: name.value(), mode, namespaces: namespaces.length ? namespaces : null });
			page.wanted = token.name;
			await page.load();
		});
		page.instead(
			h("h2", "A new agent"),
			name.row,
			h("label.block", h("span", "What /mcp shows it"), chosen(MODES, mode, (value) => (mode = value), "Mode")),
			spaces.row,
			h("div.buttons", button("Make the agent", make, { kind: "strong" })),
		);
		name.node.focus();
	}

	async function operators(made) {
		drawOperators(await get("/api/operators"), made);
	}

	function operatorRow({ name, person, created_at: at }) {
		const revoke = async () => {
			if (!(await sure(`Revoke the token of ${name}?`, "The program is refused from now on.", "Revoke"))) return;
			await remove(`/api/operators/${segment(name)}`);
			await operators();
		};
		const cells = [h("code", name), `answers as ${person}`, moment(at), may("operate") ? button("Revoke", revoke) : null];
		return h("tr", cells.map((cell) => h("td", cell)));
	}

	function drawOperators(found, made) {
		const name = input("Name of the program", { placeholder: "such as backup-script" });
		const make = saidAt(name, async () => operators(await post("/api/operators", { name: name.value() })));
		page.instead(
			h("h2", "Programs that operate this gateway"),
			h("p.soft", "They send Authorization: Bearer TOKEN to the admin API; an agent's token never opens it."),
			made && secret("The token, shown this once", made.token, ONCE),
			found.length ? h("table", h("tbody", found.map(operatorRow))) : h("p", "No program has an operator token."),
			may("operate") && [name.row, h("div.buttons", button("Make a token", make))],
		);
	}

	return together(page.close, () => tools.close());
}
