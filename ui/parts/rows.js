// A call in a line, wherever calls are listed: a row of a table where there is room, two lines where there is not.
import { h } from "../dom.js";
import { ago, bytes, moment, span } from "../format.js";
import { stateWord } from "../words.js";
import { List } from "./list.js";

function took(call) {
	if (call.state === "refused") return call.error?.code;
	return call.seconds === null ? "" : span(call.seconds);
}

// What stands in the brackets of a signature.
const values = ({ signature, tool }) =>
	signature.startsWith(`${tool}(`) && signature.endsWith(")") ? signature.slice(tool.length + 1, -1) : "";

export function callRow(call) {
	const rest = [ago(call.at), call.caller, call.granted && "granted", call.count > 1 && `${call.count} times`];
	return h(
		"div.two",
		h("span.lead", call.signature || call.tool),
		h("span.end", stateWord(call.state)),
		h("span.rest", rest.filter(Boolean).join(" · ")),
		h("span.end", took(call)),
	);
}

export const callColumns = () =>
	h("div.call.columns", { "aria-hidden": "true" }, ["began", "agent", "tool", "arguments", "state", "took", "result"].map((name) => h("span", name)));

export function wideCallRow(call) {
	const many = call.count > 1 ? ` × ${call.count}` : "";
	return h(
		"div.call",
		h("span.when", { title: moment(call.at) }, moment(call.at)),
		h("span.who", call.caller),
		h("span.tool", call.tool, many),
		h("span.values", values(call)),
		h("span.state_", stateWord(call.state)),
		h("span.took", took(call)),
		h("span.size", call.size === null || call.size === undefined ? "" : bytes(call.size)),
	);
}

// A list of calls from which a press leads to the call's own story.
export function callList(label) {
	const onSelect = (call, byHand) => byHand && (location.hash = `#/calls/${call.call}`);
	return new List({ row: callRow, key: (call) => call.call, label, onSelect });
}
