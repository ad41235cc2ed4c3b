// Approvals: the inbox, its history, and remembered answers.
import { get, post, query, remove, segment } from "../api.js";
import { SETTLE, confirmMany, give, passphrase } from "../parts/answering.js";
import { act, button, empty, fault, h, loading, say, show } from "../dom.js";
import { ago, left, many, moment } from "../format.js";
import { inbox, isOver, listen, reload, waiting } from "../inbox.js";
import { keys } from "../keyboard.js";
import { every, field, isWide, movement, panes, together, twoLines } from "../layout.js";
import { may, mayOf } from "../me.js";
import { List, listOrEmpty } from "../parts/list.js";
import { isPlain } from "../parts/need.js";
import { question, timeLeft } from "../parts/question.js";
import { valuesOf } from "../parts/rows.js";
import { makeRule } from "../parts/rulemaker.js";
import { isDangerous, risks, stateWord } from "../words.js";

const PAGE = 500;
const TABS = [["inbox", "Inbox"], ["history", "History"], ["grants", "Grants"]];
const NOTHING = {
	inbox: ["No question waits for you", "When an agent wants something that needs a person, it appears here at once."],
	history: ["No question was asked yet", "Questions and their answers stay here."],
	grants: ["Nothing is remembered", "Answers given for longer than once, to be taken back."],
};

const answerable = (item) => mayOf(item, "approve") || mayOf(item, "deny");

const grantRow = (grant) =>
	twoLines(
		grant.signature,
		grant.expires_at ? left(grant.expires_at) : "until revoked",
		`${grant.caller} · by ${grant.created_by} · used ${many(grant.used, "time")}`,
	);

const grantFacts = (grant) =>
	h(
		"dl.facts",
		field("tool", h("code", grant.tool_id)),
		field("for", grant.expires_at ? left(grant.expires_at) : "until it is revoked"),
		grant.session && field("session", h("code", grant.session)),
		field("granted by", `${grant.created_by}, ${moment(grant.created_at)}`),
	);

class Approvals {
	constructor(main, wanted, params) {
		Object.assign(this, { main, wanted, tab: "inbox", needle: "", shown: null, past: [], more: false, risky: params.has("risk") });
		this.picked = new Set();
		this.nothing = h("div");
		this.all = h("input", {
			type: "checkbox",
			onchange: ({ target }) => this.pickAll(target.checked ? this.items().filter(isPlain) : []),
		});
		this.chosen = h("span");
		this.many = [button("Approve once", () => this.answerMany("approve")), button("Deny", () => this.answerMany("deny"))];
		this.bulk = h("div.buttons", h("label", this.all, this.chosen), this.many);
		this.tabs = h(
			"div.tabs",
			TABS.map(([name, title]) =>
				h("button", { type: "button", "data-tab": name, onclick: () => this.turn(name) }, title),
			),
		);
		this.list = new List({
			row: (item) => this.row(item),
			key: (item) => item.id,
			onSelect: (item, byHand) => this.open(item, byHand),
			onEnd: () => this.older(),
			label: "Approvals",
			cells: true,
		});
		const bar = h("div.bar", this.tabs, this.search(), this.bulk);
		this.view = panes(main, { bar, list: this.list.node, nothing: this.nothing });
		keys(this.keys());
		if (NOTHING[params.get("tab")]) this.turn(params.get("tab"));
		else this.draw();
		if (wanted && !inbox.open.has(wanted)) this.open({ id: wanted }, true);
	}

	search() {
		const oninput = ({ target }) => {
			this.needle = target.value.toLowerCase();
			this.draw();
		};
		return h("input", { type: "search", placeholder: "Search", "aria-label": "Search approvals", oninput });
	}

	keys() {
		return {
			...movement(this.list, "question"),
			a: { does: () => this.byKey("approve", "once"), says: "approve once (all chosen ones, if any)" },
			s: { does: () => this.byKey("approve", "session"), says: "approve for this session" },
			h: { does: () => this.byKey("approve", "hour"), says: "approve for one hour" },
			w: { does: () => this.byKey("approve", "always"), says: "approve always for these arguments" },
			d: { does: () => this.byKey("deny", "once"), says: "deny (all chosen ones, if any)" },
			e: { does: () => this.shown && may("operate") && makeRule(this.shown), says: "make a rule from this question" },
			x: { does: () => this.tab === "inbox" && this.list.selected && this.toggle(this.list.selected), says: "choose for an answer to several" },
		};
	}

	row(item) {
		if (this.tab === "grants") return grantRow(item);
		const checked = this.picked.has(item.id);
		const onchange = () => this.toggle(item.id);
		const label = `Choose ${item.signature}`;
		const pick =
			this.tab === "inbox"
				? h("span.tick", h("input", { type: "checkbox", checked, "aria-label": label, onchange, disabled: !answerable(item) }))
				: null;
		const pending = item.state === "pending";
		const more = item.not_in_signature ?? [];
		return h(
			pick ? "div.pick" : "div.two",
			pick,
			h(item.sentence ? "bdi.asked" : "span.lead", item.sentence || item.tool),
			pending ? timeLeft(item.expires_at, "span.end") : h("span.end", stateWord(item.state)),
			h("span.rest", risks(item.risks, true), `${item.agent} · `, pending ? "" : `${ago(item.asked_at)} · `, h("span.values", item.sentence ? item.line : valuesOf(item, item.line))),
			pending && item.count > 1 ? h("span.end", `${item.yeses.length} of ${item.count} said yes`) : more.length && pending ? h("span.end.more", `${more.length} not shown`) : h("span.end", item.answered_by),
		);
	}

	items() {
		const all = this.tab === "inbox" ? waiting().filter((one) => !this.risky || isDangerous(one)) : this.past;
		const text = (item) => `${item.signature} ${item.agent ?? item.caller} ${item.sentence ?? ""}`.toLowerCase();
		return this.needle ? all.filter((item) => text(item).includes(this.needle)) : all;
	}

	draw() {
		for (const id of this.picked) if (!inbox.open.has(id)) this.picked.delete(id);
		for (const node of this.tabs.children) node.setAttribute("aria-pressed", node.dataset.tab === this.tab);
		const found = this.items();
		listOrEmpty(this.list, found, this.nothing);
		if (!found.length) this.drawNothing();
		this.drawBulk(found);
		if (this.tab === "inbox" && this.shown?.state === "pending" && !inbox.open.has(this.shown.id)) this.refresh();
		if (this.wanted && inbox.open.has(this.wanted)) {
			this.list.select(this.wanted, true);
			this.wanted = null;
		} else if (found.length && this.list.selected === null && !this.wanted && !this.picked.size && isWide()) {
			this.list.select(found[0].id);
		}
	}

	drawNothing() {
		if (this.tab === "inbox" && !inbox.known) show(this.nothing, loading());
		else if (this.tab === "inbox" && inbox.problem) show(this.nothing, fault(inbox.problem, reload));
		else if (this.needle) show(this.nothing, empty("Nothing fits", "No entry here has these words."));
		else show(this.nothing, empty(...NOTHING[this.tab]));
	}

	// Changed in place: what has the keyboard, or is being pressed, must stay while questions come and go.
	drawBulk(found) {
		const { size } = this.picked;
		const mine = this.tab === "inbox" ? found.filter(isPlain).length : 0;
		this.bulk.hidden = !mine && !size;
		this.all.checked = size > 0 && size === mine;
		this.all.indeterminate = size > 0 && size < mine;
		this.chosen.textContent = size ? `${size} chosen` : "Choose all";
		for (const node of this.many) node.hidden = !size;
	}

	pickAll(items) {
		this.picked = new Set(items.map((item) => item.id));
		this.draw();
	}

	toggle(id) {
		if (!answerable(inbox.open.get(id) ?? {})) return;
		if (!this.picked.delete(id)) this.picked.add(id);
		this.draw();
	}

	// What is on the screen is another question until this one is drawn: it cannot be answered meanwhile.
	async open(item, byHand) {
		if (this.tab === "grants") return this.openGrant(item, byHand);
		this.view.turn(byHand);
		this.view.detail.inert = true;
		try {
			const whole = await get(`/api/approvals/${segment(item.id)}`);
			if (this.list.selected !== null && this.list.selected !== item.id) return undefined;
			this.drawOne(whole);
		} catch (error) {
			if (this.list.selected !== null && this.list.selected !== item.id) return undefined;
			this.view.fill(fault(error, () => this.open(item, byHand)));
		}
		this.view.detail.inert = false;
		return undefined;
	}

	async refresh() {
		const { id } = this.shown;
		this.shown = null;
		const whole = await get(`/api/approvals/${segment(id)}`).catch(() => null);
		if (whole && this.list.selected === id) this.drawOne(whole);
	}

	drawOne(approval) {
		this.shown = approval;
		const answer = (...given) => this.answer(approval, ...given);
		this.view.fill(question(approval, { answer, makeRule: () => makeRule(approval), wait: SETTLE }));
	}

	async answer(approval, verdict, lifetime, reason = "", extra = {}) {
		const next = this.following(approval.id);
		const answered = await give(approval, verdict, lifetime, { ...extra, reason });
		if (answered?.state === "pending") return this.open(approval);
		if (!this.left([approval.id]) && next && isWide()) this.list.select(next);
		return undefined;
	}

	// An answer takes as long as its call: what the person has opened meanwhile stays open. Says whether something was.
	left(answered) {
		const elsewhere = this.list.selected !== null && !answered.includes(this.list.selected);
		if (elsewhere) this.draw();
		else this.close();
		return elsewhere;
	}

	close() {
		this.shown = null;
		this.list.selected = null;
		this.view.clear();
		this.draw();
	}

	following(id) {
		const order = this.items().map((item) => item.id);
		const place = order.indexOf(id);
		return order[place + 1] ?? order[place - 1];
	}

	byKey(verdict, lifetime) {
		if (this.tab !== "inbox") return;
		if (this.picked.size) {
			if (lifetime === "once") this.answerMany(verdict);
			return;
		}
		const node = this.view.detail.querySelector(`[data-answer="${verdict === "deny" ? "deny" : lifetime}"]`);
		if (node && !node.disabled && !this.view.detail.inert) node.click();
	}

	async answerMany(verdict) {
		const looked = (id) => verdict === "deny" || isPlain(inbox.open.get(id) ?? {});
		const ids = [...this.picked].filter(looked);
		if (!ids.length) return say("These have to be looked at one by one", { fault: true });
		if (!(await confirmMany(verdict === "deny" ? "Deny" : "Approve once", ids))) return undefined;
		return act(this.many[0], async () => {
			const phrase = await passphrase();
			const { results } = await post("/api/approvals", { ids, verdict, lifetime: "once", passphrase: phrase });
			this.answeredMany(results, verdict);
		});
	}

	answeredMany(results, verdict) {
		const failed = results.filter((result) => result.error);
		for (const result of results) if (!result.error) inbox.open.delete(result.id);
		for (const result of results) this.picked.delete(result.id);
		say(`${many(results.length - failed.length, "question")} ${verdict === "deny" ? "denied" : "approved once"}`);
		const ended = results.filter((result) => ["failed", "unknown"].includes(result.became?.state));
		if (ended.length) say(`${many(ended.length, "call")} did not go well. ${ended[0].became.text}`, { fault: true });
		if (failed.length)
			say(`${many(failed.length, "answer")} did not count: ${failed[0].error.message}`, { fault: true });
		this.left(results.map((result) => result.id));
	}

	openGrant(grant, byHand) {
		const revoke = async () => {
			await remove(`/api/grants/${segment(grant.id)}`);
			say(`Revoked. ${grant.caller} is asked again.`);
			this.close();
			this.loadPast();
		};
		this.view.turn(byHand);
		this.view.fill(
			h("h2", `${grant.caller} may call this without asking`),
			h("p.signature", grant.signature),
			grantFacts(grant),
			mayOf(grant, "revoke") && h("div.buttons", button("Revoke", revoke, { kind: "strong" })),
		);
	}

	page(before) {
		return get(`/api/approvals${query({ state: "answered", brief: 1, limit: PAGE, before })}`);
	}

	async loadPast() {
		const { tab } = this;
		try {
			const past = tab === "grants" ? await get("/api/grants") : await this.page();
			if (tab !== this.tab) return;
			this.past = past;
			this.more = tab === "history" && past.length > 0;
			this.draw();
		} catch (error) {
			if (tab !== this.tab) return;
			this.past = [];
			this.draw();
			show(this.nothing, fault(error, () => this.loadPast()));
		}
	}

	async older() {
		if (this.tab !== "history" || !this.more) return;
		const { past } = this;
		this.more = false;
		try {
			const next = await this.page(past.at(-1).asked_at);
			if (past !== this.past) return;
			this.past = past.concat(next);
			this.more = next.length > 0;
			if (next.length) this.draw();
		} catch (error) {
			if (past === this.past) say(`Older questions could not be loaded: ${error.message}`, { fault: true });
		}
	}

	turn(name) {
		Object.assign(this, { tab: name, past: [], wanted: null });
		this.picked.clear();
		this.list.selected = null;
		this.close();
		if (name !== "inbox") this.loadPast();
	}

	tick() {
		for (const node of this.main.querySelectorAll(".left")) node.textContent = left(Number(node.dataset.until));
		if (this.shown?.state === "pending" && isOver(this.shown) && this.view.detail.querySelector("[data-answer]")) this.drawOne(this.shown);
	}
}

export function approvals(main, [wanted], params) {
	const page = new Approvals(main, wanted, params);
	return together(
		listen((kind) => kind === "approvals" && page.tab === "inbox" && page.draw()),
		every(1000, () => page.tick()),
		() => page.list.close(),
	);
}
