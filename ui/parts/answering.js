// Giving an answer, and what is asked before it counts.
import { post, segment } from "../api.js";
import { h, say } from "../dom.js";
import { clipped, many, names } from "../format.js";
import { inbox } from "../inbox.js";
import { me } from "../me.js";
import { COVERED, isDangerous, risks } from "../words.js";
import { ask, framed, notNow } from "./dialog.js";

const LISTED = 100;
export const SETTLE = 350; // milliseconds before a question that just came under the cursor can be answered

export async function passphrase(needed = me.passphrase) {
	if (!needed) return undefined;
	const input = h("input", { type: "password", autocomplete: "off", required: true });
	const label = h("label.block", h("span", "Your approver's passphrase"), input);
	const yes = h("button.strong", { value: "yes" }, "Answer");
	const form = h("form", { method: "dialog" }, label, h("div.buttons", yes, notNow()));
	const said = await ask(h("dialog", { "aria-label": "Passphrase" }, form), input);
	if (said !== "yes" || !input.value) throw new Error("Not answered: no passphrase was given");
	return input.value;
}

export async function give(approval, verdict, lifetime = "once", more = {}) {
	const phrase = await passphrase();
	const answered = await post(`/api/approvals/${segment(approval.id)}`, { ...more, verdict, lifetime, passphrase: phrase });
	if (answered?.state !== "pending") inbox.open.delete(approval.id);
	const { state, text = "" } = answered?.became ?? {};
	const lasting = lifetime !== "once" && answered?.state === "approved";
	const said = { denied: "Denied", pending: "You said yes" }[answered?.state] ?? `Approved${lasting ? ` ${COVERED[lifetime]}` : ""}`;
	const fault = ["failed", "unknown"].includes(state);
	say(`${said}: ${clipped(approval.signature, 120)}. ${answered?.state === "denied" ? "" : text}${lasting ? " Take it back under Grants." : ""}`, { fault });
	return answered;
}

// What the signature leaves out would be answered unseen; it is named at least.
function asked({ signature, agent, not_in_signature: more, risks: found }) {
	const beside = more?.length ? h("span.mark", `with ${names(more)}, which the signature does not show`) : null;
	return h("li", h("code", signature), ` (${agent})`, beside, risks(found));
}

export async function confirmMany(title, ids) {
	const rows = ids
		.slice(0, LISTED)
		.map((id) => inbox.open.get(id))
		.filter(Boolean);
	const yes = h("button.strong", { value: "yes" }, title);
	const dialog = framed(
		`${title}: ${many(ids.length, "question")}`,
		rows.some(isDangerous) && h("p.mark", `${rows.filter(isDangerous).length} of them dangerous`),
		h("ul", { tabIndex: 0 }, rows.map(asked)),
		ids.length > rows.length ? h("p", `and ${ids.length - rows.length} more`) : null,
		h("form", { method: "dialog" }, h("div.buttons", yes, notNow())),
	);
	return (await ask(dialog, yes)) === "yes";
}
