// Where a call's time went. A person's minutes would crush the machine's milliseconds, so they have a place of their own.
import { h } from "../dom.js";
import { span } from "../format.js";

const PERSON = "for a person";
const ASIDE = 22; // per cent of the track that stand for the shorter of the two, however short it was

const isPerson = (part) => part.name.endsWith(PERSON);
const length = (part) => part.end - part.start;
const total = (parts) => parts.reduce((sum, part) => sum + length(part), 0);

export function waterfall(spans) {
	if (!spans.length) return h("p.soft", "The call ended before there was anything to measure.");
	const [person, machine] = [total(spans.filter(isPerson)), total(spans.filter((part) => !isPerson(part)))];
	const aside = spans.some(isPerson) ? (machine ? (person > machine ? 100 - ASIDE : ASIDE) : 100) : 0;
	let at = 0;
	const row = (part) => {
		const wide = isPerson(part) ? aside * (person ? length(part) / person : 1) : (100 - aside) * (machine ? length(part) / machine : 0);
		const bit = h(isPerson(part) ? "div.bit.wait" : "div.bit");
		bit.style.left = `${Math.min(at, 99.5)}%`;
		bit.style.width = `${wide}%`;
		at += wide;
		return [h("span.label", part.name), h("div.track", bit), h("span.time", span(length(part)))];
	};
	const rows = spans.map(row);
	return h(
		"div",
		h("p.meta", "machine ", h("strong", span(machine)), aside ? [" · person ", h("strong.asks", span(person)), " (not to scale)"] : null),
		h("div.waterfall", rows),
	);
}
