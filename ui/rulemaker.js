// "Make a rule from this": the change to the file is shown first, and only what was shown is written.
import { post } from "./api.js";
import { diff } from "./diff.js";
import { button, h, say, show } from "./dom.js";
import { chosen } from "./layout.js";

const ACTIONS = [
  ["allow", "allow"],
  ["ask", "ask a person"],
  ["deny", "deny"],
];
const SCOPES = [
  ["exact", "exactly this call"],
  ["tool", "every call of this tool"],
];

export function makeRule(approval, passphrase) {
  const wanted = { approval: approval.id, action: "allow", scope: "exact" };
  const place = h("div", { "aria-live": "polite" });
  const dialog = h(
    "dialog",
    { "aria-label": "Make a rule from this" },
    h("h2", "Make a rule from this"),
    h(
      "p.soft",
      "The rule decides calls from now on, and it stays in the file. This question still waits for its own answer.",
    ),
    h(
      "div.buttons",
      chosen(ACTIONS, "allow", (action) => look({ action }), "What the rule does"),
      chosen(SCOPES, "exact", (scope) => look({ scope }), "What it covers"),
    ),
    place,
  );

  const leave = () => button("Not now", () => dialog.close());

  async function look(change = {}) {
    Object.assign(wanted, change);
    try {
      const shown = await post("/api/policy/rules", wanted);
      show(
        place,
        h("p", h("code", shown.file)),
        diff(shown.diff),
        h(
          "div.buttons",
          button("Write it", () => write(shown), { kind: "strong" }),
          leave(),
        ),
      );
    } catch (error) {
      show(place, h("p", error.message), h("div.buttons", leave()));
    }
  }

  async function write(shown) {
    await post("/api/policy/rules", { ...wanted, apply: true, digest: shown.digest, passphrase: await passphrase() });
    say(`The rule is in ${shown.file} and counts from now on`);
    dialog.close();
  }

  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  look();
}
