// Small charts on an axis of time: bars over each other, and lines with gaps.
import { h, svg } from "../dom.js";
import { clock, day } from "../format.js";

const WIDE = 600;
const TALL = 120;
const TICKS = 5;
const DAY = 86_400;

const sheet = (label) => svg("svg", { viewBox: `0 0 ${WIDE} ${TALL}`, preserveAspectRatio: "none", class: "chart", role: "img", "aria-label": label });
const rule = (y) => svg("line", { x1: 0, x2: WIDE, y1: y, y2: y, class: "axis" });
const column = (at, step, high, kind) => svg("rect", { x: at * step, width: step, y: TALL - high, height: high, class: kind });

export const tick = (at, span) => (span > DAY ? day(at) : clock(at).slice(0, 5));

const axis = (points, every) => {
	const places = Array.from({ length: TICKS }, (_, place) => points[Math.round((place * (points.length - 1)) / (TICKS - 1))]);
	return h("div.ticks", { "aria-hidden": "true" }, places.map(({ at }) => h("span", tick(at, every * points.length))));
};

const hits = (points, says) => points.map((point, at) => {
	const node = column(at, WIDE / points.length, TALL, "hit");
	node.append(svg("title", {}, says(point)));
	return node;
});

// `series` are values with their colours, the largest first; `says` tells one point in words.
export function bars(points, series, { label, every, says }) {
	const [whole] = series[0];
	const high = Math.max(1, ...points.map(whole));
	const step = WIDE / points.length;
	const drawn = series.flatMap(([value, kind]) =>
		points.map((point, at) => (value(point) > 0 ? column(at + 0.1, step, (value(point) / high) * (TALL - 4), kind) : null)),
	);
	const drawing = sheet(label);
	drawing.append(rule(0.5), rule(TALL - 0.5), ...drawn.filter(Boolean), ...(says ? hits(points, says) : []));
	return [every ? [drawing, axis(points, every)] : drawing, high];
}

function path(points, value, high) {
	const step = WIDE / points.length;
	let pen = "M";
	return points.reduce((drawn, point, at) => {
		const number = value(point);
		const start = pen;
		pen = number === null ? "M" : "L";
		if (number === null) return drawn;
		return `${drawn}${start}${(at * step).toFixed(1)} ${(TALL - 2 - (number / high) * (TALL - 6)).toFixed(1)}h${step.toFixed(2)}`;
	}, "");
}

export function lines(points, series, { label, every, says }) {
	const high = Math.max(1e-6, ...points.flatMap((point) => series.map(([value]) => value(point) ?? 0)));
	const drawing = sheet(label);
	drawing.append(rule(0.5), rule(TALL - 0.5), ...series.map(([value, kind]) => svg("path", { d: path(points, value, high), class: kind })), ...hits(points, says));
	return [[drawing, axis(points, every)], high];
}
