// The frame around the pages: navigation, who is logged in, whether the line is up.
import { get, logOut } from "./api.js";
import { button, h, show } from "./dom.js";
import { many } from "./format.js";
import { inbox, listen, start } from "./inbox.js";
import { help, keys } from "./keyboard.js";
import { me } from "./me.js";
import { agents } from "./pages/agents.js";
import { approvals } from "./pages/approvals.js";
import { calls } from "./pages/calls.js";
import { connect } from "./pages/connect.js";
import { connections } from "./pages/connections.js";
import { health } from "./pages/health.js";
import { now } from "./pages/now.js";
import { peers } from "./pages/peers.js";
import { policy } from "./pages/policy.js";
import { sources } from "./pages/sources.js";
import { tools } from "./pages/tools.js";

const PAGES = {
  now: ["Now", now],
  approvals: ["Approvals", approvals],
  calls: ["Calls", calls],
  tools: ["Tools", tools],
  sources: ["Sources", sources],
  connections: ["Connections", connections],
  peers: ["Peers", peers],
  policy: ["Policy", policy],
  agents: ["Agents", agents],
  connect: ["Connect", connect],
  health: ["Health", health],
};
const main = document.getElementById("main");
const nav = document.getElementById("nav");
const top_ = document.getElementById("top");
let leave = () => {};
let waited = 0;

function frame() {
  show(
    nav,
    Object.entries(PAGES).map(([name, [title]]) =>
      h(
        "a",
        { href: `#/${name}`, "data-page": name },
        title,
        name === "approvals" ? h("b.badge", { hidden: true }) : null,
      ),
    ),
  );
  show(
    top_,
    h("a.name", { href: "#/now" }, "agent-gate"),
    h("h1.unseen"),
    h("span.news.unseen", { role: "status" }),
    h("span.line", { role: "status" }),
    h("span.who"),
    button("Keys", help, { kind: "quiet", key: "?" }),
    button("Log out", logOut, { kind: "quiet" }),
  );
}

// Said to those who do not see the number change.
function announce(number) {
  if (number === waited) return;
  const news = top_.querySelector(".news");
  news.textContent = number > waited ? `${many(number, "question waits", "questions wait")} for an answer` : "";
  waited = number;
}

function status() {
  const badge = nav.querySelector(".badge");
  const number = inbox.open.size;
  badge.hidden = number === 0;
  badge.textContent = number;
  announce(number);
  document.title = `${number ? `(${number}) ` : ""}${PAGES[here()[0]][0]} · agent-gate`;
  const line = top_.querySelector(".line");
  line.textContent = inbox.online ? "" : "Reconnecting to the gateway…";
}

// A part of a link as it was meant; one that is broken stands for itself.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function here() {
  const [page, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  return [Object.hasOwn(PAGES, page) ? page : "now", ...rest.map(decoded)];
}

function open() {
  const [page, ...rest] = here();
  leave();
  keys({});
  for (const link of nav.children) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  top_.querySelector("h1").textContent = PAGES[page][0];
  nav.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  main.className = `page ${page}`;
  main.replaceChildren();
  leave = PAGES[page][1](main, rest) ?? (() => {});
  status();
}

// As a link it would change the page, because pages are what stands behind #.
function skip(event) {
  event.preventDefault();
  main.focus();
}

function loggedOut() {
  leave();
  show(
    document.body,
    h(
      "main.welcome",
      h("h1", "You are logged out"),
      h("p", "On the gateway's machine, run"),
      h("pre", h("code", "agent-gate login")),
      h("p.quiet", "and open the link it prints."),
    ),
  );
}

addEventListener("logged-out", loggedOut, { once: true });
addEventListener("hashchange", open);
document.querySelector(".skip").addEventListener("click", skip);
frame();
listen(status);
open();
start();
get("/api/me").then(
  (who) => {
    Object.assign(me, who);
    top_.querySelector(".who").textContent = who.person;
  },
  () => {},
);
