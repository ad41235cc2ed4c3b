// Text that a program printed; of a stack trace the frames recede.
import { h } from "../dom.js";

const TRACE = /^(Traceback \(most recent call last\):|\s*at .+[:(]\d+[:)]|Caused by:|goroutine \d+|panicked at)/m;
const FRAME = /^\s+(at |File "|\S)|^(Traceback|goroutine )/;

const isTrace = (text) => TRACE.test(text);

export function printed(text) {
	if (!isTrace(text)) return h("pre", text);
	const line = (words) => h(FRAME.test(words) ? "span.frame" : "span.wrong", words || " ");
	return h("pre.stack", { "aria-label": "Stack trace" }, text.split("\n").map(line));
}
