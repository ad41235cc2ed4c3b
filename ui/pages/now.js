// Now: what waits for an answer, what is broken and how to mend it, and what is good to know.
import { get, post, segment } from "../api.js";
import { now as time } from "../clock.js";
import { button, empty, fault, h, loading, say, show } from "../dom.js";
import { ago, left, many, span } from "../format.js";
import { inbox, isBroken, listen, reload, waiting } from "../inbox.js";
import { boxed, every, loader, together, twoLines } from "../layout.js";
import { may } from "../me.js";
import { icon } from "../parts/icon.js";
import { List } from "../parts/list.js";
import { questionNeed, troubleNeed } from "../parts/need.js";
import { picture } from "../parts/picture.js";
import { callList } from "../parts/rows.js";
import { isDangerous } from "../words.js";

const SHOWN = 8;
const MOST_NEEDS = 12;
const LATEST = 8;

function glance(needed) {
	const open = waiting();
	const broken = needed.filter(isBroken).length;
	const dangerous = open.filter(isDangerous).length;
	const chip = (kind, page, ...words) => h(`a.chip.${kind}`, { href: `#/${page}` }, icon(kind), ...words);
	return [
		open.length ? chip("wait", "approvals", many(open.length, "question waits", "questions wait")) : chip("good", "approvals", "Nothing waits for you"),
		dangerous ? chip("risk", "approvals?risk=1", `${dangerous} of them dangerous`) : null,
		broken ? chip("fail", "sources", many(broken, "thing is broken", "things are broken")) : chip("good", "sources", "Nothing is broken"),
	];
}

const box = (kind, shown, rest, link, label) =>
	h("div.needs", shown, rest ? h(`div.need.${kind}`, h("strong", rest), h("div.buttons", h("a", { href: link }, label))) : null);

function answer(again) {
	if (inbox.problem) return fault(inbox.problem, reload);
	const open = waiting();
	if (!open.length) return h("p.soft", "When an agent wants something that needs a person, it appears here at once.");
	const rest = open.length > SHOWN ? `${many(open.length, "question")} in all` : "";
	return box("wait", open.slice(0, SHOWN).map((one) => questionNeed(one, again)), rest, "#/approvals", "Open the inbox");
}

function fix(needed, again) {
	const broken = needed.filter(isBroken);
	if (!broken.length) return h("p.soft", "Every source is well, and the configuration is in use.");
	const more = broken.length - MOST_NEEDS;
	const rest = more > 0 ? `and ${many(more, "more problem", "more problems")}` : "";
	return box("fail", broken.slice(0, MOST_NEEDS).map((need) => troubleNeed(need, again)), rest, "#/sources", "See the sources");
}

const runningRow = (call) =>
	twoLines(call.signature, span(Math.max(0, time() - call.since)), `${call.caller} over ${call.surface}`);

function browser(screen, again) {
	const stop = button("Stop", async () => {
		await post(`/api/browsers/${segment(screen.id)}/stop`);
		say("Stopped.");
		again();
	});
	return h(
		"div.need",
		h("strong", screen.title || screen.place || "Nothing open yet"),
		h("p", `${screen.caller} · `, h("code", screen.place)),
		picture(`/api/browsers/${segment(screen.id)}/picture`, `What ${screen.caller} sees`),
		may("operate") && h("div.buttons", stop),
	);
}

const noCalls = () =>
	empty("No call was made yet", "Connect an agent and let it use a tool.", h("a.button", { href: "#/connect" }, "Connect an agent"));

export function now(main) {
	const [toAnswer, toFix, known, running, latest, browsers] = Array.from({ length: 6 }, () => h("div"));
	const headings = { answer: h("span.tally"), fix: h("span.tally") };
	const summary = h("div.glance", { role: "status" });
	show(toAnswer, loading());
	show(
		main,
		summary,
		h("section", h("h2", "Answer", headings.answer), toAnswer),
		h("section", h("h2", "Fix", headings.fix), toFix),
		h("section", h("h2", "Know"), known, h("h3", "Running now"), running, browsers, h("h3", "Latest calls"), latest, h("p", h("a", { href: "#/calls" }, "All calls"))),
	);
	let needed = null;
	let drawn = "";
	let asked = "";
	const runs = new List({ row: runningRow, key: (call) => call.call, label: "Running calls", onSelect: () => {} });
	const calls = callList("Latest calls");
	const fill = (place, list, items, nothing) => (items.length ? boxed(place, list, items, { most: "200vh" }) : show(place, nothing));

	// Drawn only when there is something else to see: a button must stay where it is while it is pressed.
	function drawQuestions() {
		if (!inbox.known) return;
		const open = waiting();
		const seen = JSON.stringify([open.length, open.slice(0, SHOWN), inbox.problem?.message]);
		if (seen !== asked) show(toAnswer, answer(drawQuestions));
		asked = seen;
		if (needed) show(summary, glance(needed));
		headings.answer.textContent = open.length ? ` ${open.length}` : "";
		for (const node of toAnswer.querySelectorAll("[data-asked]")) node.textContent = ago(Number(node.dataset.asked));
		for (const node of toAnswer.querySelectorAll(".left")) node.textContent = left(Number(node.dataset.until));
	}

	function drawNeeds() {
		const seen = JSON.stringify(needed);
		if (seen === drawn) return;
		drawn = seen;
		if (inbox.known) show(summary, glance(needed));
		show(toFix, fix(needed, load));
		const warnings = needed.filter((need) => !isBroken(need));
		show(known, warnings.length ? h("div.needs", warnings.slice(0, MOST_NEEDS).map((need) => troubleNeed(need, load))) : null);
		const broken = needed.length - warnings.length;
		headings.fix.textContent = broken ? ` ${broken}` : "";
	}

	async function load() {
		try {
			const value = await get("/api/now");
			needed = value.needs;
			drawNeeds();
			fill(running, runs, value.running, h("p.soft", "No call is running."));
		} catch (error) {
			needed = null;
			drawn = "";
			show(toFix, fault(error, load));
			show(running);
		}
	}

	const loadBrowsers = loader(browsers, "/api/browsers", (open) =>
		show(browsers, open.length > 0 && [h("h3", "Open browsers"), h("div.needs", open.map((screen) => browser(screen, loadBrowsers)))]),
	);
	const loadCalls = loader(latest, "/api/calls?by=call&limit=60", (found) => fill(latest, calls, found.calls.slice(0, LATEST), noCalls()));

	drawQuestions();
	load();
	loadCalls();
	loadBrowsers();
	return together(
		listen((kind) => {
			if (kind === "approvals") drawQuestions();
			if (kind === "calls") loadCalls();
			if (kind === "calls" || kind === "catalog" || kind === "online") load();
		}),
		every(5000, load),
		every(5000, loadBrowsers),
		every(1000, drawQuestions),
		() => runs.close(),
		() => calls.close(),
	);
}
