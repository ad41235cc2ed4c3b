// One place for keys: pages bring their own, `g` and a letter changes the page, `?` shows them all.
import { h } from "./dom.js";
import { opened } from "./parts/dialog.js";

let pages = {}; // name and title by letter
const OFF = "agent-gate-keys-off";
let own = {};
let waitingForPage = false;

export const pageKeys = (map) => (pages = map);

export function keys(map) {
	own = map;
}

// Whoever reads what was chosen scrolls with the arrows; elsewhere they walk through the list.
const reading = ({ target }) => target instanceof Element && target.closest(".over") !== null;
const typing = (target) => target instanceof Element && target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");

// Letters that act can be switched off: whoever speaks to the machine, or slips on the keyboard, must answer nothing.
const lettersCount = () => localStorage.getItem(OFF) === null;
const isLetter = ({ key }) => key.length === 1;

function letters() {
	const onchange = ({ target }) => (target.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1"));
	return h("label", h("input", { type: "checkbox", checked: lettersCount(), onchange }), " letters and signs act");
}

export function help() {
	const rows = [
		...Object.entries(pages).map(([key, [, title]]) => [`g ${key}`, title]),
		...Object.entries(own)
			.filter(([, entry]) => entry.says)
			.map(([key, entry]) => [key, entry.says]),
		["/", "search"],
		["Ctrl K", "find anything"],
		["Esc", "leave a field, close this"],
	];
	const all = rows.map(([key, says]) => [h("dt", h("kbd", key)), h("dd", says)]);
	const close = h("form", { method: "dialog" }, h("div.buttons", h("button", "Close"), letters()));
	opened("Keys", h("dl.keys", all), close);
}

let openPalette = () => {};

export const onPalette = (open) => (openPalette = open);

function press(event) {
	if ((event.ctrlKey || event.metaKey) && event.key === "k" && !document.querySelector("dialog[open]")) {
		event.preventDefault();
		openPalette();
		return;
	}
	if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
	if (typing(event.target)) {
		if (event.key === "Escape") event.target.blur();
		return;
	}
	if (isLetter(event) ? !lettersCount() : reading(event)) return;
	if (waitingForPage) {
		waitingForPage = false;
		if (pages[event.key]) location.hash = `#/${pages[event.key][0]}`;
		return;
	}
	if (event.key === "g") waitingForPage = true;
	else if (event.key === "?") help();
	else if (event.key === "/") document.querySelector("main input[type=search]")?.focus();
	else if (own[event.key]) own[event.key].does(event);
	else return;
	event.preventDefault();
}

addEventListener("keydown", press);
