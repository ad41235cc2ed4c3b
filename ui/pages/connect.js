// Connect an agent: how each client reaches this gateway, step by step.
import { get, post, segment } from "../api.js";
import { button, copyButton, empty, h, show } from "../dom.js";
import { ago, shell } from "../format.js";
import { every, together, twoLines } from "../layout.js";
import { may } from "../me.js";
import { Collection } from "../parts/collection.js";
import { input, saidAt } from "../parts/form.js";
import { icon } from "../parts/icon.js";
import { secret } from "../parts/secret.js";

const lines = (entry) => JSON.stringify({ "agent-gate": entry }, null, 2);
const loopback = () => ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
const copied = (text) => h("div.copied", h("pre", text), copyButton("Copy", () => text));
const step = (title, ...content) => h("li", h("h3", title), ...content);

const plain = ({ url, endpoint, fingerprint }) => [
	{ name: "mcp", title: "Anything that speaks MCP", says: "an address and a token", text: endpoint, note: "Streamable HTTP; send Authorization: Bearer with the token. Anything with HTTP: /openapi.json there." },
	{
		name: "shell",
		title: "A shell",
		says: "scripts that call tools",
		text: `${shell(["export", `AGENT_GATE_URL=${url}`])}\nagent-gate tools${fingerprint ? ` --fingerprint ${fingerprint}` : ""}`,
		note: "Scripts call tools with agent-gate request.",
	},
];

const row = (client) =>
	twoLines(client.title, "", client.says ?? `agent-gate connect ${client.name}`);

function token(name) {
	if (!may("operate")) return h("p", "Ask an operator for a token, and put it where the client runs, as AGENT_TOKEN.");
	const place = h("div");
	const make = saidAt(name, async () => {
		const made = await post("/api/agents", { name: name.value() });
		show(place, secret("For where the client runs, shown this once", `export AGENT_TOKEN=${made.token}`, "Only its hash is kept here."));
	});
	return [h("p", "Each agent has a token of its own, so that you see who asked."), name.row, h("div.buttons", button("Make the agent", make)), place];
}

function byHand({ command, entry }) {
	if (!command && !entry) return null;
	return h(
		"details",
		h("summary.soft", "or by hand, with AGENT_TOKEN set"),
		command && copied(shell(command)),
		entry && copied(lines(entry)),
	);
}

async function look(name, place) {
	const agents = await get("/api/agents").catch(() => []);
	const called = agents.find((agent) => agent.name === name)?.last_called;
	show(
		place,
		called ? h("span.word.good", icon("good"), `${name} called ${ago(called)}. `) : h("span.word", "No call of it yet; this changes by itself. "),
		h("a", { href: name ? `#/calls?agent=${segment(name)}` : "#/calls" }, "See the calls"),
	);
}

export function connect(main, [wanted], params) {
	let watch = () => {};
	const page = new Collection(main, {
		load: async () => {
			const { gateway, clients } = await get("/api/clients");
			return clients.length ? [...clients, ...plain(gateway)] : [];
		},
		key: ({ name }) => name,
		row,
		text: ({ title, name }) => `${title} ${name}`,
		told,
		thing: "Client",
		none: () => empty("No client is known", "Any program that speaks MCP reaches the gateway at /mcp, with a token of its own.", h("a.button", { href: "#/agents" }, "See the agents")),
		wanted,
		params,
	});

	function told(client) {
		watch = () => {};
		const { title, text, note, here, elsewhere } = client;
		const name = input("Name of the agent", { value: here ? client.name : "", placeholder: "such as kitchen-pi" });
		const place = h("p", { role: "status" });
		watch = () => look(name.value(), place);
		watch();
		const own = here && loopback();
		const command = text ?? shell(own ? here : elsewhere);
		return [
			h("h2", title),
			h(
				"ol.steps",
				own ? null : step("Give it a token", token(name)),
				step(
					own ? "Run this on this machine" : "Run this where it runs",
					copied(command),
					own && h("p.soft", "It becomes an agent of its own, so that you see who asked."),
					byHand(client),
					note && h("p.soft", note),
				),
				step("See that it works", h("p", "Let it use a tool. Its call, or the question about it, appears at once."), place),
			),
		];
	}

	return together(every(3000, () => watch()), () => page.close());
}
