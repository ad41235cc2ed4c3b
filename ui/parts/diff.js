// A unified difference as lines: what is new stands out, what goes recedes.
import { button, h } from "../dom.js";
import { count } from "../format.js";

const MOST = 1000;

export function diff(text) {
	const kind = (line) => (line.startsWith("+") ? "span.plus" : line.startsWith("-") ? "span.minus" : "span");
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
