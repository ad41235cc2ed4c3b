// A unified difference as lines: what is new stands out, what goes is struck through.
import { h } from "./dom.js";

const MOST = 1000;

export function diff(text) {
  const kind = (line) => (line.startsWith("+") ? "span.plus" : line.startsWith("-") ? "span.minus" : "span");
  const lines = text.split("\n").filter((line) => !line.startsWith("--- ") && !line.startsWith("+++ "));
  return h(
    "pre.diff",
    lines.slice(0, MOST).map((line) => h(kind(line), line)),
  );
}
