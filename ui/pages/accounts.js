// Accounts that the gateway has with servers and services.
import { get, post, segment } from "../api.js";
import { button, empty, h, say, show } from "../dom.js";
import { ago, many, moment, since } from "../format.js";
import { because, field, reasonOf, twoLines } from "../layout.js";
import { may } from "../me.js";
import { Collection } from "../parts/collection.js";
import { sure } from "../parts/dialog.js";
import { input, saidAt } from "../parts/form.js";
import { word } from "../words.js";

const PASTE =
	"If the browser ends at an address that does not open, copy that address whole and paste it here. The code alone will do too.";

const standing = (one) => {
	if (one.unconfirmed) return "unconfirmed";
	if (one.needed) return one.how === "key" ? "keyless" : "needed";
	return one.connected ? "connected" : "unused";
};
const stateOf = word({
	unconfirmed: ["waits for a yes", "wait"],
	needed: ["needs a sign-in", "wait"],
	keyless: ["needs a key", "wait"],
	connected: ["connected", "good"],
	unused: ["not needed so far", ""],
});

const titled = (one) => (one.agent ? `${one.title} for ${one.agent.replace(/^person:/, "")}` : one.title);

const row = (one) =>
	twoLines(
		titled(one),
		stateOf(standing(one)),
		one.account || reasonOf(one).split("\n", 1)[0] || many(one.tools, "tool"),
		one.renewed_at ? `refreshed ${ago(one.renewed_at)}` : "",
	);

const facts = (one) =>
	h(
		"dl.facts",
		one.account && field("account", one.account),
		one.scopes.length ? field("may", one.scopes.join(", ")) : null,
		one.since && field("since", `${moment(one.since)}, by ${one.by}`),
		one.expires_at && field("token ends", moment(one.expires_at)),
		one.renewed_at && field("last refresh", since(one.renewed_at)),
		field("tools", many(one.tools, "tool"), " of ", h("a", { href: `#/sources/${segment(one.source)}` }, h("code", one.source))),
	);

function advice(one) {
	if (one.unconfirmed) return ["Somebody signed in. Say whether that account is the right one in ", h("a", { href: "#/approvals" }, "Approvals"), "."];
	if (one.needed) return one.how === "key" ? "Its calls are refused until it has a key." : "Its calls are refused until somebody signs in.";
	return one.connected ? "Agents use this account; none of them sees its token." : "";
}

const name = (one) => (one.agent ? `${one.source} ${one.agent}` : one.source);

const none = () =>
	empty(
		"Nothing needs an account",
		"Servers that want a sign-in appear here by themselves; docs/credentials.md says how others get a key.",
		h("a.button", { href: "#/sources" }, "See the sources"),
	);

export function accounts(main, [wanted], params) {
	const page = new Collection(main, {
		load: () => get("/api/connections"),
		key: name,
		row,
		text: (one) => `${titled(one)} ${one.account} ${standing(one)}`,
		told,
		thing: "Account",
		again: 3000,
		none,
		wanted,
		params,
	});

	function told(one) {
		const steps = h("div");
		const again = one.connected ? "Sign in again" : "Sign in";
		const acts = [
			one.how === "key" ? null : button(again, () => signIn(one, steps), { kind: one.connected ? "" : "strong" }),
			one.connected && button("End", () => end(one)),
		];
		return [
			h("h2", titled(one), " ", stateOf(standing(one))),
			h("p.soft", advice(one)),
			because(reasonOf(one)),
			may("operate") && [one.how === "key" ? entry(one, "Key", "key", "password") : null, h("div.buttons", acts), steps],
			facts(one),
		];
	}

	async function end(one) {
		if (!(await sure(`End the connection of ${titled(one)}?`, "Its tokens are forgotten here and revoked there. Its calls are refused until somebody signs in.", "End"))) return;
		await act(one, "end");
	}

	async function signIn(one, steps) {
		const said = await post(`/servers/${segment(one.source)}/auth/start`, { agent: one.agent });
		if (said.connected) return page.load();
		const link = h("a.button.strong", { href: said.auth_url, target: "_blank", rel: "noopener noreferrer" }, "Open the sign-in page");
		const code = said.user_code ? h("p", "and enter the code ", h("code", said.user_code)) : null;
		const paste = said.user_code ? null : [h("p.soft", PASTE), entry(one, "Code or address", "code", "text")];
		show(steps, h("p.steps", link), code, paste);
		return say("The link is good for ten minutes");
	}

	function entry(one, label, what, type) {
		const typed = input(label, { type });
		const send = saidAt(typed, () => act(one, what, { [what]: typed.node.value }));
		return h("div", typed.row, h("div.buttons", button("Use it", send)));
	}

	async function act(one, what, body) {
		const said = await post(`/servers/${segment(one.source)}/auth/${what}`, { agent: one.agent, ...body });
		say(said.message);
		document.activeElement?.blur();
		await page.load();
		const now = page.selected();
		if (now) page.fill(now);
	}

	return page.close;
}
