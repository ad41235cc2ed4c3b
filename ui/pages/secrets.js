// Secrets: what the vault keeps and the files only name, and who uses each.
import { get } from "../api.js";
import { button, empty, h } from "../dom.js";
import { ago, since } from "../format.js";
import { field, twoLines } from "../layout.js";
import { may } from "../me.js";
import { Collection } from "../parts/collection.js";
import { icon } from "../parts/icon.js";
import { forgetSecret, typeSecret } from "../parts/vault.js";

const users = (one) => one.used_by.join(", ") || "nothing";

const row = (one) =>
	twoLines(one.name, one.updated_at ? `set ${ago(one.updated_at)}` : h("span.word.fail", icon("fail"), "not set"), `used by ${users(one)}`);

export function secrets(main, [wanted], params) {
	const page = new Collection(main, {
		load: async () => (await get("/api/secrets")).sort((one, other) => Boolean(one.updated_at) - Boolean(other.updated_at)),
		key: (one) => one.name,
		row,
		text: (one) => `${one.name} ${users(one)}`,
		told,
		thing: "Secret",
		none: () => empty("There is no secret", "Keep a token or a password here, and name it in the configuration as vault:NAME.", add()),
		bar: add(),
		wanted,
		params,
	});

	function add() {
		return may("operate") ? button("Add a secret", () => typeSecret("", again)) : null;
	}

	async function again(name) {
		await page.load();
		if (name) page.list.select(name, true);
	}

	function told(one) {
		const source = (name) => (name.includes(" ") ? name : h("a", { href: `#/sources/${encodeURIComponent(name)}` }, name));
		return [
			h("h2", one.name),
			h(
				"dl.facts",
				field("write it as", h("code", `vault:${one.name}`)),
				field("set", one.updated_at ? since(one.updated_at) : "not yet: whoever uses it cannot connect"),
				field("used by", one.used_by.length ? one.used_by.map((name, at) => [at ? ", " : "", source(name)]) : "nothing"),
			),
			may("operate")
				? h(
						"div.buttons",
						button(one.updated_at ? "Replace…" : "Set…", () => typeSecret(one.name, again), { kind: "strong" }),
						one.updated_at && button("Remove…", () => forgetSecret(one).then(() => again())),
					)
				: null,
		];
	}

	return page.close;
}
