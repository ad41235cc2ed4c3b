// What a yes to a sign-in needs: the browser's number, and what it may narrow.
import { h } from "../dom.js";
import { input, listed } from "./form.js";

const MODES = ["full", "proxy", "gateway"];

export function consent(approval) {
	if (!approval.wants_number) return null;
	const asked = approval.arguments;
	const field = (name, label, props) => input(label, { "data-consent": name, ...props });
	const number = field("number", "Number that the browser shows", { inputMode: "numeric", maxLength: 2, required: true });
	const agent = field("agent", "Agent's name", { placeholder: `${asked.client}/your name` });
	const spaces = field("namespaces", "Sources it sees", { value: (asked.namespaces ?? []).join(", "), placeholder: "all; or names with commas between" });
	const days = field("days", "For how many days", { type: "number", min: 1, max: asked.days, value: asked.days });
	const mode = h("select", { "data-consent": "mode" }, MODES.map((name) => h("option", { value: name, selected: name === asked.mode }, name)));
	const node = h("div.consent", number.row, agent.row, spaces.row, h("label.block", h("span", "What /mcp shows it"), mode), days.row);
	const said = () => {
		const namespaces = listed(spaces.value());
		const terms = { mode: mode.value, days: Number(days.value()) };
		if (agent.value()) terms.agent = agent.value();
		if (namespaces.length) terms.namespaces = namespaces;
		return { number: number.value(), terms };
	};
	return { node, said };
}
