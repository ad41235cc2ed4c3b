// One question with everything a person needs to judge it, and the answers it can be given.
import { segment } from "../api.js";
import { at, button, h, show } from "../dom.js";
import { count, left, many, moment, names, place, since } from "../format.js";
import { inbox } from "../inbox.js";
import { field } from "../layout.js";
import { picture } from "./picture.js";
import { dangers, ending, risks, stateWord, titleOf } from "../words.js";
import { answers, ruleButton } from "./answers.js";

const LONG = 400;
export const timeLeft = (until, kind = "span") => h(`${kind}.asks.left`, { "data-until": until }, left(until));

const when = (approval) => (approval.state === "pending" ? timeLeft(approval.expires_at) : stateWord(approval.state));

function value(argument) {
	const full = h("div.value");
	const put = (text) => show(full, h("pre.bare", text));
	if (argument.text.length <= LONG) return h("div", put(argument.text));
	put(`${argument.text.slice(0, LONG)}…`);
	const size = `${count(argument.length)} characters`;
	const more = button(`Show all ${size}`, () => {
		put(argument.text);
		more.remove();
	});
	return h("div", full, h("p.size", `${size}, SHA-256 `, h("code", argument.sha256 ?? "–")), more);
}

function argumentRow(argument) {
	const marks = [
		argument.secret && "secret, masked",
		!argument.in_signature && "not in the line above",
		!argument.declared && "not declared by the tool",
	];
	const name = h("div.name", argument.name, marks.filter(Boolean).map((mark) => h("span.mark", mark)));
	return h("div.argument", name, value(argument));
}

function answered(approval) {
	const { state, lifetime, answered_by: by, answered_on: channel, answered_at: at_ } = approval;
	return field("answer", ending(state, { by, channel, lifetime }), at_ ? `, ${moment(at_)}` : "");
}

function why({ rule, where, reason, near }) {
	const own = rule && reason && !reason.endsWith(rule) ? ` It says: ${reason}.` : "";
	return [
		rule ? h("p", "The rule ", h("a", { href: `#/policy/${segment(place(where))}` }, h("code", rule)), at(where), ` wants a person to decide.${own}`) : h("p", "No rule fits this call, so a person decides."),
		near && h("p.soft", `Almost: ${near}.`),
	];
}

function facts(approval) {
	const session = approval.session ? [", session ", h("code", approval.session)] : null;
	return h(
		"dl.facts",
		field("asked by", h("code", approval.agent), approval.surface ? ` over ${approval.surface}` : "", session),
		field("tool", h("a", { href: `#/tools/${segment(approval.tool)}`, title: approval.tool_id }, h("code", approval.tool))),
		approval.may_answer?.length ? field("may answer", names(approval.may_answer, 8)) : null,
		approval.count > 1
			? field("said yes", `${approval.yeses.join(", ") || "nobody"} (${approval.yeses.length} of ${approval.count})`)
			: null,
		field("asked", since(approval.asked_at)),
		approval.state === "pending" ? null : answered(approval),
		approval.answer_reason && field("reason given", approval.answer_reason),
		field("call", h("a", { href: `#/calls/${approval.call}` }, h("code", approval.call))),
	);
}

// What the gateway itself asks a person to open; an agent's own arguments never become a link.
function ownLink(approval) {
	const link = approval.surface === "connections" && approval.state === "pending" ? approval.arguments.link : null;
	if (!/^https?:\/\//.test(link ?? "")) return null;
	return h("p", h("a", { href: link, target: "_blank", rel: "noopener noreferrer" }, "Open the sign-in page"));
}

function tool(approval) {
	const traits = approval.traits.filter((name) => name !== "trusted").map((name) => name.replaceAll("_", " "));
	const said = approval.description || "The tool has no description.";
	const claimed = traits.length && !approval.traits.includes("trusted") ? " (its server's own claim)" : "";
	return [
		h("p.described", said.length > LONG ? h("details", h("summary", `${said.slice(0, LONG)}…`), said) : said),
		traits.length ? h("p.meta", traits.join(", "), claimed) : null,
	];
}

export function question(approval, { answer, makeRule, wait }) {
	const details = approval.details.map(argumentRow);
	return [
		h("h2", titleOf(approval)),
		h("p.meta", risks(approval.risks), " ", h("strong", approval.agent), approval.state === "pending" ? " asks · " : " asked · ", when(approval)),
		h("p.signature", approval.signature),
		h("p.meta", dangers(approval)),
		approval.state === "pending" && inbox.needs.filter(({ sources }) => sources?.includes(approval.source)).map(({ problem }) => h("p.wrong", `${problem}: approved now, the call waits for it, and is not made if it stays away.`)),
		ownLink(approval),
		approval.picture
			? picture(`/api/approvals/${segment(approval.id)}/picture`, "What the call would act on")
			: null,
		h("h3", many(details.length, "argument")),
		details.length ? h("div.arguments", details) : h("p.soft", "The call has no arguments."),
		h("h3", "What the tool does"),
		tool(approval),
		h("h3", "Why a person is asked"),
		why(approval),
		h("h3", "Where it comes from"),
		facts(approval),
		approval.state === "pending" ? answers(approval, answer, wait, makeRule) : h("div.buttons", ruleButton(makeRule)),
	];
}
