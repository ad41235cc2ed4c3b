// One place for keys: pages bring their own, `g` and a letter changes the page, `?` shows them all.
import { h } from "./dom.js";

const PAGES = {
  n: "now",
  a: "approvals",
  c: "calls",
  t: "tools",
  s: "sources",
  p: "policy",
  e: "agents",
  o: "connect",
  h: "health",
};
const OFF = "agent-gate-keys-off";
let own = {};
let waitingForPage = false;

export function keys(map) {
  own = map;
}

// Whoever reads what was chosen scrolls with the arrows; elsewhere they walk through the list.
const reading = ({ target }) => target instanceof Element && target.closest(".over") !== null;
const typing = (target) => target instanceof Element && target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");

// Letters that act can be switched off: whoever speaks to the machine, or slips on the keyboard, must answer nothing.
const lettersCount = () => localStorage.getItem(OFF) === null;
const isLetter = ({ key }) => key.length === 1;

function letters() {
  const onchange = ({ target }) => (target.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1"));
  return h("label", h("input", { type: "checkbox", checked: lettersCount(), onchange }), " letters and signs act");
}

export function help() {
  const rows = [
    ...Object.entries(PAGES).map(([key, page]) => [`g ${key}`, `the page ${page}`]),
    ...Object.entries(own)
      .filter(([, entry]) => entry.says)
      .map(([key, entry]) => [key, entry.says]),
    ["/", "search"],
    ["Esc", "leave a field, close this"],
  ];
  const dialog = h(
    "dialog",
    { "aria-label": "Keys" },
    h("h2", "Keys"),
    h(
      "dl.keys",
      rows.map(([key, says]) => [h("dt", h("kbd", key)), h("dd", says)]),
    ),
    h("form", { method: "dialog" }, h("div.buttons", h("button", "Close"), letters())),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (typing(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (isLetter(event) ? !lettersCount() : reading(event)) return;
  if (waitingForPage) {
    waitingForPage = false;
    if (PAGES[event.key]) location.hash = `#/${PAGES[event.key]}`;
    return;
  }
  if (event.key === "g") waitingForPage = true;
  else if (event.key === "?") help();
  else if (event.key === "/") document.querySelector("main input[type=search]")?.focus();
  else if (own[event.key]) own[event.key].does(event);
  else return;
  event.preventDefault();
}

addEventListener("keydown", press);
