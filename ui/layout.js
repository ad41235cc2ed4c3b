// Two panes: a list and what is selected in it. On a phone the second covers the first until it is closed.
import { get } from "./api.js";
import { button, fault, h, show } from "./dom.js";

export const isWide = () => matchMedia("(min-width: 761px)").matches;

export function panes(main, { bar, list, nothing }) {
	const detail = h("div.detail", h("p.hint", "Choose one in the list."));
	const side = h("section.side", bar, list, nothing);
	const close = () => {
		main.removeAttribute("data-open");
		list.focus({ preventScroll: true });
	};
	const back = button("Back to the list", close, { kind: "quiet back" });
	const over = h("div.over", { role: "region", "aria-label": "Details", tabIndex: -1 }, back, detail);
	show(main, side, over);
	main.classList.add("panes");
	main.removeAttribute("data-open");
	// What comes next is read from its beginning; where it covers the list, the keyboard goes along.
	const turn = (byHand = true) => {
		over.scrollTop = 0;
		if (!byHand) return;
		main.setAttribute("data-open", "");
		if (getComputedStyle(side).display === "none") over.focus({ preventScroll: true });
	};
	return {
		detail,
		turn,
		open: (...children) => {
			turn();
			detail.inert = false;
			show(detail, ...children);
		},
		fill: (...children) => {
			detail.inert = false;
			show(detail, ...children);
		},
		clear: () => {
			detail.inert = false;
			const { activeElement: held } = document;
			if (main.hasAttribute("data-open") && (held === document.body || over.contains(held))) close();
			main.removeAttribute("data-open");
			show(detail, h("p.hint", "Choose one in the list."));
		},
	};
}

export const twoLines = (lead, end, rest, more) => h("div.two", h("span.lead", lead), h("span.end", end), h("span.rest", rest), h("span.end", more));

// Only what was asked for last counts.
export function newest() {
	let round = 0;
	return async (work, draw, fail) => {
		const mine = (round += 1);
		try {
			const value = await work();
			if (mine === round) draw(value);
		} catch (error) {
			if (mine === round) fail(error);
		}
	};
}

export function loader(place, path, draw) {
	const last = newest();
	const load = () => last(typeof path === "function" ? path : () => get(path), draw, (error) => show(place, fault(error, load)));
	return load;
}

// What to type on a terminal is no reason: the page has a button for it.
export const reasonOf = ({ reason }) => (reason.includes("`agent-gate auth") ? "" : reason);

// Why something is as it is: a sentence, and below it what a program printed, if that is part of the reason.
export function because(reason) {
	const [sentence, ...printed] = reason.split("\n");
	return [sentence ? h("p.because", sentence) : null, printed.length ? h("pre.printed", printed.join("\n")) : null];
}

export const field = (label, ...value) => [h("dt", label), h("dd", ...value)];

export function every(milliseconds, work) {
	const timer = setInterval(() => document.hidden || work(), milliseconds);
	return () => clearInterval(timer);
}

export const together = (...ends) => () => ends.forEach((end) => end());

export function chosen(options, value, onchange, label) {
	return h(
		"select",
		{ onchange: (event) => onchange(event.target.value), "aria-label": label },
		options.map(([key, title]) => h("option", { value: key, selected: key === value }, title)),
	);
}

export function jsonOf(area) {
	let value;
	try {
		value = JSON.parse(area.value.trim() || "{}");
	} catch (error) {
		throw new Error(`The arguments are not JSON: ${error.message}`);
	}
	if (value === null || typeof value !== "object" || Array.isArray(value))
		throw new Error('The arguments must be a JSON object, such as {"name": "value"}');
	return value;
}

export function movement(list, thing) {
	const [down, up] = [() => list.move(1), () => list.move(-1)];
	return {
		j: { does: down, says: `next ${thing}` },
		k: { does: up, says: `previous ${thing}` },
		ArrowDown: { does: down },
		ArrowUp: { does: up },
	};
}

export function boxed(place, list, items, { most = "60vh" } = {}) {
	if (!place.contains(list.node)) show(place, h("div.boxed", list.node));
	list.node.style.height = `min(${most}, calc(${items.length} * var(--row) + 1px))`;
	list.set(items);
}
