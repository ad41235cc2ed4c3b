// The command palette: a few letters lead to a page, a question, a tool, a source or an agent.
import { get, segment } from "../api.js";
import { h, show } from "../dom.js";
import { inbox } from "../inbox.js";
import { titleOf } from "../words.js";
import { ask } from "./dialog.js";

const MOST = 12;

async function things() {
	const quiet = (path) => get(path).catch(() => []);
	const [{ tools = [] }, sources, agents] = await Promise.all([quiet("/api/tools?brief=1"), quiet("/api/sources"), quiet("/api/agents")]);
	return [
		...sources.map(({ key }) => ["source", key, `#/sources/${segment(key)}`]),
		...agents.map(({ name }) => ["agent", name, `#/agents/${segment(name)}`]),
		...tools.map(({ name }) => ["tool", name, `#/tools/${segment(name)}`]),
	];
}

function fitting(all, needle) {
	const wanted = needle.toLowerCase();
	const rank = (name) => {
		const text = name.toLowerCase();
		if (text.includes(wanted)) return text.startsWith(wanted) ? 0 : 1;
		let at = -1;
		for (const letter of wanted) if ((at = text.indexOf(letter, at + 1)) < 0) return 9;
		return 2;
	};
	const ranked = all.map((one) => [rank(one[1]), one]).filter(([place]) => place < 9);
	return ranked.sort(([one], [other]) => one - other).slice(0, MOST).map(([, one]) => one);
}

export function palette(pages) {
	const questions = [...inbox.open.values()].map((one) => ["question", titleOf(one), `#/approvals/${one.id}`]);
	let all = [...pages.map(([title, link]) => ["page", title, link]), ...questions];
	let found = [];
	let place = 0;
	const list = h("ul", { role: "listbox", id: "palette-found", "aria-label": "Found" });
	const input = h("input", { type: "text", placeholder: "Where to?", role: "combobox", "aria-label": "Find" });
	input.setAttribute("aria-controls", "palette-found");
	input.setAttribute("aria-expanded", "true");
	const dialog = h("dialog.palette", { "aria-label": "Find" }, input, list);

	const go = (link) => {
		dialog.close();
		location.hash = link;
	};
	const row = ([kind, name, link], at) =>
		h(
			"li",
			{ role: "option", id: `found-${at}`, "aria-selected": String(at === place), onclick: () => go(link) },
			h("span", name),
			h("span.soft", kind),
		);
	const draw = () => {
		found = fitting(all, input.value.trim());
		place = Math.max(0, Math.min(place, found.length - 1));
		show(list, found.length ? found.map(row) : h("li.soft", { role: "option" }, "Nothing has these letters"));
		input.setAttribute("aria-activedescendant", `found-${place}`);
	};
	const move = (by) => {
		place += by;
		draw();
	};
	input.addEventListener("input", () => {
		place = 0;
		draw();
	});
	input.addEventListener("keydown", (event) => {
		const does = { ArrowDown: () => move(1), ArrowUp: () => move(-1), Enter: () => found[place] && go(found[place][2]) }[event.key];
		if (!does) return;
		event.preventDefault();
		does();
	});
	draw();
	things().then((more) => {
		all = [...all, ...more];
		draw();
	});
	return ask(dialog, input);
}
