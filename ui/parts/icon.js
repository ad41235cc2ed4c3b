// Icons drawn for this page: strokes on a grid of sixteen, in the colour of the words beside them.
import { svg } from "../dom.js";

const DRAWN = {
	good: "M3 8.5 6.5 12 13 4.5",
	fail: "M4 4l8 8M12 4l-8 8",
	no: "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 0 0 0-11M4.1 4.1l7.8 7.8",
	wait: "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 0 0 0-11M8 5v3.3l2.3 1.4",
	risk: "M8 2.2 14.2 13.3H1.8ZM8 6.2v3.4M8 11.4v.3",
	destructive: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9M6.9 7v4M9.1 7v4",
	outward: "M6 3H3v10h10v-3M9 2.8h4.2V7M13 3 7.2 8.8",
	first: "M8 2v3.4M8 10.6V14M2 8h3.4M10.6 8H14M4 4l2 2M10 10l2 2M12 4l-2 2M6 10l-2 2",
	unusual: "M5.4 6a2.6 2.6 0 1 1 3.7 2.4c-.8.4-1.1.8-1.1 1.6M8 12.4v.3",
};

export const ICONS = Object.keys(DRAWN);

export const icon = (name) => svg("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" }, svg("path", { d: DRAWN[name] }));
