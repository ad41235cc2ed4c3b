// The open questions as they are now, kept by the event stream; pages listen for changes.
import { follow, get } from "./api.js";
import { now } from "./clock.js";

export const inbox = { open: new Map(), known: false, online: true, problem: null, needs: [] };
const listeners = new Set();
let told = 0;
let arrived = null; // what came while a list was on its way: it may be newer than that list

export const isBroken = ({ kind }) => kind !== "warning";

export const isOver = (approval) => approval.expires_at <= now();

const WORST = ["first", "unusual", "outward", "destructive"];
const weight = ({ risks = [] }) => risks.reduce((sum, name) => sum + 2 ** WORST.indexOf(name), 0);

// The most dangerous first, then those with the least time left.
export const waiting = () => [...inbox.open.values()].sort((one, other) => weight(other) - weight(one) || one.expires_at - other.expires_at);

export function listen(listener) {
	listeners.add(listener);
	return () => listeners.delete(listener);
}

function tell(kind) {
	for (const listener of listeners) listener(kind);
}

function soon() {
	told ||= requestAnimationFrame(() => {
		told = 0;
		tell("approvals");
	});
}

function put(approval) {
	if (approval.state === "pending") inbox.open.set(approval.id, approval);
	else inbox.open.delete(approval.id);
}

function take(approval) {
	arrived?.push(approval);
	put(approval);
	soon();
}

export async function reload() {
	const mine = (arrived = []);
	try {
		const rows = await get("/api/approvals?brief=1");
		if (mine !== arrived) return;
		inbox.open = new Map(rows.filter((row) => !isOver(row)).map((row) => [row.id, row]));
		mine.forEach(put);
		inbox.problem = null;
	} catch (error) {
		if (mine !== arrived) return;
		inbox.problem = error;
	}
	arrived = null;
	inbox.known = true;
	soon();
}

// Whose time is over cannot be answered any more, also where nobody says so.
function sweep() {
	for (const one of inbox.open.values()) {
		if (!isOver(one)) continue;
		inbox.open.delete(one.id);
		soon();
	}
}

export function start() {
	let lost = false;
	setInterval(sweep, 1000);
	follow("/api/events?brief=1", {
		onEvent(kind, value) {
			if (kind === "approval") take(value);
			else if (kind === "missed") reload();
			else tell(kind);
		},
		async onOpen() {
			inbox.online = true;
			await reload();
			if (!lost) return;
			lost = false;
			tell("online");
			tell("back");
		},
		onLost() {
			inbox.online = false;
			lost = true;
			tell("online");
		},
	});
}
