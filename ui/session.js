// The session's second half: kept per origin, so that no other port of this host can read or send it.
const NAME = "agent-gate-key";

export const keep = (key) => localStorage.setItem(NAME, key);
export const key = () => localStorage.getItem(NAME) ?? "";
export const forget = () => localStorage.removeItem(NAME);
