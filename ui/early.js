// Runs before the rest has come: asks for the modules of the page that the address names, and who is logged in.
import { key } from "./session.js";

const needs = new Map(Object.entries(JSON.parse(document.querySelector("[data-needs]").dataset.needs)));

for (const path of needs.get(location.hash.split(/[/?]/)[1]) ?? needs.get("now")) {
	const link = document.createElement("link");
	document.head.append(Object.assign(link, { rel: "modulepreload", href: new URL(path, import.meta.url) }));
}

export const who = fetch("/api/me", { headers: { "agent-gate-key": key() } });
who.catch(() => {}); // whoever waits for it hears of it
