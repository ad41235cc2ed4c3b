// Policy: the rules with what is wrong with them, why a call would be decided so, and what a changed file would have
// decided.
import { get, post, segment } from "../api.js";
import { now } from "../clock.js";
import { at, button, empty, h, live, show } from "../dom.js";
import { many, place } from "../format.js";
import { boxed, chosen, field, jsonOf, loader, twoLines } from "../layout.js";
import { may } from "../me.js";
import { openChange, preview } from "../parts/diff.js";
import { input, jsonArea, saidAt } from "../parts/form.js";
import { List } from "../parts/list.js";
import { RULES } from "../parts/rulemaker.js";
import { effectWord, ruleWord } from "../words.js";
import { sample } from "./tools.js";

const ORDER = "looked at in this order: every deny, every allow, every ask, then the defaults.";
const SINCE = [["1", "the last day"], ["7", "the last week"], ["28", "the last four weeks"]];
const DAY = 86_400;
const MOST = 500;

const ruleRow = (rule) =>
	twoLines(
		[ruleWord(rule.action), " ", rule.rule.replace(/^(allow|ask|deny) /, "")],
		rule.faults.length ? h("span.chip", "never decides") : rule.default ? "default" : "",
		h("span", { title: rule.faults.join(" ") }, rule.faults[0] ?? rule.description),
		rule.line ? `line ${rule.line}` : "",
	);

function considered(one) {
	const where = h("code", { title: one.where }, place(one.where));
	const why = one.matched ? h("strong", "decides") : h("span.soft", one.why);
	return h("tr", h("td", one.matched ? h("strong", one.rule) : one.rule), h("td", where), h("td", why));
}

const explained = (said) => [
	h(
		"dl.facts",
		field("signature", h("code", said.signature)),
		said.unsaid.length ? field("not known here", `What it acts on is known only while an agent uses it. To try something, add ${said.unsaid.map((name) => `"${name}": "…"`).join(", ")} to the arguments.`) : null,
		field("decision", effectWord(said.effect)),
		field("because", said.reason || "–"),
		field("rule", said.rule || "no rule matches", at(said.where)),
	),
	h("h3", "Rules on the way"),
	h("table", h("tbody", said.considered.map(considered))),
];

function explainer() {
	const tool = input("Tool", { type: "search", "aria-label": "Tool", list: "known-tools", onchange: begin });
	const area = jsonArea("{}");
	const place = h("div");
	const known = h("datalist", { id: "known-tools" });
	const who = h("label.block", h("span", "Agent"));
	const result = live();
	let caller;
	let begun = "{}";

	async function begin() {
		const name = tool.value();
		const found = await get(`/api/tools/${segment(name)}`).catch(() => null);
		if (!found || area.node.value !== begun) return;
		area.node.value = begun = JSON.stringify(sample(found.input_schema), null, 2);
	}

	const offer = ({ tools }) =>
		show(known, tools.slice(0, MOST).map(({ name }) => h("option", { value: name })));
	get("/api/tools?brief=1").then(offer, () => {});
	get("/api/agents").then(
		(agents) => {
			if (!agents.length) show(place, h("p.soft", "There is no agent yet whose calls could be decided."));
			caller = agents[0]?.name;
			const names = agents.slice(0, MOST).map(({ name }) => [name, name]);
			who.append(chosen(names, caller, (name) => (caller = name), "Agent"));
		},
		() => {},
	);
	const ask = saidAt(area, async () => {
		const asked = { tool: tool.value(), arguments: jsonOf(area.node), caller };
		await saidAt(tool, async () => show(result, explained(await post("/api/explain", asked))))();
	});
	return show(
		place,
		tool.row,
		who,
		area.row,
		known,
		h("div.buttons", button("Explain", ask, { kind: "strong" })),
		result,
	);
}

const different = (one) =>
	h(
		"tr",
		h("td", h("code", one.signature), h("div.soft", one.caller)),
		h("td", effectWord(one.before), " → ", effectWord(one.after)),
		h("td", one.rule || "no rule matches", at(one.where)),
		h("td.number", many(one.count, "call")),
	);

function simulated(report) {
	const { differences } = report;
	const rest = differences.length ? `${many(report.same, "is", "are")} decided as before.` : "all decided as before.";
	const table = differences.length ? h("table", h("tbody", differences.slice(0, MOST).map(different))) : null;
	const newest = report.more ? " Only the newest were tried; the record has more." : "";
	return [h("p", `${many(report.tried, "call")} tried, ${rest}${newest}`), table];
}

function simulator(text) {
	let days = "7";
	const area = h("textarea.tall", { spellcheck: false, "aria-label": "Changed rules", value: text });
	const result = live();
	const run = async () => {
		const since = now() - Number(days) * DAY;
		show(result, simulated(await post("/api/policy/simulate", { text: area.value, since })));
	};
	return [
		h("p.soft", "This is the file. Change it here and see which calls of the past would have ended otherwise. Nothing is saved."),
		area,
		h("div.buttons", button("Try on recorded calls", run, { kind: "strong" }), chosen(SINCE, days, (value) => (days = value), "Since")),
		result,
	];
}

function idea(one, again) {
	const place = live();
	const look = () => preview(place, RULES, { rule: one.rule }, again);
	return h("div.card", h("p", one.text), h("pre", JSON.stringify(one.rule)), may("operate") && h("div.buttons", button("Apply…", look)), place);
}

function tally({ rules, file }) {
	if (!rules.length) return "";
	const faulty = rules.filter((rule) => rule.faults.length).length;
	const say = faulty ? `${many(faulty, "rule")} can never decide.` : "Each can decide something.";
	return [many(rules.length, "rule"), file ? [" in ", h("code", { title: file }, place(file))] : "", `, ${ORDER} ${say}`];
}

export function policy(main, [wanted]) {
	const [rules, trial, summary, ideas] = [h("div"), h("div"), h("p.soft"), h("section", { hidden: true })];
	const whole = h("div.card.rule", { "aria-live": "polite" });
	const take = (rule) => openChange("Remove a rule", RULES, { remove: rule.where }, again);
	const onSelect = (rule) =>
		show(
			whole,
			h("p.signature", rule.rule),
			[rule.description, ...rule.faults].map((text) => h("p", text)),
			h("p.soft", "It stands", at(rule.where), ". To change it, edit that line."),
			may("operate") && rule.line && !rule.default && h("div.buttons", button("Remove…", () => take(rule))),
		);
	const key = (rule) => `${rule.where} ${rule.rule}`;
	const list = new List({ row: ruleRow, key, label: "Rules", onSelect });
	const again = () => {
		wanted = "";
		show(whole);
		return Promise.all([load(), loadIdeas()]);
	};
	show(
		main,
		h(
			"div.beside",
			h("div", h("section", h("h2", "Rules"), summary, rules, whole), ideas),
			h(
				"div",
				h("section", h("h2", "What would happen to a call?"), explainer()),
				h("section", h("h2", "What would other rules have changed?"), trial),
			),
		),
	);
	const advice = "Every call is asked. Make one from a question (Do not ask again…), or write some into permissions.yaml; docs/permissions.md shows how.";

	const load = loader(rules, "/api/policy", (found) => {
		show(summary, tally(found));
		if (found.rules.length) boxed(rules, list, found.rules, { most: "48vh" });
		else show(rules, empty("There are no rules", advice));
		const linked = found.rules.findIndex(({ where }) => place(where) === wanted);
		if (linked >= 0) {
			list.reveal(linked);
			list.select(key(found.rules[linked]));
		}
		if (!trial.childElementCount) show(trial, simulator(found.text));
	});

	const loadIdeas = () =>
		get("/api/policy/suggest").then(
			({ suggestions }) => {
				ideas.hidden = !suggestions.length;
				show(ideas, h("h2", "Your answers suggest"), suggestions.slice(0, 20).map((one) => idea(one, again)));
			},
			() => {},
		);
	load().then(loadIdeas);
	return () => list.close();
}
