// A call in a line, or in two where there is no room.
import { h } from "../dom.js";
import { ago, bytes, moment, shortly, span } from "../format.js";
import { twoLines } from "../layout.js";
import { stateWord } from "../words.js";
import { List } from "./list.js";

const took = ({ state, seconds }) => (state === "refused" || seconds === null ? "" : span(seconds));

export const valuesOf = ({ tool }, signature) =>
	signature.startsWith(`${tool}(`) && signature.endsWith(")") ? signature.slice(tool.length + 1, -1) : signature;

export function callRow(call) {
	const rest = [ago(call.at), call.caller, call.granted && "granted", call.count > 1 && `${call.count} times`];
	return twoLines(call.signature || call.tool, stateWord(call.state), rest.filter(Boolean).join(" · "), took(call));
}

export const callColumns = () =>
	h("div.call.columns", { "aria-hidden": "true" }, ["began", "agent", "tool", "arguments", "state", "took", "result"].map((name) => h("span", name)));

export function wideCallRow(call) {
	const many = call.count > 1 ? ` × ${call.count}` : "";
	return h(
		"div.call",
		h("span.when", { title: moment(call.at) }, shortly(call.at)),
		h("span.who", call.caller),
		h("span.tool", call.tool, many),
		h("span.values", valuesOf(call, call.signature)),
		h("span.state_", stateWord(call.state)),
		h("span.took", took(call)),
		h("span.size", call.size === null || call.size === undefined ? "" : bytes(call.size)),
	);
}

export function callList(label) {
	const onSelect = (call, byHand) => byHand && (location.hash = `#/calls/${call.call}`);
	return new List({ row: callRow, key: (call) => call.call, label, onSelect });
}
