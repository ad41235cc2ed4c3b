// The session's second half: kept per origin, so that no other port of this host can read or send it.
const NAME = "agent-gate-key";
const WANTED = "agent-gate-wanted";

export const keep = (key) => localStorage.setItem(NAME, key);
export const key = () => localStorage.getItem(NAME) ?? "";
export const forget = () => localStorage.removeItem(NAME);

// The place that somebody wanted to see before they had to log in; a login link may open in another tab.
export const want = (place) => localStorage.setItem(WANTED, place);
export function wanted() {
	const place = localStorage.getItem(WANTED) ?? "";
	localStorage.removeItem(WANTED);
	return place;
}
