// Follows a one-time link: the secret behind # becomes a cookie and the key that goes with it. Where a place of the page
// stands behind #, somebody has to log in first to see it.
import { keep, want, wanted } from "./session.js";

const [title, said, ways] = ["title", "said", "ways"].map((id) => document.getElementById(id));
const behind = location.hash.slice(1);

function say(heading, text, kind = "") {
	title.textContent = heading;
	said.textContent = text;
	said.className = kind;
	ways.hidden = false;
	offer().catch(() => {});
}

async function open() {
	history.replaceState(null, "", "/login");
	const reply = await fetch("/api/session", {
		method: "POST",
		headers: { "content-type": "application/json" },
		body: JSON.stringify({ link: behind }),
	});
	const body = await reply.json();
	if (!reply.ok) throw new Error(body.error.message);
	keep(body.key);
	const place = wanted();
	location.replace(place ? `/#${place}` : "/");
}

async function offer() {
	const reply = await fetch("/oidc/offer");
	if (!reply.ok) return;
	const place = document.getElementById("provider");
	place.firstElementChild.textContent = `Log in with ${(await reply.json()).provider}`;
	place.hidden = false;
}

if (behind && !behind.startsWith("/")) {
	ways.hidden = true;
	said.textContent = "Logging in…";
	open().catch((error) => say("That link did not log you in", error.message, "fault"));
} else if (behind && location.pathname === "/login") say("You are logged out", "Log in again, and you are back where you were.");
else say(title.textContent, said.textContent);
if (behind.startsWith("/")) want(behind);
