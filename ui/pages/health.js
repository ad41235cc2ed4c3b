// Health: how much, how fast, what failed and why, who used it, and whether the record is whole.
import { blob, get, query } from "../api.js";
import { button, empty, h, live, show } from "../dom.js";
import { count, many, moment, save, span } from "../format.js";
import { chosen, every, loader } from "../layout.js";
import { bars, lines, tick } from "../parts/chart.js";

const MOST_SOURCES = 200;
const MOST_PROBLEMS = 100;
const RANGES = { hour: "Last hour", day: "Day", week: "Week", month: "30 days" };
const SEALED =
	"Every row carries a fingerprint of the row before it: whoever changes or takes away one breaks all that follow. Now and then the last one is sealed with a key kept elsewhere, so nobody can cut off the end or write all anew.";

const tile = (value, says) => h("div.tile", h("b", value), h("span", says));
const calls = (number, says, state, range) =>
	number ? h(state === "failed" ? "a.tile.bad" : "a.tile", { href: `#/calls${query({ state, range: range === "hour" ? "1h" : "" })}` }, h("b", count(number)), h("span", says)) : tile(0, says);
// Rows of values below their heads, # before that of a number; where a row is not one line, each value has its head at it.
const table = (heads, rows) => {
	const named = heads.map((head) => [head.startsWith("#") ? ".number" : "", head.replace("#", "")]);
	const cell = (value, at) => h(`td${named[at][0]}`, { "data-head": named[at][1] }, value);
	return h("table", h("thead", h("tr", named.map(([kind, name]) => h(`th${kind}`, name)))), h("tbody", rows.map((row) => h("tr", row.map(cell)))));
};

const tiles = (totals, range) =>
	h(
		"div.tiles",
		tile(count(totals.calls), "calls ran"),
		calls(totals.failed, "failed", "failed", range),
		calls(totals.refused, "refused", "refused", range),
		tile(span(totals.p50), "half took less"),
		tile(span(totals.p95), "95 % took less"),
		tile(span(totals.waits ? totals.waited / totals.waits : null), `until people answered (${count(totals.waits)})`),
	);

function charts({ points, every: step }) {
	const all = (point) => point.calls + point.refused;
	const bad = (point) => point.failed + point.refused;
	const mean = (point) => (point.waits ? point.waited / point.waits : null);
	const card = (title, draw, series, shown, says, ...legend) =>
		h(
			"div.card",
			h("header", h("strong", title), h("span.legend", legend.map((part) => h("span", part)))),
			draw(points, series, { label: title, shown, every: step, says: (point) => `${moment(point.at)}: ${says(point)}` }),
		);
	const times = [[(point) => point.p50, "ink"], [(point) => point.p95, "soft"]];
	const quick = (point) => `half within ${span(point.p50)}, 95 % within ${span(point.p95)}`;
	return [
		card(`Calls in ${span(step)}`, bars, [[all, ""], [bad, "fail"]], count, (point) => `${many(all(point), "call")}, ${bad(point)} failed or refused`, "red: failed or refused"),
		card("The machine's time per call", lines, times, span, quick, "solid: half took less", "dashed: 95 % took less"),
		card("Waiting for people", bars, [[mean, "wait"]], span, (point) => `${many(point.waits, "answer")}, after ${span(mean(point))}`, points.some(mean) ? "mean time to an answer" : "no question was answered"),
	];
}

function reasonTable(reasons) {
	if (!reasons.length) return null;
	const row = ({ code, says, count: number }) => [h("a", { href: `#/calls${query({ text: code })}` }, says), h("code", code), count(number)];
	return table(["reason", "code", "#calls"], reasons.map(row));
}

function agentTable({ agents, slot, from }) {
	if (!agents.length) return null;
	const row = (one) => {
		const use = one.use.map((calls, at) => ({ calls, at: from + at * slot }));
		const says = ({ calls, at }) => `${tick(at, slot * use.length)}: ${many(calls, "call")}`;
		const chart = bars(use, [[({ calls }) => calls, ""]], { label: `Use by ${one.agent}`, says });
		return [h("a", { href: `#/calls?agent=${encodeURIComponent(one.agent)}` }, h("code", one.agent)), count(one.calls), count(one.failed), count(one.refused), chart];
	};
	return table(["agent", "#calls", "#failed", "#refused", `calls per ${slot < 86_400 ? span(slot) : "day"}`], agents.map(row));
}

function sourceTable(sources) {
	if (!sources.length) return null;
	return table(["source", "#calls", "#mean time"], sources.slice(0, MOST_SOURCES).map((one) => [h("code", one.source), count(one.calls), span(one.mean)]));
}

const WELL = { serving: "good", draining: "wait" };

// Only where several share the store; one alone is what the rest of this page is about.
function gatewayTable(all, shares) {
	const heads = ["gateway", "state", "version", "#running", "#calls", "#failed", "sources", "#hears after", "does alone"];
	const sources = (one) => Object.entries(one.sources).map(([state, some]) => `${some} ${state}`);
	const row = (one) => [
		[h("code", one.id), one.this && " (this one)"],
		[h(`span.word.${WELL[one.state] ?? "fail"}`, one.state), !one.alive && ` for ${span(one.silent)}`],
		one.version,
		count(one.running),
		count(shares[one.id]?.calls ?? 0),
		count(shares[one.id]?.failed ?? 0),
		sources(one).join(", "),
		span(one.lag),
		one.holds.join(", "),
	];
	return [h("h2", "Gateways"), table(heads, all.map(row))];
}

function verified(report) {
	const verdict = report.ok
		? h("span.word.good", "Nothing was changed, removed or cut off.")
		: h("span.word.fail", many(report.problems.length, "problem"));
	const sizes = ` ${many(report.rows, "row")}, ${many(report.seals, "seal")}, ${many(report.unsealed, "row")} not sealed yet.`;
	const problem = (one) => h("p", h("code", `${one.chain} ${one.seq}`), ` ${one.text}`);
	return [h("p", verdict, sizes), report.problems.slice(0, MOST_PROBLEMS).map(problem)];
}

function recordTools() {
	const result = live();
	const verify = async () => {
		show(result, h("p.soft", "Walking the whole chain…"));
		show(result, verified(await get("/api/audit/verify")));
	};
	const exports_ = ["jsonl", "csv"].map((kind) => button(`Export ${kind}`, async () => save(`record.${kind}`, await blob(`/api/audit/export?format=${kind}`)), { kind: "quiet" }));
	return [h("p.soft", SEALED), h("div.buttons", button("Verify the record", verify), exports_), result];
}

export function health(main, _, params) {
	let range = RANGES[params.get("range")] ? params.get("range") : "hour";
	let gateway = params.get("gateway") ?? "";
	const [numbers, why, drawn, who, slow] = Array.from({ length: 5 }, () => h("section"));
	const fellows = h("section", { hidden: true });
	const bar = h("div.tabs");
	show(main, h("section", bar, numbers), why, drawn, fellows, who, slow, h("section", h("h2", "The record"), recordTools()));
	const fill = (place, title, content) => {
		place.hidden = !content;
		show(place, title ? h("h2", title) : null, content);
	};
	const turn = (change) => {
		({ range = range, gateway = gateway } = change);
		history.replaceState(null, "", `#/health${query({ range: range === "hour" ? "" : range, gateway })}`);
		load();
	};
	// Drawn anew only when it says something else: a button must stay where it is while it is pressed.
	const drawBar = (ids) => {
		const says = JSON.stringify([range, gateway, ids]);
		if (bar.dataset.says === says) return;
		bar.dataset.says = says;
		const tab = ([name, title]) => button(title, () => turn({ range: name }), { "aria-pressed": String(name === range) });
		const owners = [["", "all gateways"], ...ids.map((id) => [id, id])];
		show(bar, Object.entries(RANGES).map(tab), ids.length > 1 ? chosen(owners, gateway, (id) => turn({ gateway: id }), "Gateway") : null);
	};
	const load = loader(numbers, () => Promise.all([get(`/api/trends${query({ range, gateway })}`), get("/api/gateways").catch(() => [])]), ([trends, gateways]) => {
		drawBar(gateways.map(({ id }) => id));
		const { totals } = trends;
		const nothing = !totals.calls && !totals.refused && !totals.waits;
		show(numbers, nothing ? empty("Nothing was measured yet", "The first call shows here at once.", h("a.button", { href: "#/connect" }, "Connect an agent")) : tiles(totals, range));
		fill(why, "What failed, by reason", reasonTable(trends.reasons));
		fill(drawn, "", nothing ? null : charts(trends));
		fill(who, "Agents", agentTable(trends));
		fill(slow, "Sources, since the gateway started", sourceTable(trends.sources));
		fellows.hidden = gateways.length < 2;
		show(fellows, gatewayTable(gateways, trends.gateways));
	});
	load();
	return every(10_000, load);
}
