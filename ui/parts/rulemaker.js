// A rule made from a question.
import { h, live } from "../dom.js";
import { chosen } from "../layout.js";
import { opened } from "./dialog.js";
import { tryPreview } from "./diff.js";

export const RULES = "/api/policy/rules";
const ACTIONS = [["allow", "allow"], ["ask", "ask a person"], ["deny", "deny"]];
const SCOPES = [["exact", "exactly this call"], ["tool", "every call of this tool"]];

export function makeRule(approval) {
	const wanted = { approval: approval.id, action: "allow", scope: "exact" };
	const place = live();
	const look = (change) => tryPreview(place, RULES, Object.assign(wanted, change), () => dialog.close());
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
	look();
}
