// The admin API: requests with the session's key, errors in its own words, and the event stream.
import { heard } from "./clock.js";
import { forget, key } from "./session.js";

class ApiError extends Error {
	constructor(status, message) {
		super(message);
		this.status = status;
	}
}

async function failure(reply) {
	const said = await reply.json().catch(() => null);
	return new ApiError(reply.status, said?.error?.message ?? `The gateway answered ${reply.status} and nothing readable.`);
}

async function received(asked) {
	const reply = await asked.catch((error) => {
		if (error.name === "AbortError") throw error;
		throw new ApiError(0, "The gateway does not answer. Is it running?");
	});
	heard(reply.headers.get("date"));
	if (reply.ok) return reply;
	const error = await failure(reply);
	// Without a challenge, a 401 is about the passphrase; the session still counts.
	if (reply.headers.has("www-authenticate")) dispatchEvent(new CustomEvent("logged-out"));
	throw error;
}

function send(method, path, { body, signal } = {}) {
	const headers = { "agent-gate-key": key() };
	if (body !== undefined) headers["content-type"] = "application/json";
	return received(fetch(path, { method, headers, signal, body: JSON.stringify(body) }));
}

const json = async (asked) => (await asked).json();

export const taken = (asked) => json(received(asked));
export const get = (path) => json(send("GET", path));
export const post = (path, body = {}) => json(send("POST", path, { body }));
export const put = (path, body) => json(send("PUT", path, { body }));
export const remove = (path, body) => json(send("DELETE", path, { body }));
export const blob = async (path) => (await send("GET", path)).blob();
export const segment = encodeURIComponent;

export function query(values) {
	const given = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
	return given.length ? `?${new URLSearchParams(given)}` : "";
}

export async function logOut() {
	const left = await remove("/api/session").catch(() => ({}));
	forget();
	location.replace(left.log_out_at ?? "/");
}

function parse(block) {
	let kind = "message";
	let data = "";
	for (const line of block.split("\n")) {
		if (line.startsWith("event: ")) kind = line.slice(7);
		if (line.startsWith("data: ")) data += line.slice(6);
	}
	return data ? [kind, JSON.parse(data)] : null;
}

const SILENCE = 40_000; // milliseconds; the gateway says something every 15 seconds
const LOOK = 5_000;

// Ends a line that went dead without a word, as after a phone's sleep. The wall clock counts that sleep too.
function watched() {
	const line = new AbortController();
	let last = Date.now();
	const timer = setInterval(() => Date.now() - last > SILENCE && line.abort(), LOOK);
	return { signal: line.signal, heard: () => (last = Date.now()), over: () => clearInterval(timer) };
}

async function read(reply, onEvent, heardIt) {
	const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = "";
	for (;;) {
		const { value, done } = await reader.read();
		if (done) return;
		heardIt();
		const blocks = (rest + value).split("\n\n");
		rest = blocks.pop();
		for (const block of blocks) {
			const event = parse(block);
			if (event) onEvent(...event);
		}
	}
}

export async function follow(path, { onEvent, onOpen, onLost }) {
	for (let wait = 250; ; wait = Math.min(wait * 2, 5000)) {
		const line = watched();
		try {
			const reply = await send("GET", path, line);
			wait = 250;
			await onOpen();
			await read(reply, onEvent, line.heard);
		} catch (error) {
			if (error.status === 401) return;
		} finally {
			line.over();
		}
		onLost();
		await new Promise((done) => setTimeout(done, wait));
	}
}
