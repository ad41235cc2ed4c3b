// The frame around the pages: navigation, who is logged in, whether the line is up.
import { get, logOut, taken } from "./api.js";
import { button, fault, h, show } from "./dom.js";
import { who } from "./early.js";
import { many } from "./format.js";
import { inbox, isBroken, listen, start } from "./inbox.js";
import { help, keys, onPalette, pageKeys } from "./keyboard.js";
import { may, me } from "./me.js";

const PAGES = {
	now: ["Now", "n"],
	approvals: ["Approvals", "a"],
	calls: ["Calls", "c"],
	tools: ["Tools", "t"],
	sources: ["Sources", "s"],
	secrets: ["Secrets", "k"],
	accounts: ["Accounts", "u"],
	peers: ["Peers", "r"],
	policy: ["Policy", "p"],
	agents: ["Agents", "e"],
	connect: ["Connect an agent", "o"],
	health: ["Health", "h"],
	you: ["You", "y"],
};
const LATER = 2_000; // milliseconds until the other pages are fetched too
const COUNTED = { now: "broken", approvals: "badge" };
const main = document.getElementById("main");
const nav = document.getElementById("nav");
const more = h("button.more", { type: "button", onclick: () => unfold(!nav.matches(".open")) }, "More");
const top_ = document.getElementById("top");
let leave = () => {};
let turns = 0;
let waited = 0;

const load = (page) => import(`./pages/${page}.js`);

function frame() {
	const link = ([name, [title]]) =>
		h("a", { href: `#/${name}`, "data-page": name }, title, COUNTED[name] ? h(`b.${COUNTED[name]}`, { hidden: true }) : null);
	show(nav, Object.entries(PAGES).slice(0, -1).map(link), more);
	show(
		top_,
		h("a.name", { href: "#/now" }, "agent-gate"),
		h("h1.unseen"),
		h("span.news.unseen", { role: "status" }),
		h("span.line", { role: "status" }),
		h("a.who", { href: "#/you", "data-page": "you", title: "You and your devices" }),
		button("Find", find, { kind: "quiet", key: "Ctrl K" }),
		button("Keys", help, { kind: "quiet", key: "?" }),
		button("Log out", logOut, { kind: "quiet" }),
	);
}

async function find() {
	const { palette } = await import("./parts/palette.js");
	const tabs = [["History of answers", "#/approvals?tab=history"], ["Grants: answers that are remembered", "#/approvals?tab=grants"]];
	return palette([...Object.entries(PAGES).map(([name, [title]]) => [title, `#/${name}`]), ...tabs]);
}

function unfold(open) {
	nav.classList.toggle("open", open);
	more.setAttribute("aria-expanded", open);
}

function announce(number) {
	if (number === waited) return;
	const news = top_.querySelector(".news");
	news.textContent = number > waited ? `${many(number, "question waits", "questions wait")} for an answer` : "";
	waited = number;
}

function count(name, number) {
	const node = nav.querySelector(`.${name}`);
	node.hidden = number === 0;
	node.textContent = number;
}

async function look() {
	const { needs } = await get("/api/now").catch(() => inbox);
	inbox.needs = needs.filter(isBroken);
	count("broken", inbox.needs.length);
}

function status() {
	const number = inbox.open.size;
	count("badge", number);
	announce(number);
	document.title = `${number ? `(${number}) ` : ""}${PAGES[here()[0]][0]} · agent-gate`;
	const line = top_.querySelector(".line");
	line.textContent = inbox.online ? "" : "Reconnecting to the gateway…";
}

function decoded(part) {
	try {
		return decodeURIComponent(part);
	} catch {
		return part;
	}
}

function here() {
	const [page, ...rest] = location.hash.replace(/^#\/?|\?.*$/g, "").split("/");
	return [Object.hasOwn(PAGES, page) ? page : "now", ...rest.map(decoded)];
}

const params = () => new URLSearchParams(location.hash.split("?")[1] ?? "");

// Draws the page that the address names; where it has to be fetched first, only the last one asked for counts.
async function open() {
	const [page, ...rest] = here();
	const mine = (turns += 1);
	leave();
	leave = () => {};
	keys({});
	for (const link of [...nav.children, top_.querySelector(".who")]) {
		if (link.dataset.page === page) link.setAttribute("aria-current", "page");
		else link.removeAttribute("aria-current");
	}
	top_.querySelector("h1").textContent = PAGES[page][0];
	unfold(false);
	main.className = `page ${page}`;
	main.replaceChildren();
	status();
	const draw = await load(page).then((module) => module[page], () => missing);
	if (mine === turns) leave = draw(main, rest, params()) ?? leave;
}

function missing(place) {
	show(place, fault(new Error("This page did not come. Is the gateway running?"), () => location.reload()));
}

// As a link it would change the page, because pages are what stands behind #.
function skip(event) {
	event.preventDefault();
	main.focus();
}

function loggedOut() {
	leave();
	location.replace(`/login${location.hash || "#/now"}`);
}

function turnedAway({ message }) {
	const out = button("Log out", logOut, { kind: "strong" });
	show(document.body, h("main.welcome", h("div.card", h("h1", "This page is not for you"), h("p", message), h("div.buttons", out))));
}

const RIGHTS = [["operate", ""], ["answer", " (may answer)"], ["view", " (may look)"]];

async function know(asked) {
	Object.assign(me, await asked);
	top_.querySelector(".who").textContent = me.person + RIGHTS.find(([right]) => may(right))[1];
}

// A tapped message opens its question in the page that is there already.
function followTaps() {
	navigator.serviceWorker?.addEventListener("message", ({ data }) => {
		if (/^\/#\//.test(data.open)) location.hash = data.open.slice(1);
	});
}

// What is shown follows what this person may do, so it is known before the first page opens.
async function begin() {
	try {
		await know(taken(who));
	} catch (error) {
		if (error.status === 403) return turnedAway(error);
	}
	addEventListener("hashchange", open);
	start();
	setTimeout(() => Object.keys(PAGES).forEach((page) => load(page).catch(() => {})), LATER);
	look();
	return open();
}

addEventListener("logged-out", loggedOut, { once: true });
onPalette(find);
pageKeys(Object.fromEntries(Object.entries(PAGES).map(([name, [title, key]]) => [key, [name, title]])));
document.querySelector(".skip").addEventListener("click", skip);
followTaps();
frame();
listen((kind) => {
	status();
	if (kind === "online" || kind === "catalog") look();
	if (kind === "back") know(get("/api/me")).catch(() => {});
});
begin();
