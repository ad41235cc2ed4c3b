// What needs a person: a question with its answers, or a trouble with what mends it.
import { post } from "../api.js";
import { now } from "../clock.js";
import { button, h, say } from "../dom.js";
import { ago, span } from "../format.js";
import { isBroken } from "../inbox.js";
import { because } from "../layout.js";
import { may, mayOf } from "../me.js";
import { isDangerous, risks, titleOf } from "../words.js";
import { SETTLE, give } from "./answering.js";
import { icon } from "./icon.js";
import { timeLeft } from "./question.js";
import { valuesOf } from "./rows.js";

const GO = { credential: "Replace it", sign_in: "Sign in", definition: "Compare" };

// What the short row leaves out cannot be answered from it: the whole question is one press away.
const whole = ({ not_in_signature: more = [], line, signature }) =>
	!`${line ?? signature}`.includes("…") && (!more.length || (line ?? signature) !== signature);

// What one press may approve: nothing that has to be read, typed or agreed on first.
export const isPlain = (approval) => mayOf(approval, "approve") && whole(approval) && !approval.wants_number && !(approval.count > 1);

export function questionNeed(approval, answered) {
	const act = (verdict) => async () => {
		await give(approval, verdict);
		answered();
	};
	const direct = isPlain(approval);
	const buttons = [
		direct && button("Approve once", act("approve"), { kind: "strong", disabled: true }),
		mayOf(approval, "deny") && button("Deny", act("deny"), { disabled: true }),
	].filter(Boolean);
	setTimeout(() => buttons.forEach((node) => (node.disabled = false)), SETTLE);
	return h(
		isDangerous(approval) ? "div.need.wait.risk" : "div.need.wait",
		h("strong", titleOf(approval)),
		h("p", h("code", approval.sentence ? approval.line : valuesOf(approval, approval.line))),
		risks(approval.risks),
		h(
			"p",
			`${approval.agent} asked `,
			h("span", { "data-asked": approval.asked_at }, ago(approval.asked_at)),
			" · ",
			timeLeft(approval.expires_at),
		),
		h("div.buttons", buttons, h("a", { href: `#/approvals/${approval.id}` }, direct || !buttons.length ? "Details" : "Look and answer")),
	);
}

export function troubleNeed(need, again) {
	const mend =
		need.action && may("operate")
			? button(need.action.label, async () => {
					await post(need.action.path);
					say("Done. It takes a moment to show.");
					again();
				})
			: null;
	const broken = isBroken(need);
	return h(
		`div.need.${broken ? "fail" : "know"}`,
		h("strong", icon(broken ? "fail" : "risk"), " ", need.problem, need.since && h("span.tally", ` for ${span(now() - need.since)}`)),
		h("div", because(need.reason)),
		need.fix && h("p.fix", need.fix),
		h("div.buttons", mend, h(mend ? "a" : "a.button", { href: `#/${need.page}` }, GO[need.kind] ?? "Details")),
	);
}
