// What is asked before an answer counts: the passphrase, and a last look at an answer to many.
import { h } from "./dom.js";
import { many, names } from "./format.js";
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

// A way out that needs no key: a phone has no Esc.
const notNow = () => h("button", { value: "", formNoValidate: true }, "Not now");

// The approver's passphrase where this gateway wants one; undefined where it does not.
export async function passphrase() {
  if (!me.passphrase) return undefined;
  const input = h("input", { type: "password", autocomplete: "off", required: true });
  const label = h("label.block", h("span", "Your approver's passphrase"), input);
  const yes = h("button.strong", { value: "yes" }, "Answer");
  const form = h("form", { method: "dialog" }, label, h("div.buttons", yes, notNow()));
  const said = await ask(h("dialog", { "aria-label": "Passphrase" }, form), input);
  if (said !== "yes" || !input.value) throw new Error("Not answered: no passphrase was given");
  return input.value;
}

// What the signature leaves out would be answered unseen; it is named at least.
function asked({ signature, agent, not_in_signature: more }) {
  const beside = more?.length ? h("span.mark", `with ${names(more)}, which the signature does not show`) : null;
  return h("li", h("code", signature), ` (${agent})`, beside);
}

export async function confirmMany(title, ids) {
  const rows = ids
    .slice(0, LISTED)
    .map((id) => inbox.open.get(id))
    .filter(Boolean);
  const yes = h("button.strong", { value: "yes" }, title);
  const dialog = h(
    "dialog",
    { "aria-label": title },
    h("h2", `${title}: ${many(ids.length, "question")}`),
    h(
      "ul",
      { tabIndex: 0 },
      rows.map(asked),
    ),
    ids.length > rows.length ? h("p", `and ${ids.length - rows.length} more`) : null,
    h("form", { method: "dialog" }, h("div.buttons", yes, notNow())),
  );
  return (await ask(dialog, yes)) === "yes";
}
