// The answers to one question: Deny beside Approve, what longer answers allow, and what a yes may need beside the button.
import { button, h } from "../dom.js";
import { many, names } from "../format.js";
import { may, me, mayOf } from "../me.js";
import { consent } from "./consent.js";

const LABELS = {
	once: "Approve once",
	session: "Approve this session",
	hour: "Approve for one hour",
	always: "Approve always",
};
const KEYS = { once: "a", session: "s", hour: "h", always: "w" };

// Why somebody has no answers here, and who has.
function others({ may_answer: who = [] }) {
	if (!may("answer")) return "You may look, and not answer.";
	return `This is not yours to answer. ${names(who, 8)} may.`;
}

const said = ({ yeses = [], count = 1 }) =>
	yeses.includes(me.person)
		? `You said yes. ${many(count - yeses.length, "other person has", "other people have")} to say so too.`
		: "The agent works for you, so somebody else has to say yes.";

// A bar that stays in view. Its buttons can be pressed after `wait` milliseconds.
export function answers(approval, answer, wait) {
	const reason = h("input", {
		type: "text",
		placeholder: "Reason (the agent reads it)",
		maxLength: 500,
		"aria-label": "Reason for a denial",
	});
	const approves = mayOf(approval, "approve");
	if (!approves && !mayOf(approval, "deny")) return h("p.answers.soft", others(approval));
	const asked = approves ? consent(approval) : null;
	const approve = (life) => {
		const props = { key: KEYS[life], kind: life === "once" ? "strong" : "", disabled: true, "data-answer": life };
		return button(LABELS[life], () => answer("approve", life, "", asked?.said()), { ...props, "aria-describedby": `means-${life}` });
	};
	const deny = button("Deny", () => answer("deny", "once", reason.value), {
		key: "d",
		disabled: true,
		"data-answer": "deny",
	});
	const [first, ...longer] = Object.keys(approval.choices);
	const meaning = (life) => h("span", { id: `means-${life}` }, approval.choices[life]);
	const more = longer.length
		? h(
				"details",
				h("summary", "Approve for longer"),
				h("div.choices", longer.map((life) => h("div.choice", approve(life), meaning(life)))),
			)
		: null;
	const bar = h(
		"div.answers",
		{ role: "group", "aria-label": "Your answer" },
		asked?.node,
		approves ? null : h("p", said(approval)),
		h("div.buttons", approves ? approve(first) : null, deny, reason),
		approves ? [h("p.meaning", meaning(first)), more] : null,
	);
	setTimeout(() => bar.querySelectorAll("button").forEach((node) => (node.disabled = false)), wait);
	return bar;
}
