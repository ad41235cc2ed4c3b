// States and effects in words, each with the colour and the icon of what it means.
import { h } from "./dom.js";
import { icon } from "./parts/icon.js";

const STATES = {
	pending: ["waits for you", "wait"],
	approved: ["approved", "good"],
	denied: ["denied", "no"],
	expired: ["nobody answered", "no"],
	withdrawn: ["withdrawn", ""],
	dispatching: ["running", ""],
	completed: ["done", "good"],
	failed: ["failed", "fail"],
	unknown: ["outcome unknown", "fail"],
	refused: ["refused", "no"],
};
const SOURCES = {
	ready: ["ready", "good"],
	connecting: ["connecting", ""],
	idle: ["idle until called", ""],
	disabled: ["disabled", ""],
	disconnected: ["disconnected", ""],
	degraded: ["has trouble", "fail"],
	failed: ["broken", "fail"],
	needs_auth: ["needs a sign-in", "wait"],
	changed: ["definition changed", "fail"],
};
const RULES = { allow: ["allow", "good"], ask: ["ask", "wait"], deny: ["deny", "fail"], depends: ["depends", ""], unseen: ["not seen", ""] };
const EFFECTS = { ...RULES, allow: ["allowed", "good"], ask: ["a person is asked", "wait"], deny: ["denied", "fail"], depends: ["depends on the arguments", ""] };
const RISKS = {
	destructive: ["destructive", "It may destroy something"],
	outward: ["reaches outside", "It reaches beyond its source"],
	first: ["first time", "This agent was never let do this before"],
	unusual: ["unusual arguments", "This agent never called it with such arguments"],
};

export const COVERED = { once: "once", session: "for this session", hour: "for one hour", always: "always for these arguments" };

export function ending(state, { by, channel, lifetime }) {
	const covered = state === "approved" ? ` ${COVERED[lifetime] ?? lifetime}` : "";
	return [stateWord(state), covered, ["approved", "denied"].includes(state) ? ` by ${by} on ${channel}` : ""];
}

export const word = (table) => (name) => {
	const [text, kind] = table[name] ?? [name, ""];
	return h(`span.word${kind ? `.${kind}` : ""}`, kind ? icon(kind) : null, text);
};

const ROWS = {
	...STATES,
	pending: ["a person was asked", ""],
	dispatching: ["sent", ""],
};

export const stateWord = word(STATES);
export const rowWord = word(ROWS);
export const sourceWord = word(SOURCES);
export const effectWord = word(EFFECTS);
export const ruleWord = word(RULES);
export const STATE_NAMES = Object.entries(STATES).map(([name, [text]]) => [name, name === "pending" ? "waiting" : text]);

export const risks = (found = [], short = false) => {
	const known = Object.keys(RISKS).filter((name) => found.includes(name));
	if (!known.length) return null;
	const chip = (name, at) => h("span.chip.risk", { title: RISKS[name][1] }, icon(name), short && at ? h("span.unseen", RISKS[name][0]) : RISKS[name][0]);
	return h("span.chips", known.map(chip));
};

export const isDangerous = ({ risks: found = [] }) => found.length > 0;
export const isSevere = ({ risks: found = [] }) => found.includes("destructive") || found.includes("outward");
export const dangers = ({ risks: found = [] }) => Object.keys(RISKS).filter((name) => found.includes(name)).map((name) => `${RISKS[name][1]}.`).join(" ");
export const titleOf = ({ sentence, agent, tool }) => sentence || `Let ${agent} call ${tool}?`;
