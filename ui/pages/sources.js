// Sources: where tools come from, how each is, closing and opening one, and definitions that changed since a person
// looked.
import { get, post, segment } from "../api.js";
import { now } from "../clock.js";
import { button, empty, h, say, show } from "../dom.js";
import { ago, count, due, many, moment, since } from "../format.js";
import { because, boxed, every, field, reasonOf, together, twoLines } from "../layout.js";
import { may } from "../me.js";
import { bars } from "../parts/chart.js";
import { Collection } from "../parts/collection.js";
import { sure } from "../parts/dialog.js";
import { diff, openChange } from "../parts/diff.js";
import { editEntry, entryPath } from "../parts/entry.js";
import { typeSecret } from "../parts/vault.js";
import { sourceWord } from "../words.js";
import { toolList } from "./tools.js";

const MOST_CHANGES = 100;
// How the button begins that mends a trouble.
const MENDS = { credential: /^Replace/, program: /^Change/ };
const CLOSED =
	"Its tools stay listed, and calls of them are refused, until it is connected again, its settings change, or the gateway starts anew.";

// A source that is disabled in the configuration has no reason; one that a person disconnected has.
const isDisconnected = (source) => source.status === "disabled" && source.reason !== "";
const canClose = (source) => !["disabled", "needs_auth"].includes(source.status);
const stateOf = (source) => sourceWord(isDisconnected(source) ? "disconnected" : rank(source) === 4 ? "changed" : source.status);
const named = ({ key, title }) => (title && title.toLowerCase() !== key.toLowerCase() ? `${key} (${title})` : key);
const nextTry = (source) => h("span.due", { "data-at": source.next_try }, due(source.next_try));

const KINDS = { mcp: "MCP server", http: "HTTP service", remote: "paired machine" };
const kindOf = ({ kind }) => KINDS[kind] ?? kind;
const WORST = ["failed", "degraded", "needs_auth"];
const rank = ({ status, changes }) => WORST.indexOf(status) + 1 || (changes.length ? 4 : 9);

function row(source) {
	const short = reasonOf(source).split("\n", 1)[0];
	return twoLines(named(source), stateOf(source), short || `${kindOf(source)} · ${many(source.tools, "tool")}`, source.next_try ? ["next try ", nextTry(source)] : "");
}

const facts = (source, one = source.entry) =>
	h(
		"dl.facts",
		one?.entry.url && field("address", h("code", one.entry.url)),
		one?.entry.command && field("command", h("code", [one.entry.command, ...(one.entry.args ?? [])].join(" "))),
		one && field("file", h("code", one.file)),
		field("kind", kindOf(source)),
		field("tools", many(source.tools, "tool"), ", named ", h("code", `${source.namespace}:…`)),
		source.broken_since ? field("broken", `since ${since(source.broken_since)}`) : source.since ? field("since", since(source.since)) : null,
		source.last_error && source.last_error !== source.reason && field("last error", `${moment(source.last_error_at)}: ${source.last_error.split("\n", 1)[0]}`),
		source.next_try && field("next try", nextTry(source)),
	);

const lineTable = (lines) =>
	h("pre.printed", { "aria-label": "Last lines" }, lines.map(({ at, by, text }) => `${moment(at)} ${by.padEnd(7)} ${text}`).join("\n"));

const failedTable = (source, { count: failed, calls, hours }) => {
	const slots = hours.map((failed, hour) => ({ failed, at: now() - (23 - hour) * 3600 }));
	const before = slots.some(({ failed, at }) => failed && at < source.broken_since);
	const says = ({ failed, at }) => `${moment(at)}: ${many(failed, "failure")}`;
	const chart = bars(slots, [[({ failed }) => failed, "fail"]], { label: "Failures per hour", every: 3600, says });
	const row = (one) => h("tr", h("td", h("code", one.caller)), h("td", h("code", one.tool)), h("td.number", many(one.count, "failure")), h("td", ago(one.last)));
	return [
		h("h3", `${many(failed, "call")} failed in the last hour, ${count(hours.reduce((sum, one) => sum + one, 0))} in 24 hours`),
		before && h("p.soft", "Some failed before it broke: then it still answered, with errors."),
		h("div.short", chart),
		h("table", h("tbody", calls.slice(0, MOST_CHANGES).map(row))),
		h("p", h("a", { href: `#/calls?source=${segment(source.key)}&state=failed&range=1h` }, "See these calls")),
	];
};

export function sources(main, [wanted], params) {
	const brings = toolList("Its tools");
	const quiet = (path, otherwise) => get(path).catch(() => otherwise);
	const about = (key) => Promise.all([quiet(`/api/sources/${segment(key)}/failures`, { hours: [] }), may("operate") ? quiet(`/api/sources/${segment(key)}/log`, []) : []]);
	const page = new Collection(main, {
		load,
		key: (source) => source.key,
		row,
		text: (source) => `${named(source)} ${source.status} ${source.reason}`,
		told,
		thing: "Source",
		again: 3000,
		none: () => empty("No source is configured", "Tools come from sources. Add one here, or in the configuration; docs/configuration.md shows how.", add()),
		bar: add(),
		wanted,
		params,
	});

	// Each with its entry in the files and its changed definitions; the one that is open also with what happened there.
	async function load() {
		const [all, changes, entries] = await Promise.all([get("/api/sources"), get("/api/changes"), may("operate") ? quiet("/api/entries", []) : []]);
		const open = page?.shown;
		const story = open ? await about(open) : null;
		const whole = (source) => ({
			...source,
			entry: entries.find(({ key }) => key === source.key),
			changes: changes.filter((change) => change.source === source.key),
			...(source.key === open ? { story } : {}),
		});
		return all.map(whole).sort((one, other) => rank(one) - rank(other));
	}

	function again() {
		return page.load();
	}

	function add() {
		return may("operate") ? button("Add a source", () => editEntry(null, again)) : null;
	}

	async function told(source) {
		const [{ tools }, [failed, lines]] = await Promise.all([quiet("/api/tools?brief=1", { tools: [] }), source.story ?? about(source.key)]);
		const own = tools.filter((tool) => tool.source === source.key);
		const place = h("div");
		if (own.length) boxed(place, brings, own, { most: "50vh" });
		return [
			h("h2", named(source), " ", stateOf(source)),
			because(reasonOf(source)),
			source.fix && h("p.because", source.fix),
			cards(source),
			buttons(source),
			facts(source),
			failed.hours.some(Boolean) && failedTable(source, failed),
			lines.length ? [h("h3", "Last lines"), lineTable(lines)] : null,
			own.length ? [h("h3", "Its tools"), place] : null,
		];
	}

	const owned = ({ entry }) => (entry?.fixed ? null : entry);
	const edit = (title, one, change) => openChange(`${title} ${one.key}`, entryPath(one), change, again);
	const pausing = (one, title = one.off ? "Resume" : "Pause") => [`${title}…`, () => edit(title, one, one.off ? { set: { enabled: true }, unset: ["disabled"] } : { set: { enabled: false } })];

	function buttons(source) {
		if (!may("operate")) return null;
		const { key, status, trouble, entry } = source;
		const own = owned(source);
		const act = (label, work) => button(label, work, { kind: (MENDS[trouble] ?? /^(Try|Connect)/).test(label) ? "strong" : "" });
		const note = isDisconnected(source) ? CLOSED : entry?.says || (!entry && status === "disabled" && "It is disabled in the configuration, and can be enabled there.");
		return [
			h(
				"div.buttons",
				status === "needs_auth" && trouble !== "credential" && h("a.button.strong", { href: `#/accounts/${segment(key)}` }, "Sign in"),
				own?.secrets.map((name) => act(`Replace ${name}…`, () => typeSecret(name, again))),
				own && act("Change…", () => editEntry(own, again)),
				isDisconnected(source) ? act("Connect", () => connect(key)) : rank(source) < 3 && act("Try now", () => connect(key)),
				own && act(...pausing(own)),
				canClose(source) && act("Disconnect", () => disconnect(key)),
				own && act("Remove…", () => edit("Remove", own, { remove: true })),
			),
			note && h("p.soft", note),
		];
	}

	async function connect(key) {
		await post(`/api/sources/${segment(key)}/connect`);
		say(`Connecting ${key}…`);
		setTimeout(again, 600);
	}

	async function disconnect(key) {
		if (!(await sure(`Disconnect ${key}?`, `What it is doing now is cut off. ${CLOSED}`, "Disconnect"))) return;
		await post(`/api/sources/${segment(key)}/disconnect`);
		say(`Disconnected ${key}`);
		await again();
	}

	function cards(source) {
		const own = owned(source);
		const card = (change) => {
			const { tool, held } = change;
			const keep = () => (held ? say("Nothing changes: agents see the old one.") : edit("Keep the old tools of", own, { set: { pin: "hold" } }));
			const acts = () => [
				(held || own) && button("Keep the old one", keep, { kind: "strong" }),
				own ? button(...pausing(own)) : button("Disconnect", () => disconnect(source.key)),
				button("Accept the new one…", () => accept(change)),
			];
			return h(
				"div.card",
				h("header", h("h2", h("code", tool)), h("span.word.fail", `changed ${ago(change.changed_at)}`)),
				h("p", change.says),
				diff(change.diff),
				may("operate") && h("div.buttons", acts()),
			);
		};
		return source.changes.slice(0, MOST_CHANGES).map(card);
	}

	async function accept({ source, tool, pin }) {
		if (!(await sure(`Accept the new ${tool}?`, "Agents read all of it, and may do what it says.", "Accept"))) return;
		await post("/api/changes/accept", { source, tool, pin });
		say(`Accepted ${tool}`);
		await again();
	}

	const tick = () => main.querySelectorAll(".due").forEach((node) => (node.textContent = due(Number(node.dataset.at))));
	return together(every(1000, tick), page.close, () => brings.close());
}
