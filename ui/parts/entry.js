// An entry of the files: a form, then the difference.
import { segment } from "../api.js";
import { button, h, live } from "../dom.js";
import { chosen } from "../layout.js";
import { preview } from "./diff.js";
import { opened } from "./dialog.js";
import { input } from "./form.js";
import { keepSecret } from "./vault.js";

const KINDS = [
	["servers", "MCP server"],
	["services", "HTTP service, with its tools in a file"],
];

export const entryPath = ({ kind, key }) => `/api/entries/${segment(kind)}/${segment(key)}`;

const words = (text) => (text.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replace(/^"|"$/g, ""));

// A form for a new entry, or for one that is there; a token goes into the vault, and the file only names it.
export function editEntry(one, again) {
	const { entry = {} } = one ?? {};
	let kind = one?.kind ?? "servers";
	const name = input("Name", { value: one?.key ?? "", required: true, disabled: Boolean(one), placeholder: "such as notes" });
	const url = input("Address", { value: entry.url ?? "", placeholder: "https://… (or a command below)" });
	const command = input("Command", { value: [entry.command, ...(entry.args ?? [])].filter(Boolean).join(" "), placeholder: "a program on the gateway's machine" });
	const tools = input("File of its tools", { value: entry.tools ?? "", placeholder: "tools.yaml" });
	const token = input("Token, kept in the vault", { type: "password", placeholder: "none" });
	const place = live();

	const fields = () => {
		const set = {};
		if (url.value() && url.value() !== entry.url) set.url = url.value();
		if (tools.value() && kind === "services" && tools.value() !== entry.tools) set.tools = tools.value();
		const [program, ...args] = words(command.node.value);
		if (program && kind !== "services" && program !== entry.command) set.command = program;
		if (program && kind !== "services" && JSON.stringify(args) !== JSON.stringify(entry.args ?? [])) set.args = args;
		return set;
	};
	const next = async () => {
		const key = name.value();
		name.wrong.textContent = /^[\w-]+$/.test(key) ? "" : "A name of letters, digits, - and _";
		const set = fields();
		const none = !one && !set.url && !set.command;
		url.wrong.textContent = none ? "Give it an address or a command" : "";
		if (name.wrong.textContent || none) return;
		if (token.node.value) {
			await keepSecret(key, token.node.value);
			set.auth = { type: "bearer", token: `vault:${key}` };
		}
		const known = token.node.value ? { [key]: token.node.value } : undefined;
		const done = () => {
			dialog.close();
			again(key);
		};
		await preview(place, entryPath({ kind, key }), { set, known }, done);
		form.hidden = true;
	};
	const form = h(
		"div",
		one ? null : h("label.block", h("span", "Kind"), chosen(KINDS, kind, (value) => (kind = value), "Kind")),
		[name, url, command, tools, token].map(({ row }) => row),
		h("div.buttons", button("See the change", next, { kind: "strong" }), button("Not now", () => dialog.close())),
	);
	const dialog = opened(one ? `Change ${one.key}` : "Add a source", form, place);
}
