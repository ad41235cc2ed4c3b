// Calls: the record as a table, with filters in the address; each call with its story and result.
import { blob, get, query, segment } from "../api.js";
import { now } from "../clock.js";
import { at, button, copyButton, empty, fault, h, loading, say, show } from "../dom.js";
import { bytes, copies, moment, save, span } from "../format.js";
import { listen } from "../inbox.js";
import { keys } from "../keyboard.js";
import { chosen, field, movement, panes, together } from "../layout.js";
import { compared } from "../parts/compare.js";
import { List, listOrEmpty } from "../parts/list.js";
import { callColumns, wideCallRow } from "../parts/rows.js";
import { printed } from "../parts/stack.js";
import { waterfall } from "../parts/waterfall.js";
import { STATE_NAMES, effectWord, ending, rowWord, stateWord } from "../words.js";

const FIRST = 60; // calls, more than a window shows
const PAGE = 200;
const PATIENCE = 200; // milliseconds after the last letter before the search runs
const DAY = 86_400;
const MOST = 500; // agents or sources to choose from; the others can be typed into the address
const NAMES = ["agent", "source", "tool", "state", "range", "longer", "text", "from", "to"];
const RANGES = Object.entries({
	"": "any time",
	"15m": "the last 15 minutes",
	"1h": "the last hour",
	today: "today",
	yesterday: "yesterday",
	"7d": "the last 7 days",
	own: "from … to …",
});
const LONGER = ["0.1", "1", "10", "60"].map((long) => [long, `longer than ${span(Number(long))}`]);

const midnight = () => new Date(new Date(now() * 1000).setHours(0, 0, 0, 0)).getTime() / 1000;
const local = (text) => (text ? new Date(text).getTime() / 1000 : undefined);

function between({ range, from, to }) {
	if (range === "own") return { since: local(from), until: local(to) };
	const since = { "15m": () => now() - 900, "1h": () => now() - 3600, today: midnight, yesterday: () => midnight() - DAY, "7d": () => now() - 7 * DAY }[range];
	return { since: since?.(), until: range === "yesterday" ? midnight() : undefined };
}

const asked = (filters) => {
	const { agent: caller, source, tool, state, longer, text } = filters;
	return { by: "call", caller, source, tool, state, longer, text, ...between(filters) };
};

function recordRow(row) {
	const body = h("details", h("summary", `row ${row.seq} of ${row.chain}`), h("pre", JSON.stringify(row.body, null, 2)));
	return h("tr", h("td", moment(row.at)), h("td", rowWord(row.state)), h("td", body));
}

const only = (name, value, ...shown) => h("a", { href: `#/calls?${name}=${segment(value)}`, title: `only this ${name}` }, ...shown);

const facts = (story) =>
	h(
		"dl.facts",
		field("agent", only("agent", story.caller, h("code", story.caller)), story.surface ? ` over ${story.surface}` : ""),
		field("decision", story.decision === "ask" ? rowWord("pending") : story.decision ? effectWord(story.decision) : "refused before a decision", story.granted ? ", by an answer that is remembered" : ""),
		story.rule && field("rule", story.rule, at(story.where)),
		story.answer && field("answer", ending(story.answer.state, story.answer), `, ${moment(story.answer.at)}`),
		story.answer?.reason && field("reason given", story.answer.reason),
		field("tool", only("tool", story.tool, h("code", { title: story.tool_id }, story.tool || "unknown"))),
		field("began", moment(story.at)),
		field("call", h("code", story.call)),
	);

const pretty = (text) => {
	try {
		return JSON.stringify(JSON.parse(text), null, 2);
	} catch {
		return text;
	}
};

function spoken(text) {
	try {
		const { content } = JSON.parse(text);
		const words = content.filter((part) => part.type === "text").map((part) => part.text);
		return words.length === content.length && words.length ? words.join("\n") : null;
	} catch {
		return null;
	}
}

function result(story) {
	const size = story.size === null ? "none" : bytes(story.size);
	if (story.result) {
		const { text, cut, kept_until: until } = story.result;
		const beginning = cut ? ", its beginning" : "";
		return [h("p.meta", `${size}${beginning}, masked, kept until ${moment(until)}`), printed(pretty(spoken(text) ?? text))];
	}
	if (story.size === null) return h("p.soft", "It gave no result.");
	const kept = { none: "none is kept", failed: "only those of calls that failed are kept", all: "it was made before they were kept, or its time is over" };
	return h("p.soft", `${size}. It is not kept: ${kept[story.keep] ?? kept.none} (`, h("code", "results.keep"), " in config.yaml).");
}

function told(story, url, compare) {
	const measured = story.seconds !== null && story.spans.length > 0;
	const took = measured ? `Where the time went: ${span(story.seconds)} in all` : "Where the time goes";
	const forms = Object.entries(copies(story.tool, story.arguments, url));
	return [
		h("h2", story.tool, " ", stateWord(story.state)),
		h("p.signature", story.signature),
		story.error && [h("p.because", story.says || "It did not go well", " ", h("code.soft", story.error.code)), printed(story.error.message)],
		h("h3", "Arguments"),
		h("pre", JSON.stringify(story.arguments, null, 2)),
		h("h3", "What it got back"),
		result(story),
		h("h3", took),
		waterfall(story.spans),
		h("h3", "What was decided"),
		facts(story),
		h("div.buttons", button("Compare with another call…", compare), forms.map(([name, text]) => copyButton(`Copy as ${name}`, () => text))),
		h("h3", "On the record"),
		h("table", h("tbody", story.rows.map(recordRow))),
	];
}

class Calls {
	constructor(main, wanted, params) {
		const given = Object.fromEntries(NAMES.map((name) => [name, params.get(name) ?? ""]));
		Object.assign(this, { main, filters: given, open_: wanted, beside: params.get("with"), url: "" });
		Object.assign(this, { found: new Map(), next: null, loading: false, round: 0, pinned: null });
		this.load();
		this.nothing = h("div", loading());
		this.list = new List({
			row: wideCallRow,
			key: (call) => call.call,
			onSelect: (call) => this.open(call),
			onEnd: () => this.more(),
			label: "Calls",
			height: "--call-row",
		});
		this.list.node.hidden = true;
		this.further = h("div.further", { role: "status" });
		const head = h("div", this.bar(), this.further, callColumns());
		this.view = panes(main, { bar: head, list: this.list.node, nothing: this.nothing });
		keys({
			...movement(this.list, "call"),
			Escape: { does: () => this.shut(), says: "close the call" },
		});
		get("/api/status").then((status) => (this.url = status.url), () => {});
		if (wanted) this.open({ call: wanted });
	}

	bar() {
		const { filters } = this;
		const given = (name, options, label) => chosen(options, filters[name], (value) => this.change({ [name]: value }), label);
		const text = (name, props) =>
			h("input", { value: filters[name], oninput: ({ target }) => this.change({ [name]: target.value.trim() }), ...props });
		const from = (name, path, key, any) => {
			const place = h("span");
			const put = (values) => show(place, given(name, [["", any], ...values.slice(0, MOST).map((one) => [one, one])], `${name[0].toUpperCase()}${name.slice(1)}`));
			put(filters[name] ? [filters[name]] : []);
			get(path).then((found) => put(found.map((one) => one[key])), () => {});
			return place;
		};
		this.own = h(
			"span.own",
			text("from", { type: "datetime-local", "aria-label": "From" }),
			text("to", { type: "datetime-local", "aria-label": "To" }),
		);
		this.own.hidden = filters.range !== "own";
		const rare = [
			from("agent", "/api/agents", "name", "every agent"),
			from("source", "/api/sources", "key", "every source"),
			text("tool", { type: "text", placeholder: "tool", "aria-label": "Tool", size: 12 }),
			given("state", [["", "every state"], ...STATE_NAMES], "State"),
			given("range", RANGES, "Time"),
			this.own,
			given("longer", [["", "however long"], ...LONGER], "Took longer than"),
		];
		this.clear = button("Clear", () => (location.hash = "#/calls"), { kind: "quiet rare" });
		const acts = [
			this.clear,
			...["csv", "jsonl"].map((kind) => button(`Export ${kind}`, () => this.export(kind), { kind: "quiet rare" })),
		];
		const words = text("text", { type: "search", placeholder: "Words in arguments and errors", "aria-label": "Words" });
		this.unfold = button("", () => bar.classList.toggle("all"), { kind: "unfold" });
		this.tally();
		const bar = h("div.bar.filters", words, this.unfold, acts, h("div.buttons.rare", rare));
		return bar;
	}

	isFiltered() {
		return NAMES.some((name) => this.filters[name]);
	}

	tally() {
		const number = NAMES.filter((name) => this.filters[name]).length;
		this.clear.hidden = !number;
		this.unfold.textContent = number ? `Filters (${number})` : "Filters";
	}

	remember() {
		const given = query({ ...this.filters, with: this.beside });
		history.replaceState(null, "", `#/calls${this.open_ ? `/${segment(this.open_)}` : ""}${given}`);
	}

	change(values) {
		Object.assign(this.filters, values);
		this.own.hidden = this.filters.range !== "own";
		this.tally();
		this.remember();
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.load(), PATIENCE);
	}

	page(cursor) {
		return get(`/api/calls${query({ ...asked(this.filters), limit: cursor ? PAGE : FIRST, cursor })}`);
	}

	async export(format) {
		save(`calls.${format}`, await blob(`/api/calls/export${query({ ...asked(this.filters), format })}`));
	}

	take(page) {
		for (const call of page.calls) if (!this.found.has(call.call)) this.found.set(call.call, call);
		this.next = page.next;
		this.backTo = page.back_to;
		show(this.further, this.backTo && this.found.size ? this.goOn() : null);
	}

	goOn() {
		return [`Looked back to ${moment(this.backTo)}. `, button("Look further back", () => this.more(), { kind: "quiet" })];
	}

	draw() {
		listOrEmpty(this.list, [...this.found.values()], this.nothing);
		if (this.found.size) return;
		if (this.backTo) {
			show(this.nothing, empty("Nothing found yet", this.goOn()));
			return;
		}
		show(
			this.nothing,
			this.isFiltered()
				? empty("No call fits", "The record has no call like this. Take a filter away, or look at another time.")
				: empty("No call was made yet", "Every call an agent makes is listed here, also those that were refused.", h("a.button", { href: "#/connect" }, "Connect an agent")),
		);
	}

	// Only the answer to the last question counts; one that was slower is about other words.
	async load() {
		const mine = (this.round += 1);
		this.loading = true;
		try {
			const page = await this.page();
			if (mine !== this.round) return;
			this.found.clear();
			this.take(page);
			this.draw();
		} catch (error) {
			if (mine !== this.round) return;
			this.found.clear();
			this.draw();
			show(this.nothing, fault(error, () => this.load()));
		}
		this.loading = false;
	}

	async more() {
		if (!this.next || this.loading) return;
		const mine = this.round;
		this.loading = true;
		try {
			const page = await this.page(this.next);
			if (mine !== this.round) return;
			this.take(page);
			this.draw();
		} catch (error) {
			if (mine !== this.round) return;
			this.next = null;
			say(`Older calls could not be loaded: ${error.message}`, { fault: true });
		}
		this.loading = false;
	}

	async open(call) {
		if (this.pinned && this.pinned !== call.call) this.beside = this.pinned;
		this.pinned = null;
		this.open_ = this.list.selected = call.call;
		this.remember();
		this.view.turn();
		const mine = call.call;
		const read = (id) => get(`/api/calls/${segment(id)}/timeline`);
		try {
			const [story, other] = await Promise.all([read(mine), this.beside ? read(this.beside) : null]);
			if (this.open_ !== mine) return;
			if (other) this.view.fill(this.shutButton(), h("h2", "Two calls"), compared(other, story), this.alone());
			else this.view.fill(this.shutButton(), told(story, this.url, () => this.pin(mine)));
		} catch (error) {
			if (this.open_ === mine) this.view.fill(this.shutButton(), fault(error, () => this.open(call)));
		}
	}

	shutButton() {
		return button("Close", () => this.shut(), { kind: "quiet shut" });
	}

	alone() {
		const again = () => {
			this.beside = null;
			this.open({ call: this.open_ });
		};
		return h("div.buttons", button("Show only the second", again));
	}

	pin(id) {
		this.pinned = id;
		say("Choose the other call in the list");
		this.main.removeAttribute("data-open");
	}

	shut() {
		Object.assign(this, { open_: null, beside: null });
		this.list.select(null);
		this.remember();
		this.view.clear();
	}

	// New calls appear on top while somebody looks at the top, and leave the reader of old ones alone.
	happened() {
		if (this.list.node.scrollTop < 200 && this.found.size < PAGE * 2) {
			clearTimeout(this.timer);
			this.timer = setTimeout(() => this.load(), PATIENCE);
		}
	}

	close() {
		clearTimeout(this.timer);
		this.list.close();
	}
}

export function calls(main, [wanted], params) {
	const page = new Calls(main, wanted, params);
	return together(listen((kind) => (kind === "calls" || kind === "back") && page.happened()), () => page.close());
}
