// Numbers and times for people.
import { now } from "./clock.js";

const two = (number) => String(number).padStart(2, "0");

export function clock(at) {
	const date = new Date(at * 1000);
	return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

const isToday = (at) => new Date().toDateString() === new Date(at * 1000).toDateString();

export function moment(at) {
	const date = new Date(at * 1000);
	return isToday(at) ? clock(at) : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(at)}`;
}

export const day = (at) => new Date(at * 1000).toLocaleDateString("en", { month: "short", day: "numeric" });
export const shortly = (at) => (isToday(at) ? clock(at) : `${day(at)} ${clock(at)}`);

export function span(seconds) {
	if (seconds === null || seconds === undefined) return "–";
	if (seconds < 1e-6) return "< 1 µs";
	if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
	if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
	if (seconds < 60) return `${seconds.toFixed(seconds < 10 && seconds % 1 ? 1 : 0)} s`;
	if (seconds < 3600) return both(seconds / 60, "min", seconds < 600 ? seconds % 60 : 0, "s");
	if (seconds < 86400) return both(seconds / 3600, "h", (seconds % 3600) / 60, "min");
	return many(Math.floor(seconds / 86400), "day");
}

const both = (large, unit, small, other) => `${Math.floor(large)} ${unit}${small >= 1 ? ` ${Math.floor(small)} ${other}` : ""}`;

function whole(seconds) {
	if (seconds < 60) return `${seconds} s`;
	if (seconds < 3600) return `${Math.floor(seconds / 60)}:${two(seconds % 60)}`;
	return span(seconds);
}

export const left = (until) => {
	const seconds = Math.ceil(until - now());
	return seconds > 0 ? `${whole(seconds)} left` : "time is over";
};
export const due = (at) => {
	const seconds = Math.ceil(at - now());
	return seconds > 0 ? `in ${whole(seconds)}` : "now";
};
export const ago = (at) => {
	const seconds = Math.floor(now() - at);
	if (seconds < 2) return "just now";
	return seconds < 60 ? `${seconds} s ago` : `${span(seconds - (seconds < 3600 ? seconds % 60 : 0))} ago`;
};
export const since = (at) => `${moment(at)}, ${ago(at)}`;
export const place = (where) => where.replace(/^.*[\\/]/, "").replace(/(:\d+):\d+$/, "$1");
export const count = (number) => Math.round(number).toLocaleString("en");
export const many = (number, one, more = `${one}s`) => `${count(number)} ${number === 1 ? one : more}`;

export const clipped = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);

export function names(all, most = 3) {
	const shown = all.slice(0, most).map((name) => clipped(name, 40));
	return all.length > most ? `${shown.join(", ")} and ${count(all.length - most)} more` : shown.join(", ");
}

export function bytes(size) {
	if (size === null || size === undefined) return "–";
	if (size < 1024) return `${size} B`;
	return size < 1 << 20 ? `${(size / 1024).toFixed(1)} KB` : `${(size / (1 << 20)).toFixed(1)} MB`;
}

export function save(name, body) {
	const url = URL.createObjectURL(body);
	const link = document.createElement("a");
	Object.assign(link, { href: url, download: name });
	link.click();
	setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g;
const code = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

// A terminal obeys control characters also inside quotes, so they are pasted as escapes.
function quoted(text) {
	if (/^[\w@%+=:,./-]+$/.test(text)) return text;
	if (text.search(CONTROL) < 0) return `'${text.replaceAll("'", "'\\''")}'`;
	return `$'${text.replace(/[\\']/g, "\\$&").replace(CONTROL, code)}'`;
}

export const shell = (words) => words.map(quoted).join(" ");

const json = (value, indent) => JSON.stringify(value, null, indent).replace(/[\u007f-\u009f]/g, code);

// Names come from whoever made the call: one that could pass for an option or a file is given as JSON.
function command(tool, args) {
	const words = ["agent-gate", "request", ...(tool.startsWith("-") ? ["--"] : []), tool];
	if (!Object.keys(args).every((name) => /^[A-Za-z_][\w.-]*$/.test(name)))
		return `${shell(["printf", "%s", json(args)])} | ${shell([...words, "-"])}`;
	const pairs = Object.entries(args).map(([name, value]) =>
		typeof value === "string" ? `${name}=${value}` : `${name}:=${json(value)}`,
	);
	return shell([...words, ...pairs]);
}

export function copies(tool, args, url) {
	const body = json(args);
	return {
		CLI: command(tool, args),
		curl: `${shell(["curl", "-sS", "-X", "POST", `${url}/api/tools/${encodeURIComponent(tool)}`])} -H "Authorization: Bearer $AGENT_TOKEN" ${shell(["-H", "Content-Type: application/json", "-d", body])}`,
		TypeScript: `import { callTool } from "./tools.ts";\n\nconst result = await callTool(${json(tool)}, ${json(args, 2)});\n`,
	};
}
