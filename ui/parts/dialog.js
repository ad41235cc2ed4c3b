// The page's own dialogs, left with Esc or a button.
import { h } from "../dom.js";

export function ask(dialog, focus) {
	document.body.append(dialog);
	dialog.showModal();
	focus?.focus();
	return new Promise((done) => {
		dialog.addEventListener("close", () => {
			dialog.remove();
			done(dialog.returnValue);
		});
	});
}

export const notNow = (label = "Not now") => h("button", { value: "", formNoValidate: true }, label);

export const framed = (title, ...content) => h("dialog", { "aria-label": title }, h("h2", title), ...content);

export function opened(title, ...content) {
	const dialog = framed(title, ...content);
	ask(dialog);
	return dialog;
}

// Whether a person wants what cannot be undone; the safe answer has the keyboard.
export async function sure(title, text, yes) {
	const no = notNow();
	const buttons = h("div.buttons", h("button.strong", { value: "yes" }, yes), no);
	return (await ask(framed(title, h("p", text), h("form", { method: "dialog" }, buttons)), no)) === "yes";
}
