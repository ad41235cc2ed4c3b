// Small charts on an axis of time: bars over each other, and lines with gaps.
import { h, svg } from "../dom.js";
import { clock, day, span } from "../format.js";

const WIDE = 600;
const TALL = 120;
const TICKS = 5;
const DAY = 86_400;

const rule = (y) => svg("line", { x1: 0, x2: WIDE, y1: y, y2: y, class: "axis" });
const column = (at, step, high, kind) => svg("rect", { x: at * step, width: step, y: TALL - high, height: high, class: kind });

export const tick = (at, range) => (range > DAY ? day(at) : clock(at).slice(0, 5));

const axis = (points, every) => {
	const places = Array.from({ length: TICKS }, (_, place) => points[Math.round((place * (points.length - 1)) / (TICKS - 1))]);
	return h("div.ticks", { "aria-hidden": "true" }, places.map(({ at }) => h("span", tick(at, every * points.length))));
};

const hits = (points, says) => points.map((point, at) => {
	const node = column(at, WIDE / points.length, TALL, "hit");
	node.append(svg("title", {}, says(point)));
	return node;
});

// The next round number, of which half is round too; of a time, in seconds, minutes or hours.
function roundUp(high, shown) {
	const unit = (shown === span && [3600, 60].find((one) => high > one * 0.8)) || 1;
	const ten = unit * 10 ** Math.floor(Math.log10(high / unit));
	return ten * [1, 2, 4, 10].find((one) => one * ten >= high);
}

// `shown` says how a value is written on the axis at the side; without it there is none.
function plot(drawn, points, top, { label, every, says, shown }) {
	const sheet = svg("svg", { viewBox: `0 0 ${WIDE} ${TALL}`, preserveAspectRatio: "none", class: "chart", role: "img", "aria-label": label });
	sheet.append(...[0.5, TALL / 2, TALL - 0.5].map(rule), ...drawn, ...(says ? hits(points, says) : []));
	const values = shown && [shown(top), shown(top / 2), 0];
	return h("div.plot", values && h("div.scale", { "aria-hidden": "true" }, [...new Set(values)].map((value) => h("span", value))), sheet, every && axis(points, every));
}

// `series` are values with their colours, the largest first; `says` tells one point in words.
export function bars(points, series, more) {
	const [whole] = series[0];
	const top = roundUp(Math.max(1, ...points.map(whole)), more.shown);
	const bar = (value, kind) => (point, at) => value(point) > 0 && column(at + 0.1, WIDE / points.length, (value(point) / top) * TALL, kind);
	const drawn = series.flatMap((one) => points.map(bar(...one)));
	return plot(drawn.filter(Boolean), points, top, more);
}

function path(points, value, top) {
	const step = WIDE / points.length;
	let pen = "M";
	return points.reduce((drawn, point, at) => {
		const number = value(point);
		const start = pen;
		pen = number === null ? "M" : "L";
		if (number === null) return drawn;
		return `${drawn}${start}${(at * step).toFixed(1)} ${(TALL - (number / top) * TALL).toFixed(1)}h${step.toFixed(2)}`;
	}, "");
}

export function lines(points, series, more) {
	const top = roundUp(Math.max(1e-6, ...points.flatMap((point) => series.map(([value]) => value(point) ?? 0))), more.shown);
	return plot(series.map(([value, kind]) => svg("path", { d: path(points, value, top), class: kind })), points, top, more);
}
