// The gateway's time. A browser's own clock may be wrong, and what is left of a question is counted by the gateway.
const NOTICED = 5; // seconds; less is the way of a reply and the coarseness of its date
let ahead = 0;

export function heard(date) {
	const off = Date.parse(date) / 1000 - Date.now() / 1000;
	ahead = Math.abs(off) > NOTICED ? off : 0;
}

export const now = () => Date.now() / 1000 + ahead;
