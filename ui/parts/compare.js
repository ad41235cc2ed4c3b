// Two calls side by side: what differs stands out, what is the same recedes.
import { h } from "../dom.js";
import { bytes, moment, span } from "../format.js";
import { stateWord } from "../words.js";

const text = (value) => (value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value, null, 2));

function fields(call) {
	return {
		tool: call.tool,
		agent: call.caller,
		began: moment(call.at),
		state: call.state,
		took: span(call.seconds),
		decision: [call.decision, call.rule, call.where].filter(Boolean).join(" · "),
		error: call.error ? `${call.error.code}: ${call.error.message}` : "",
		"result size": call.size === null ? "" : bytes(call.size),
		...Object.fromEntries(Object.entries(call.arguments).map(([name, value]) => [`argument ${name}`, text(value)])),
		result: call.result?.text ?? "",
	};
}

export function compared(one, other) {
	const [left, right] = [fields(one), fields(other)];
	const names = [...new Set([...Object.keys(left), ...Object.keys(right)])];
	const cell = (name, value) => h("td", name === "state" && value ? stateWord(value) : h("pre.bare", value ?? ""));
	const row = (name) =>
		h(left[name] === right[name] ? "tr.same" : "tr.differs", h("th", { scope: "row" }, name), cell(name, left[name]), cell(name, right[name]));
	const link = (call) => h("th", { scope: "col" }, h("a", { href: `#/calls/${call.call}` }, h("code", call.call.slice(-6))));
	return h("table.compare", h("thead", h("tr", h("td"), link(one), link(other))), h("tbody", names.map(row)));
}
