// Fields of a form: each with its name, and with room for what is wrong, said where it was typed.
import { h } from "../dom.js";

export function input(label, props = {}) {
	return field(label, h("input", { type: "text", autocomplete: "off", ...props }));
}

export const jsonArea = (value) => field("Arguments", h("textarea", { spellcheck: false, "aria-label": "Arguments as JSON", value }));

function field(label, node) {
	const wrong = h("span.wrong", { role: "alert" });
	const say = (text) => {
		wrong.textContent = text;
		node.setAttribute("aria-invalid", Boolean(text));
		if (text) node.focus();
	};
	return { node, say, wrong, row: h("label.block", h("span", label), node, wrong), value: () => node.value.trim() };
}

// What goes wrong with this work is said at the field, since what was typed there is what has to change.
export const saidAt = (field, work) => async () => {
	field.say("");
	try {
		await work();
	} catch (error) {
		field.say(error.message);
	}
};

export const listed = (text) => text.split(",").map((word) => word.trim()).filter(Boolean);
