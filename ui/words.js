// States and effects in words; only what waits for a person has the colour.
import { h } from "./dom.js";

const STATES = {
  pending: ["waits for you", "you"],
  approved: ["approved", ""],
  denied: ["denied", "bad"],
  expired: ["nobody answered", "bad"],
  withdrawn: ["withdrawn", ""],
  dispatching: ["running", ""],
  completed: ["done", "good"],
  failed: ["failed", "bad"],
  unknown: ["outcome unknown", "bad"],
  refused: ["refused", "bad"],
};
const SOURCES = {
  ready: ["ready", "good"],
  connecting: ["connecting", ""],
  idle: ["idle until called", ""],
  disabled: ["disabled", ""],
  disconnected: ["disconnected", ""],
  degraded: ["unwell", "you"],
  failed: ["cannot be reached", "you"],
  needs_auth: ["needs a sign-in", "you"],
};
const EFFECTS = {
  allow: ["allowed", "good"],
  ask: ["a person is asked", "you"],
  deny: ["denied", "bad"],
  depends: ["depends on the arguments", ""],
  unseen: ["not seen", ""],
};

const COVERED = {
  once: "once",
  session: "for this session",
  hour: "for one hour",
  always: "always for these arguments",
};

// How a question ended, in a sentence: approved for one hour by anna on page.
export function ending(state, { by, channel, lifetime }) {
  const covered = state === "approved" ? ` ${COVERED[lifetime] ?? lifetime}` : "";
  return [stateWord(state), covered, ["approved", "denied"].includes(state) ? ` by ${by} on ${channel}` : ""];
}

const word = (table) => (name) => {
  const [text, kind] = table[name] ?? [name, ""];
  return h(`span.word${kind ? `.${kind}` : ""}`, text);
};

const ROWS = {
  ...STATES,
  pending: ["a person was asked", ""],
  approved: ["approved", "good"],
  dispatching: ["sent", ""],
};

export const stateWord = word(STATES);
export const rowWord = word(ROWS);
export const sourceWord = word(SOURCES);
export const effectWord = word(EFFECTS);
export const STATE_NAMES = Object.keys(STATES);
