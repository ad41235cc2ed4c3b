// Every part of the page in every state: nothing, one, many, long text, failure, and on its way.
import { empty, fault, h, loading, show } from "/dom.js";
import { because, boxed } from "/layout.js";
import { answers } from "/parts/answers.js";
import { bars, lines } from "/parts/chart.js";
import { compared } from "/parts/compare.js";
import { consent } from "/parts/consent.js";
import { framed, notNow } from "/parts/dialog.js";
import { span } from "/format.js";
import { diff } from "/parts/diff.js";
import { input } from "/parts/form.js";
import { ICONS, icon } from "/parts/icon.js";
import { List } from "/parts/list.js";
import { questionNeed, troubleNeed } from "/parts/need.js";
import { question } from "/parts/question.js";
import { callColumns, callRow, wideCallRow } from "/parts/rows.js";
import { secret } from "/parts/secret.js";
import { printed } from "/parts/stack.js";
import { waterfall } from "/parts/waterfall.js";
import { effectWord, risks, sourceWord, stateWord } from "/words.js";

const NOW = Date.now() / 1000;
const LONG = "Donaudampfschifffahrtsgesellschaft".repeat(12);
const STATES = ["pending", "approved", "denied", "expired", "withdrawn", "dispatching", "completed", "failed", "unknown", "refused"];
const SOURCES = ["ready", "connecting", "idle", "disabled", "disconnected", "degraded", "failed", "needs_auth"];
const RISKS = ["destructive", "outward", "first", "unusual"];
const CHOICES = { once: "Only this call.", hour: "pi may repeat it for an hour.", always: "pi may repeat it until you revoke it." };

const approval = (words, found = []) => ({
  id: "1".repeat(32),
  call: "1".repeat(32),
  state: "pending",
  agent: "pi",
  tool: "mail_send",
  tool_id: "mail:send",
  signature: `mail_send(to=${words})`,
  line: `mail_send(to=${words})`,
  sentence: `Send mail to ${words}?`,
  description: "Sends a mail.",
  traits: ["destructive", "open_world"],
  source: "mail",
  not_in_signature: [],
  risks: found,
  asked_at: NOW - 5,
  expires_at: NOW + 900,
  arguments: {},
  rule: "ask *",
  where: "permissions.yaml:1",
  surface: "mcp",
  may_answer: ["anna", "operator"],
  choices: CHOICES,
  details: [{ name: "to", text: words, length: words.length, sha256: "0".repeat(64), in_signature: true, declared: true }],
});
const need = (words, kind) => ({
  problem: `${words} cannot be reached`,
  reason: `connection refused\n${words}`,
  page: "sources",
  action: { label: "Try now", path: "/api/reload" },
  kind,
  fix: "See that it runs.",
  since: NOW - 60,
});
const call = (words, state) => ({ call: words, at: NOW, state, caller: "pi", tool: "t", signature: words, seconds: 0.2, count: 1, error: { code: "X" } });
const point = (at) => ({ at, calls: at % 7, failed: at % 3, refused: 0, p50: at % 5 ? 0.01 : null, p95: 0.2 });

const whole = (words) => ({ ...call(words, "failed"), decision: "allow", rule: "allow *", where: "", size: 12, arguments: { to: words }, result: { text: words } });
const spans = (...lengths) => lengths.map((long, at) => ({ name: at === 1 ? "waited for a person" : `part ${at}`, start: 0, end: long }));
const TRACE = 'Traceback (most recent call last):\n  File "a.py", line 3, in run\nValueError: no';

function field(label, text, wrong) {
  const made = input(label, { value: text });
  made.say(wrong);
  return made.row;
}

// A dialog as it stands open, in its place among the other parts.
function standing(...content) {
  const dialog = framed("Revoke the token?", ...content);
  dialog.open = true;
  dialog.style.position = "static";
  return dialog;
}

function list(calls, row = callRow) {
  const place = h("div");
  const many = new List({ row, key: (one) => one.call, label: `${calls.length} calls` });
  boxed(place, many, calls, { most: "12rem" });
  return place;
}

const SHOWN = {
  icons: h("p", ICONS.map((name) => [icon(name), ` ${name} `])),
  words: h("p", STATES.map((name) => [stateWord(name), " "]), SOURCES.map((name) => [sourceWord(name), " "]), ["allow", "ask", "deny", "depends", "unseen"].map((name) => [effectWord(name), " "])),
  risks: [h("p", risks([])), h("p", risks(["first"])), h("p", risks(RISKS))],
  nothing: empty("No call was made yet", "Connect an agent and let it use a tool."),
  failure: fault(new Error(`The store cannot be written: ${LONG}`), () => {}),
  "on its way": loading(),
  buttons: h("div.buttons", h("button.strong", "Strong"), h("button", "Plain"), h("button.quiet", "Quiet"), h("button", { disabled: true }, "Busy"), h("button", LONG)),
  questions: h("div.needs", questionNeed(approval("anna@example.org", RISKS), () => {}), questionNeed(approval(LONG), () => {})),
  troubles: h("div.needs", troubleNeed(need("house", "address"), () => {}), troubleNeed(need(LONG, "program"), () => {}), troubleNeed(need("rules", "warning"), () => {})),
  "a question": h("div", question(approval("anna@example.org", RISKS), { answer: () => {}, makeRule: () => {}, wait: 0 })),
  "a long question": h("div", question(approval(LONG), { answer: () => {}, makeRule: () => {}, wait: 0 })),
  answers: answers(approval("x"), () => {}, 0),
  reasons: [because("It exited with code 1"), because(`It exited; its last words were:\n${LONG}`)],
  "one row": list([call("light_set(hall)", "completed")]),
  "many rows": list(Array.from({ length: 5000 }, (_, at) => call(`light_set(room ${at})`, STATES[at % STATES.length]))),
  "a long row": list([call(LONG, "failed")]),
  "wide rows": h("div.calls", h("div.side", callColumns(), list([call("t(room=hall)", "completed"), call(`t(${LONG})`, "refused")], wideCallRow))),
  "two calls": [compared(whole("a"), whole("b")), compared(whole(LONG), whole(LONG))],
  waterfalls: [waterfall([]), waterfall(spans(0.2)), waterfall(spans(0.002, 63, 0.12, 0.001))],
  "printed text": [printed("one line"), printed(TRACE), printed(LONG)],
  "a secret": [secret("Its token, shown this once", "agt_3f", "Only its hash is kept here."), secret("Long", LONG, LONG)],
  fields: h("div", field("Name", "", ""), field("Name", "a b", "A name of letters, digits, - and _"), field(LONG, LONG, LONG)),
  "a sign-in": h("div", consent({ wants_number: true, arguments: { client: "Claude", mode: "full", days: 30 } }).node),
  dialogs: [standing(h("p", "It is refused from now on."), h("div.buttons", h("button.strong", "Revoke"), notNow())), standing(h("p", LONG))],
  differences: [diff("+ one line"), diff(`--- a\n+++ b\n- ${LONG}\n+ ${LONG}`)],
  "charts of nothing": [bars([], [[(one) => one.calls, ""]], { label: "Nothing" })],
  charts: [
    bars(Array.from({ length: 60 }, (_, at) => point(at)), [[(one) => one.calls, ""], [(one) => one.failed, "fail"]], { label: "Calls", every: 60, shown: String, says: (one) => `${one.calls} calls` }),
    lines(Array.from({ length: 60 }, (_, at) => point(at)), [[(one) => one.p50, "ink"], [(one) => one.p95, "soft"]], { label: "Time", every: 60, shown: span, says: (one) => `${one.p50} s` }),
  ],
};

show(
  document.getElementById("main"),
  h("h1", "Parts"),
  Object.entries(SHOWN).map(([name, node]) => h("section", { "data-part": name }, h("h2", name), node)),
);
document.body.dataset.ready = "yes";
