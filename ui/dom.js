// Elements from data. Strings only ever become text, and what a reader could not see is written out.
import { place } from "./format.js";

const HIDDEN =
	/[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{1d173}-\u{1d17a}]|[\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/gu;
const LOOK_ALIKE =
	/[\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04af\u04bb\u04cf\u0501\u051b\u051d\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u04ae\u04c0\u051a\u051c\u03bd\u03bf\u03f2\u03f3\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u0570\u0578\u057d\u0581\u0585\u0251\u0261\u2160-\u217f\uff21-\uff3a\uff41-\uff5a\u{1d400}-\u{1d6a5}]/gu;
const WORD = /[\p{L}\p{N}]+(?:[.@_-]+[\p{L}\p{N}]+)*/gu;
const PICTURE = /[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f]$/u;
const JOINS = new Set(["\ufe0f", "\u200d"]);
const UNSEEN = "a character that would not be visible";
const ALIKE = "a letter of another alphabet that looks like one of this word";
const SHORT = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0" };

function escaped(character) {
	if (SHORT[character]) return SHORT[character];
	const code = character.codePointAt(0);
	return code > 0xffff
		? `\\u{${code.toString(16).toUpperCase()}}`
		: `\\u${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

// Letters of other alphabets in words that could be taken for ASCII; a single honest letter gives a word away.
function disguised(text) {
	if (!/[^\0-\x7f]/.test(text)) return [];
	const passes = ([word]) => /[A-Za-z]/.test(word) && !/[^\0-\x7f]/u.test(word.replace(LOOK_ALIKE, ""));
	const inside = (word) => [...word[0].matchAll(LOOK_ALIKE)].map((at) => [word.index + at.index, at[0], ALIKE]);
	return [...text.matchAll(WORD)].filter(passes).flatMap(inside);
}

function hidden(text, lines) {
	const meant = (character, index) =>
		(lines && (character === "\n" || character === "\t")) ||
		(JOINS.has(character) && PICTURE.test(text.slice(0, index)));
	const found = [...text.matchAll(HIDDEN)].filter((at) => !meant(at[0], at.index));
	return found.map((at) => [at.index, at[0], UNSEEN]);
}

// `text` as nodes: what could deceive appears as marked escapes.
export function visible(text, { lines = false } = {}) {
	const out = [];
	let from = 0;
	const marks = [...hidden(text, lines), ...disguised(text)].sort(([one], [other]) => one - other);
	for (const [index, character, title] of marks) {
		if (index > from) out.push(text.slice(from, index));
		const mark = document.createElement("span");
		mark.className = SHORT[character] ? "escape soft" : "escape";
		mark.title = title;
		mark.textContent = escaped(character);
		out.push(mark);
		from = index + character.length;
	}
	out.push(text.slice(from));
	return out;
}

function add(node, child, lines) {
	if (child === null || child === undefined || child === false) return;
	if (Array.isArray(child)) child.forEach((one) => add(node, one, lines));
	else if (child instanceof Node) node.append(child);
	else node.append(...visible(String(child), { lines }));
}

// h("button.quiet", {onclick}, "Deny"): a tag with classes, properties or attributes, and children.
export function h(name, props, ...children) {
	const [tag, ...classes] = name.split(".");
	const node = document.createElement(tag || "div");
	if (classes.length) node.className = classes.join(" ");
	if (tag === "pre" && !classes.includes("bare")) node.tabIndex = 0; // what scrolls must be reached by keys
	if (props instanceof Node || typeof props !== "object" || props === null || Array.isArray(props)) {
		children.unshift(props);
		props = {};
	}
	for (const [key, value] of Object.entries(props)) {
		if (value === undefined || value === null || value === false) continue;
		if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
		else if (key in node && !key.startsWith("aria") && key !== "list") node[key] = value;
		else node.setAttribute(key, value === true ? "" : value);
	}
	add(node, children, tag === "pre" || tag === "textarea");
	return node;
}

export function svg(name, attributes, ...children) {
	const node = document.createElementNS("http://www.w3.org/2000/svg", name);
	for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
	node.append(...children);
	return node;
}

export function show(parent, ...children) {
	const fresh = document.createDocumentFragment();
	add(fresh, children, false);
	parent.replaceChildren(fresh);
	return parent;
}

export const at = (where) => (where ? [" at ", h("code", { title: where }, place(where))] : null);

export function say(text, { fault = false } = {}) {
	const toast = h(fault ? "p.toast.fault" : "p.toast", text);
	document.getElementById("toasts")?.append(toast); // gone once somebody is logged out
	setTimeout(() => toast.remove(), fault ? 9000 : 4000);
}

export async function act(button, work) {
	button.disabled = true;
	try {
		return await work();
	} catch (error) {
		say(error.message, { fault: true });
		return undefined;
	} finally {
		button.disabled = false;
	}
}

export function button(label, work, { kind = "", key, ...props } = {}) {
	const node = h(`button${kind ? `.${kind}` : ""}`, { type: "button", ...props }, label, key ? h("kbd", key) : null);
	node.addEventListener("click", () => act(node, work));
	return node;
}

export function copyButton(label, give) {
	return button(
		label,
		async () => {
			await navigator.clipboard.writeText(give());
			say(`Copied: ${label.toLowerCase()}`);
		},
		{ kind: "quiet" },
	);
}

export const live = () => h("div", { "aria-live": "polite" });
export const loading = () => h("p.state.soft", { role: "status" }, "Loading…");

export function empty(title, ...advice) {
	return h("div.state", h("h2", title), ...advice.map((line) => h("p", line)));
}

export function fault(error, again) {
	return h(
		"div.state.fault",
		{ role: "alert" },
		h("h2", "This could not be loaded"),
		h("p", error.message),
		again && button("Try again", again),
	);
}
