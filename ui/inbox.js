// The open questions as they are now, kept by the event stream; pages listen for changes.
import { follow, get } from "./api.js";

export const inbox = { open: new Map(), online: false, problem: null, seq: 0 };
const listeners = new Set();
let told = 0;

export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(kind) {
  for (const listener of listeners) listener(kind);
}

function soon() {
  told ||= requestAnimationFrame(() => {
    told = 0;
    tell("approvals");
  });
}

function take(approval) {
  if (approval.state === "pending") inbox.open.set(approval.id, approval);
  else inbox.open.delete(approval.id);
  soon();
}

export async function reload() {
  try {
    const rows = await get("/api/approvals?brief=1");
    inbox.open = new Map(rows.map((row) => [row.id, row]));
    inbox.problem = null;
  } catch (error) {
    inbox.problem = error;
  }
  soon();
}

export function start() {
  follow("/api/events?brief=1", {
    onEvent(kind, value) {
      if (kind === "approval") take(value);
      else if (kind === "missed") reload();
      else tell(kind);
    },
    async onOpen() {
      inbox.online = true;
      await reload();
      tell("online");
    },
    onLost() {
      inbox.online = false;
      tell("online");
    },
  });
}
