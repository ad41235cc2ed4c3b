// A change to a file: the difference is shown first, and only what was shown is written.
import { post } from "../api.js";
import { button, h, live, say, show } from "../dom.js";
import { count } from "../format.js";
import { me } from "../me.js";
import { passphrase } from "./answering.js";
import { opened } from "./dialog.js";

const MOST = 1000;

// A unified difference as lines: what goes is struck through.
export function diff(text) {
	const kind = (line) => (line.startsWith("+") ? "span.plus.good" : line.startsWith("-") ? "span.minus.fail" : "span");
	const lines = text.split("\n").filter((line, at) => at > 1 || !/^(---|\+\+\+) /.test(line));
	const drawn = (part) => part.map((line) => h(kind(line), line));
	const sheet = h("pre.diff", drawn(lines.slice(0, MOST)));
	if (lines.length <= MOST) return sheet;
	const more = button(`Show all ${count(lines.length)} lines`, () => {
		sheet.append(...drawn(lines.slice(MOST)));
		more.remove();
	});
	return h("div", sheet, more);
}

const ends = (...buttons) => h("div.buttons", buttons);

export async function preview(place, path, change, done) {
	const { file, diff: text, digest, needs_trust: trust } = await post(path, change);
	const write = async () => {
		const phrase = trust === false ? undefined : await passphrase();
		const { held, says } = await post(path, { ...change, apply: true, digest, passphrase: phrase });
		if (held) return void show(place, h("p", says), h("pre", `agent-gate entries accept ${held}`), ends(button("Close", done)));
		say(`${file} was changed, and counts from now on`);
		done();
	};
	show(
		place,
		h("p", h("code", file)),
		diff(text),
		trust && h("p.soft", me.passphrase ? "Your passphrase is asked for." : "It takes effect after a yes on the gateway's terminal."),
		ends(button("Write it", write, { kind: "strong" }), button("Not now", done)),
	);
}

export const tryPreview = (place, path, change, done) =>
	preview(place, path, change, done).catch((error) => show(place, h("p", error.message), ends(button("Close", done))));

export function openChange(title, path, change, again) {
	const place = live();
	const dialog = opened(title, place);
	tryPreview(place, path, change, () => {
		dialog.close();
		again();
	});
}
