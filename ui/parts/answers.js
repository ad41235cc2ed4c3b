// The answers to one question, and what each allows.
import { button, h } from "../dom.js";
import { many, names } from "../format.js";
import { isOver } from "../inbox.js";
import { may, me, mayOf } from "../me.js";
import { COVERED, dangers, isSevere } from "../words.js";
import { consent } from "./consent.js";
import { sure } from "./dialog.js";

const KEYS = { once: "a", session: "s", hour: "h", always: "w" };

function others({ may_answer: who = [] }) {
	if (!may("answer")) return "You may look, and not answer.";
	return `This is not yours to answer. ${names(who, 8)} may.`;
}

const said = ({ yeses = [], count = 1 }) =>
	yeses.includes(me.person)
		? `You said yes. ${many(count - yeses.length, "other person has", "other people have")} to say so too.`
		: "The agent works for you, so somebody else has to say yes.";

const needed = ({ yeses = [], count = 1 }) =>
	count > 1 && h("p", yeses.length > 0 && `${names(yeses)} said yes. `, yeses.length + 1 < count ? `It takes ${count} people to say yes.` : "Yours is the last yes that is needed: the call is made then.");

export const ruleButton = (makeRule) => (may("operate") ? button("Make a rule from this…", makeRule, { key: "e" }) : null);

// A bar that stays in view. Its buttons can be pressed after `wait` milliseconds.
export function answers(approval, answer, wait, makeRule) {
	const reason = h("input", {
		type: "text",
		placeholder: "Reason to deny",
		title: "The agent reads it",
		maxLength: 500,
		"aria-label": "Reason for a denial",
	});
	const approves = mayOf(approval, "approve");
	if (isOver(approval)) return h("p.answers.soft", "Its time is over: nobody answered, so the call is not made.");
	if (!approves && !mayOf(approval, "deny")) return h("p.answers.soft", others(approval));
	const asked = approves ? consent(approval) : null;
	const approve = (life) => {
		const props = { key: KEYS[life], kind: life === "once" ? "strong" : "", disabled: true, "data-answer": life };
		const sent = async () => {
			const asks = life === "always" && isSevere(approval);
			if (!asks || (await sure("Never ask about this again?", `${approval.choices[life]} ${dangers(approval)}`, "Approve always"))) await answer("approve", life, "", asked?.said());
		};
		return button(`Approve ${COVERED[life]}`, sent, { ...props, "aria-describedby": `means-${life}` });
	};
	const deny = button("Deny", () => answer("deny", "once", reason.value), {
		key: "d",
		disabled: true,
		"data-answer": "deny",
	});
	const [first, ...longer] = Object.keys(approval.choices);
	const meaning = (life) => h("span", { id: `means-${life}` }, approval.choices[life]);
	const lasting = [
		...longer.map((life) => [approve(life), meaning(life)]),
		...(may("operate") ? [[ruleButton(makeRule), h("span", "The file decides such calls from now on.")]] : []),
	];
	const more =
		approves && lasting.length
			? h("details", h("summary.button", "Do not ask again…"), h("div.choices", lasting.map((one) => h("div.choice", one))), h("p.meaning", "Take back answers under ", h("a", { href: "#/approvals?tab=grants" }, "Grants"), ", rules under ", h("a", { href: "#/policy" }, "Policy"), "."))
			: null;
	const bar = h(
		"div.answers",
		{ role: "group", "aria-label": "Your answer" },
		asked?.node,
		approves ? needed(approval) : h("p", said(approval)),
		h("div.buttons", approves ? approve(first) : null, deny, more, reason),
		approves && h("p.meaning", meaning(first)),
	);
	setTimeout(() => bar.querySelectorAll("button").forEach((node) => (node.disabled = false)), wait);
	return bar;
}
