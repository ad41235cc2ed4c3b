// A rule: the change to the file is shown first, and only that is written.
import { post } from "../api.js";
import { passphrase } from "./answering.js";
import { diff } from "./diff.js";
import { button, h, live, say, show } from "../dom.js";
import { chosen } from "../layout.js";
import { opened } from "./dialog.js";

const ACTIONS = [["allow", "allow"], ["ask", "ask a person"], ["deny", "deny"]];
const SCOPES = [["exact", "exactly this call"], ["tool", "every call of this tool"]];

export async function showRule(place, wanted, done, ...more) {
	const { file, diff: text, digest } = await post("/api/policy/rules", wanted);
	const write = async () => {
		await post("/api/policy/rules", { ...wanted, apply: true, digest, passphrase: await passphrase() });
		say(`The rule is in ${file} and counts from now on`);
		done();
	};
	show(place, h("p", h("code", file)), diff(text), h("div.buttons", button("Write it", write, { kind: "strong" }), more));
}

export function makeRule(approval) {
	const wanted = { approval: approval.id, action: "allow", scope: "exact" };
	const place = live();
	const dialog = opened(
		"Make a rule from this",
		h("p.soft", "The rule decides calls from now on, and it stays in the file. This question still waits for its own answer."),
		h(
			"div.buttons",
			chosen(ACTIONS, "allow", (action) => look({ action }), "What the rule does"),
			chosen(SCOPES, "exact", (scope) => look({ scope }), "What it covers"),
		),
		place,
	);
	const leave = () => button("Not now", () => dialog.close());

	async function look(change = {}) {
		Object.assign(wanted, change);
		try {
			await showRule(place, wanted, () => dialog.close(), leave());
		} catch (error) {
			show(place, h("p", error.message), h("div.buttons", leave()));
		}
	}

	look();
}
