// Approvals: the inbox with everything a person needs to judge, its history, and remembered answers.
import { get, post, query, remove, segment } from "../api.js";
import { act, at, button, empty, fault, h, say, show } from "../dom.js";
import { ago, left, many, moment } from "../format.js";
import { inbox, listen, reload } from "../inbox.js";
import { keys } from "../keyboard.js";
import { every, field, panes } from "../layout.js";
import { List, listOrEmpty } from "../list.js";
import { me } from "../me.js";
import { makeRule } from "../rulemaker.js";
import { stateWord } from "../words.js";

const LONG = 400;
const SETTLE = 350; // milliseconds before a question that just came under the cursor can be answered
const LABELS = { once: "Once", session: "This session", hour: "One hour", always: "Always for these arguments" };
const KEYS = { once: "a", session: "s", hour: "h", always: "w" };

function value(argument) {
  const full = h("div.value", { tabIndex: -1 });
  const put = (text) => show(full, h("pre.bare", text));
  if (argument.text.length <= LONG) return h("div", put(argument.text));
  put(`${argument.text.slice(0, LONG)}…`);
  const more = button(`Show all ${argument.length.toLocaleString("en")} characters`, () => {
    put(argument.text);
    more.remove();
  });
  return h("div", full, h("p.size", `${argument.length.toLocaleString("en")} characters, SHA-256 `, h("code", argument.sha256 ?? "–")), more);
}

function argumentRow(argument) {
  return h(
    "div.argument",
    h(
      "div.name",
      argument.name,
      argument.secret ? h("span.mark", "secret, masked") : null,
      argument.in_signature ? null : h("span.mark", "not in the signature"),
      argument.declared ? null : h("span.mark", "not declared by the tool"),
    ),
    value(argument),
  );
}

const when = (approval) =>
  approval.state === "pending" ? h("span.asks.left", { "data-until": approval.expires_at }, left(approval.expires_at)) : stateWord(approval.state);

function facts(approval) {
  return h(
    "dl.facts",
    field("asked by", h("code", approval.agent), approval.surface ? ` over ${approval.surface}` : "", approval.session ? [", session ", h("code", approval.session)] : null),
    field("tool", h("code", approval.tool_id)),
    field("rule", approval.rule || "no rule matches", at(approval.where)),
    approval.reason ? field("because", approval.reason) : null,
    approval.approvers?.length ? field("may answer", approval.approvers.join(", ")) : null,
    field("asked", `${moment(approval.asked_at)}, ${ago(approval.asked_at)}`),
    approval.state === "pending"
      ? field("time left", when(approval))
      : field("answer", stateWord(approval.state), approval.answered_by ? ` by ${approval.answered_by} on ${approval.answered_on}, ${moment(approval.answered_at)}` : ""),
    approval.answer_reason ? field("reason given", approval.answer_reason) : null,
    field("call", h("a", { href: `#/calls/${approval.call}` }, h("code", approval.call))),
  );
}

function passphrase() {
  if (!me.passphrase) return Promise.resolve(undefined);
  return new Promise((done, failed) => {
    const input = h("input", { type: "password", autocomplete: "off", required: true });
    const dialog = h("dialog", h("form", { method: "dialog" }, h("label.block", h("span", "Your approver's passphrase"), input), h("div.buttons", h("button.strong", "Answer"))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (input.value) done(input.value);
      else failed(new Error("Not answered: no passphrase was given"));
    });
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  });
}

export function approvals(main, [wanted]) {
  let tab = "inbox";
  let needle = "";
  let shown = null;
  let readyAt = 0;
  let past = [];
  let more = true;
  const picked = new Set();

  const search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search approvals", oninput: (event) => { needle = event.target.value.toLowerCase(); draw(); } });
  const tabs = h("div.tabs", [["inbox", "Inbox"], ["history", "History"], ["grants", "Grants"]].map(([name, title]) => h("button", { type: "button", "data-tab": name, onclick: () => turn(name) }, title)));
  const bulk = h("div.buttons");
  const bar = h("div.bar", tabs, search, bulk);
  const nothing = h("div");
  const list = new List({ row, key: (item) => item.id, onSelect: open, onEnd: older, label: "Approvals" });
  const view = panes(main, { bar, list: list.node, nothing, hint: "Choose a question to see all of it." });

  function row(item) {
    if (tab === "grants") return grantRow(item);
    const pick = tab === "inbox" ? h("input", { type: "checkbox", checked: picked.has(item.id), "aria-label": "Choose", onchange: () => toggle(item.id) }) : null;
    const node = h(
      pick ? "div.pick" : "div.two",
      pick,
      h("span.lead", item.signature),
      item.state === "pending" ? h("span.end.asks.left", { "data-until": item.expires_at }, left(item.expires_at)) : h("span.end", stateWord(item.state)),
      h("span.rest", `${item.agent} · ${item.sentence || item.tool} · ${ago(item.asked_at)}`),
      h("span.end", item.answered_by || ""),
    );
    return node;
  }

  const grantRow = (grant) =>
    h("div.two", h("span.lead", grant.signature), h("span.end", grant.expires_at ? left(grant.expires_at) : "until revoked"), h("span.rest", `${grant.caller} · by ${grant.created_by} · used ${many(grant.used, "time")}`), h("span.end"));

  const fits = (item) => !needle || `${item.signature} ${item.agent ?? item.caller} ${item.sentence ?? ""}`.toLowerCase().includes(needle);
  const items = () => (tab === "inbox" ? [...inbox.open.values()] : past).filter(fits);

  function draw() {
    if (tab === "inbox") for (const id of picked) if (!inbox.open.has(id)) picked.delete(id);
    for (const node of tabs.children) node.setAttribute("aria-pressed", node.dataset.tab === tab);
    const found = items();
    listOrEmpty(list, found, nothing);
    if (!found.length) show(nothing, tab === "inbox" && inbox.problem ? fault(inbox.problem, reload) : words());
    drawBulk(found);
    if (tab === "inbox" && shown?.state === "pending" && !inbox.open.has(shown.id)) refreshShown();
    if (wanted && inbox.open.has(wanted)) {
      list.select(wanted, true);
      wanted = null;
    }
  }

  function words() {
    if (needle) return empty("Nothing fits", "No entry here has these words.");
    if (tab === "grants") return empty("Nothing is remembered", "Answers given for longer than once are listed here, and can be taken back.");
    if (tab === "history") return empty("No question was asked yet", "Questions and their answers stay here.");
    return empty("No question waits for you", "When an agent wants something that needs a person, it appears here at once.");
  }

  function drawBulk(found) {
    if (tab !== "inbox" || !found.length) return show(bulk);
    const all = h("input", { type: "checkbox", checked: picked.size > 0 && picked.size === found.length, indeterminate: picked.size > 0 && picked.size < found.length, "aria-label": "Choose all", onchange: (event) => { picked.clear(); if (event.target.checked) found.forEach((item) => picked.add(item.id)); draw(); } });
    return show(
      bulk,
      h("label", all, picked.size ? ` ${picked.size} chosen` : " all"),
      picked.size ? button("Approve once", () => answerMany("approve"), {}) : null,
      picked.size ? button("Deny", () => answerMany("deny"), {}) : null,
    );
  }

  function toggle(id) {
    if (!picked.delete(id)) picked.add(id);
    draw();
  }

  async function open(item, byHand) {
    if (!item) return;
    if (tab === "grants") return openGrant(item);
    // What is on the screen is another question until this one is drawn: it cannot be answered meanwhile.
    view.detail.inert = true;
    if (byHand) main.setAttribute("data-open", "");
    try {
      const whole = await get(`/api/approvals/${segment(item.id)}`);
      if (list.selected !== item.id && list.selected !== null) return;
      shown = whole;
      drawOne();
    } catch (error) {
      view.fill(fault(error, () => open(item, byHand)));
    }
    view.detail.inert = false;
  }

  async function refreshShown() {
    const id = shown.id;
    shown = await get(`/api/approvals/${segment(id)}`).catch(() => null);
    if (shown?.id === id && list.selected === id) drawOne();
  }

  function drawOne() {
    const approval = shown;
    readyAt = performance.now() + SETTLE;
    view.fill(
      h("h2", approval.sentence || `Let ${approval.agent} call ${approval.tool}?`),
      h("p.signature", approval.signature),
      h("p.meta", h("code", approval.agent), " asks · ", approval.rule || "no rule matches", at(approval.where), " · ", when(approval)),
      h("h3", many(approval.details.length, "argument")),
      approval.details.length ? h("div.arguments", approval.details.map(argumentRow)) : h("p.soft", "The call has no arguments."),
      approval.state === "pending" ? [h("h3", "Your answer"), answers(approval)] : null,
      h("h3", "Where it comes from"),
      facts(approval),
      h("div.buttons", button("Make a rule from this…", () => makeRule(approval, passphrase), { kind: "quiet", key: "e" })),
    );
  }

  function answers(approval) {
    const reason = h("input", { type: "text", placeholder: "Reason (the agent reads it)", maxLength: 500, "aria-label": "Reason for a denial" });
    const choice = (life) => {
      const node = button(LABELS[life], () => answer(approval, "approve", life), { key: KEYS[life], kind: life === "once" ? "strong" : "", disabled: true, "data-answer": life });
      return h("div.choice", node, h("span", approval.choices[life]));
    };
    const deny = button("Deny", () => answer(approval, "deny", "once", reason.value), { key: "d", disabled: true, "data-answer": "deny" });
    const box = h("div.choices", Object.keys(approval.choices).map(choice), h("div.choice", deny, reason));
    setTimeout(() => box.querySelectorAll("button").forEach((node) => { node.disabled = false; }), Math.max(0, readyAt - performance.now()));
    return box;
  }

  async function answer(approval, verdict, lifetime, reason = "") {
    const next = following(approval.id);
    const phrase = await passphrase();
    await post(`/api/approvals/${segment(approval.id)}`, { verdict, lifetime, reason, passphrase: phrase });
    inbox.open.delete(approval.id);
    say(verdict === "deny" ? `Denied ${approval.signature}` : approval.choices[lifetime]);
    shown = null;
    view.clear();
    draw();
    if (next && matchMedia("(min-width: 761px)").matches) list.select(next);
  }

  function following(id) {
    const order = items().map((item) => item.id);
    const at = order.indexOf(id);
    return order[at + 1] ?? order[at - 1];
  }

  function byKey(verdict, lifetime) {
    if (tab !== "inbox") return;
    if (picked.size) {
      if (lifetime === "once") answerMany(verdict);
      return;
    }
    const node = view.detail.querySelector(`[data-answer="${verdict === "deny" ? "deny" : lifetime}"]`);
    if (node && !node.disabled && !view.detail.inert) node.click();
  }

  async function answerMany(verdict) {
    const ids = [...picked];
    if (!(await confirmMany(verdict, ids))) return;
    const phrase = await passphrase().catch((error) => say(error.message, { fault: true }));
    if (me.passphrase && !phrase) return;
    await act(bulk.querySelector("button"), async () => {
      const { results } = await post("/api/approvals", { ids, verdict, lifetime: "once", passphrase: phrase });
      const failed = results.filter((result) => result.error);
      for (const result of results) {
        picked.delete(result.id);
        if (!result.error) inbox.open.delete(result.id);
      }
      say(`${many(results.length - failed.length, "question")} ${verdict === "deny" ? "denied" : "approved once"}`);
      if (failed.length) say(`${many(failed.length, "answer")} did not count: ${failed[0].error.message}`, { fault: true });
      shown = null;
      view.clear();
      draw();
    });
  }

  function confirmMany(verdict, ids) {
    return new Promise((done) => {
      const said = verdict === "deny" ? "Deny" : "Approve once";
      const rows = ids.slice(0, 100).map((id) => inbox.open.get(id)).filter(Boolean);
      const yes = h("button.strong", { value: "yes" }, said);
      const dialog = h(
        "dialog",
        h("h2", `${said}: ${many(ids.length, "question")}`),
        h("ul", rows.map((item) => h("li", h("code", item.signature), ` (${item.agent})`))),
        ids.length > rows.length ? h("p", `and ${ids.length - rows.length} more`) : null,
        h("form", { method: "dialog" }, h("div.buttons", yes, h("button", { value: "" }, "Not now"))),
      );
      dialog.addEventListener("close", () => {
        dialog.remove();
        done(dialog.returnValue === "yes");
      });
      document.body.append(dialog);
      dialog.showModal();
      yes.focus();
    });
  }

  function openGrant(grant) {
    const revoke = button("Revoke", async () => {
      await remove(`/api/grants/${segment(grant.id)}`);
      say(`Revoked. ${grant.caller} is asked again.`);
      view.clear();
      loadPast();
    }, { kind: "strong" });
    view.open(
      h("h2", `${grant.caller} may call this without asking`),
      h("p.signature", grant.signature),
      h("dl.facts", field("tool", h("code", grant.tool_id)), field("for", grant.expires_at ? left(grant.expires_at) : "until it is revoked"), grant.session ? field("session", h("code", grant.session)) : null, field("granted by", `${grant.created_by}, ${moment(grant.created_at)}`), field("used", many(grant.used, "time")), field("arguments", h("code", grant.arguments_hash)), field("definition", h("code", grant.definition_hash))),
      h("div.buttons", revoke),
    );
  }

  async function loadPast() {
    try {
      past = tab === "grants" ? await get("/api/grants") : await get(`/api/approvals${query({ state: "answered", brief: 1, limit: 500 })}`);
      more = tab === "history" && past.length > 0;
      draw();
    } catch (error) {
      past = [];
      draw();
      show(nothing, fault(error, loadPast));
    }
  }

  async function older() {
    if (tab !== "history" || !more) return;
    more = false;
    const next = await get(`/api/approvals${query({ state: "answered", brief: 1, limit: 500, before: past.at(-1).asked_at })}`).catch(() => []);
    past = past.concat(next);
    more = next.length > 0;
    if (next.length) draw();
  }

  function turn(name) {
    tab = name;
    past = [];
    shown = null;
    picked.clear();
    list.selected = null;
    view.clear();
    draw();
    if (name !== "inbox") loadPast();
  }

  keys({
    j: { does: () => list.move(1), says: "next question" },
    k: { does: () => list.move(-1), says: "previous question" },
    ArrowDown: { does: () => list.move(1) },
    ArrowUp: { does: () => list.move(-1) },
    a: { does: () => byKey("approve", "once"), says: "approve once (all chosen ones, if any)" },
    s: { does: () => byKey("approve", "session"), says: "approve for this session" },
    h: { does: () => byKey("approve", "hour"), says: "approve for one hour" },
    w: { does: () => byKey("approve", "always"), says: "approve always for these arguments" },
    d: { does: () => byKey("deny", "once"), says: "deny (all chosen ones, if any)" },
    e: { does: () => shown && makeRule(shown, passphrase), says: "make a rule from this question" },
    x: { does: () => list.selected && toggle(list.selected), says: "choose for an answer to several" },
  });

  function tick() {
    for (const node of main.querySelectorAll(".left")) node.textContent = left(Number(node.dataset.until));
  }

  draw();
  if (wanted && !inbox.open.has(wanted)) open({ id: wanted }, true);
  const stop = [listen((kind) => kind === "approvals" && tab === "inbox" && draw()), every(1000, tick), () => list.close()];
  return () => stop.forEach((end) => end());
}
