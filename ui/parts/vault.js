// A secret is typed once and goes into the vault; the page shows names, never values.
import { put, remove, segment } from "../api.js";
import { button, h, say } from "../dom.js";
import { passphrase } from "./answering.js";
import { opened, sure } from "./dialog.js";
import { input } from "./form.js";

const path = (name) => `/api/secrets/${segment(name)}`;
const used = ({ used_by: by }) => (by.length ? ` ${by.join(", ")} uses it from now on.` : "");

export async function keepSecret(name, value) {
	const said = await put(path(name), { value, passphrase: await passphrase() });
	say(`Kept ${name}.${used(said)}`);
}

export async function forgetSecret({ name, used_by: by }) {
	const text = by.length ? `${by.join(", ")} cannot connect without it.` : "Nothing uses it.";
	if (!(await sure(`Remove ${name}?`, text, "Remove"))) return;
	await remove(path(name), { passphrase: await passphrase() });
	say(`Removed ${name}`);
}

export function typeSecret(name, again) {
	const title = input("Name", { placeholder: "such as github-token" });
	const value = input("Value", { type: "password" });
	const keep = async () => {
		const wanted = name || title.value();
		await keepSecret(wanted, value.node.value);
		dialog.close();
		again(wanted);
	};
	const dialog = opened(
		name ? `Replace ${name}` : "Add a secret",
		name ? null : title.row,
		value.row,
		h("p.soft", "It is sealed in the vault and shown nowhere. Files name it: ", h("code", `vault:${name || "NAME"}`)),
		h("div.buttons", button("Keep it", keep, { kind: "strong" }), button("Not now", () => dialog.close())),
	);
}
