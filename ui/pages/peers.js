// Peers: the machines that were paired, and until when each is believed.
import { get, post, remove, segment } from "../api.js";
import { now } from "../clock.js";
import { button, empty, h, say } from "../dom.js";
import { ago, moment, since } from "../format.js";
import { field, twoLines } from "../layout.js";
import { may } from "../me.js";
import { Collection } from "../parts/collection.js";
import { sure } from "../parts/dialog.js";
import { word } from "../words.js";

const standing = ({ status, not_after: end }) => (status === "active" && end && end <= now() ? "expired" : status);
const stateOf = word({ active: ["paired", "good"], expired: ["certificate has ended", "fail"], revoked: ["revoked", ""] });
const PLACES = ["expired", "active", "revoked"];
const ROLES = { tool_host: "tool host", cli_admin: "operator" };
const roleOf = ({ role }) => ROLES[role] ?? role;
const seen = (peer) => (peer.last_seen ? `seen ${ago(peer.last_seen)}` : "not seen yet");

const row = (peer) =>
	twoLines(peer.name, stateOf(standing(peer)), `${roleOf(peer)} · ${peer.endpoint || "dials in"}`, seen(peer));

const facts = (peer) =>
	h(
		"dl.facts",
		field("role", roleOf(peer)),
		field("reached at", peer.endpoint ? h("code", peer.endpoint) : "it dials in"),
		peer.namespace && field("its tools begin with", h("code", peer.namespace)),
		peer.publishes.length ? field("publishes", peer.publishes.join(", ")) : null,
		field("paired", moment(peer.paired_at)),
		field("last seen", peer.last_seen ? since(peer.last_seen) : "not yet"),
		peer.not_after && field("certificate ends", moment(peer.not_after)),
		peer.revoked_at && field("revoked", `${moment(peer.revoked_at)}: ${peer.reason}`),
		peer.role === "tool_host" && field("what it says of its tools", peer.trusted ? "is believed" : "is only a claim"),
		field("key", h("code", peer.fingerprint)),
		peer.certificate && field("certificate", h("code", peer.certificate)),
	);

export function peers(main, [wanted], params) {
	const page = new Collection(main, {
		load: async () => (await get("/api/peers")).sort((one, other) => PLACES.indexOf(standing(one)) - PLACES.indexOf(standing(other))),
		key: ({ name }) => name,
		row,
		text: (peer) => `${peer.name} ${roleOf(peer)} ${standing(peer)}`,
		told,
		thing: "Peer",
		again: 5000,
		none: () => empty("Nobody is paired", "A peer is another machine that brings tools, answers questions or hears what happens. Pairing starts on the gateway's own machine (docs/peers.md):", h("code", "agent-gate pair tool URL NAME")),
		wanted,
		params,
	});

	function told(peer) {
		const active = peer.status === "active" && may("operate");
		const hosts = active && peer.role === "tool_host";
		return [
			h("h2", peer.name, " ", stateOf(standing(peer))),
			standing(peer) === "expired" && h("p", "It is not let in any more. Revoke it, and pair it again on the gateway's machine: ", h("code", "agent-gate pair")),
			active
				? h(
						"div.buttons",
						hosts && button(peer.trusted ? "Trust it no more" : "Trust what it says", () => trust(peer)),
						button("Revoke", () => revoke(peer)),
					)
				: null,
			facts(peer),
		];
	}

	async function trust(peer) {
		await post(`/api/peers/${segment(peer.name)}/trust`, { trusted: !peer.trusted });
		say(peer.trusted ? `${peer.name} is trusted no more` : `${peer.name} is trusted`);
		await page.load();
	}

	async function revoke(peer) {
		const text = "Its connections are closed, and it has to be paired again.";
		if (!(await sure(`Revoke ${peer.name}?`, text, "Revoke"))) return;
		await remove(`/api/peers/${segment(peer.name)}`);
		say(`${peer.name} is revoked`);
		await page.load();
	}

	return page.close;
}
