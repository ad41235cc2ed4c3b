// A call in two lines, wherever calls are listed.
import { h } from "./dom.js";
import { ago, span } from "./format.js";
import { List } from "./list.js";
import { stateWord } from "./words.js";

function took(call) {
  if (call.state === "refused") return call.error?.code;
  return call.seconds === null ? "" : span(call.seconds);
}

export function callRow(call) {
  const rest = [ago(call.at), call.caller, call.granted && "granted", call.count > 1 && `${call.count} times`];
  return h(
    "div.two",
    h("span.lead", call.signature || call.tool),
    h("span.end", stateWord(call.state)),
    h("span.rest", rest.filter(Boolean).join(" · ")),
    h("span.end", took(call)),
  );
}

// A list of calls from which a press leads to the call's own story.
export function callList(label) {
  const onSelect = (call, byHand) => byHand && (location.hash = `#/calls/${call.call}`);
  return new List({ row: callRow, key: (call) => call.call, label, onSelect });
}
