// What is asked before an answer counts: the passphrase, and a last look at an answer to many.
import { h } from "./dom.js";
import { many } from "./format.js";
import { inbox } from "./inbox.js";
import { me } from "./me.js";

const LISTED = 100;

// Shows a dialog and resolves with what its form returned; closing it otherwise gives "".
function ask(dialog, focus) {
  document.body.append(dialog);
  dialog.showModal();
  focus.focus();
  return new Promise((done) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      done(dialog.returnValue);
    });
  });
}

// The approver's passphrase where this gateway wants one; undefined where it does not.
export async function passphrase() {
  if (!me.passphrase) return undefined;
  const input = h("input", { type: "password", autocomplete: "off", required: true });
  const label = h("label.block", h("span", "Your approver's passphrase"), input);
  const form = h("form", { method: "dialog" }, label, h("div.buttons", h("button.strong", "Answer")));
  await ask(h("dialog", form), input);
  if (!input.value) throw new Error("Not answered: no passphrase was given");
  return input.value;
}

export async function confirmMany(title, ids) {
  const rows = ids
    .slice(0, LISTED)
    .map((id) => inbox.open.get(id))
    .filter(Boolean);
  const yes = h("button.strong", { value: "yes" }, title);
  const dialog = h(
    "dialog",
    h("h2", `${title}: ${many(ids.length, "question")}`),
    h(
      "ul",
      rows.map((item) => h("li", h("code", item.signature), ` (${item.agent})`)),
    ),
    ids.length > rows.length ? h("p", `and ${ids.length - rows.length} more`) : null,
    h("form", { method: "dialog" }, h("div.buttons", yes, h("button", { value: "" }, "Not now"))),
  );
  return (await ask(dialog, yes)) === "yes";
}
