// Health: how much, how fast, what failed, and whether the record is whole.
import { get, text } from "../api.js";
import { bars, lines, thinned } from "../chart.js";
import { button, empty, h, show } from "../dom.js";
import { count, many, span } from "../format.js";
import { boxed, every, loader } from "../layout.js";
import { callList } from "../rows.js";

const MOST_SOURCES = 200;
const MOST_PROBLEMS = 100;
const CHAINED =
  "Every state of every call is a row, chained to the one before; seals by a key outside the database show a cut end.";

const tile = (value, says) => h("div.tile", h("b", value), h("span", says));

const tiles = (totals) =>
  h(
    "div.tiles",
    tile(count(totals.calls), "calls"),
    tile(count(totals.failed), "failed"),
    tile(count(totals.refused), "refused"),
    tile(span(totals.p50), "half were faster"),
    tile(span(totals.p95), "95 % were faster"),
    tile(span(totals.p99), "99 % were faster"),
  );

const card = (title, chart, ...legend) =>
  h(
    "div.card",
    h(
      "header",
      h("strong", title),
      h(
        "span.legend",
        legend.map((part) => h("span", part)),
      ),
    ),
    chart,
  );

function throughput(points, step) {
  const all = (point) => point.calls + point.refused;
  const bad = (point) => point.failed + point.refused;
  const [chart, most] = bars(points, all, bad, "Calls per interval");
  return card("Calls", chart, `most: ${count(most)} in ${span(step)}`, "dark: failed or refused");
}

function latency(points) {
  const half = [(point) => point.p50, "ink"];
  const most = [(point) => point.p95, "soft"];
  const [chart, high] = lines(points, [half, most], "Latency");
  return card("Time per call", chart, `top: ${span(high)}`, "solid: half were faster", "dashed: 95 % were faster");
}

function charts(points, step) {
  if (!points.length) return empty("Nothing was measured yet", "The first point comes ten seconds after the start.");
  const drawn = thinned(points);
  return [throughput(drawn, (step * points.length) / drawn.length), latency(drawn)];
}

function sourceTable(sources) {
  if (!sources.length) return h("p.soft", "No source was called yet.");
  const row = (one) =>
    h("tr", h("td", h("code", one.source)), h("td.number", count(one.calls)), h("td.number", span(one.mean)));
  const head = h("tr", h("th", "source"), h("th.number", "calls"), h("th.number", "mean"));
  return h("table", h("thead", head), h("tbody", sources.slice(0, MOST_SOURCES).map(row)));
}

function verified(report) {
  const verdict = report.ok
    ? h("span.word.good", "Nothing was changed, removed or cut off.")
    : h("span.word.bad", many(report.problems.length, "problem"));
  const sizes = ` ${many(report.rows, "row")}, ${many(report.seals, "seal")}, ${many(report.unsealed, "row")} not sealed yet.`;
  const problem = (one) => h("p", h("code", `${one.chain} ${one.seq}`), ` ${one.text}`);
  return [h("p", verdict, sizes), report.problems.slice(0, MOST_PROBLEMS).map(problem)];
}

async function save(kind) {
  const body = new Blob([await text(`/api/audit/export?format=${kind}`)], { type: "text/plain" });
  const url = URL.createObjectURL(body);
  h("a", { href: url, download: `record.${kind}` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function recordTools() {
  const result = h("div", { "aria-live": "polite" });
  const verify = async () => {
    show(result, h("p.soft", "Walking the whole chain…"));
    show(result, verified(await get("/api/audit/verify")));
  };
  const exports_ = ["jsonl", "csv"].map((kind) => button(`Export ${kind}`, () => save(kind), { kind: "quiet" }));
  return [h("p.soft", CHAINED), h("div.buttons", button("Verify the record", verify), exports_), result];
}

export function health(main) {
  const [numbers, hour, slow, failed] = [h("div"), h("div"), h("div"), h("div")];
  show(
    main,
    h("section", h("h2", "Since the gateway started"), numbers),
    h("section", h("h2", "The last hour"), hour),
    h("section", h("h2", "Sources"), slow),
    h("section", h("h2", "Latest failures"), failed),
    h("section", h("h2", "The record"), recordTools()),
  );
  const failures = callList("Failed calls");
  const load = loader(numbers, "/api/trends", ({ points, totals, sources, every: step }) => {
    show(numbers, tiles(totals));
    show(hour, charts(points, step));
    show(slow, sourceTable(sources));
  });
  const loadFailures = loader(failed, "/api/calls?by=call&state=failed&limit=100", ({ calls }) => {
    if (calls.length) boxed(failed, failures, calls, { most: "50vh" });
    else show(failed, empty("Nothing failed", "Calls that a source could not answer are listed here."));
  });
  load();
  loadFailures();
  const stop = every(10_000, () => {
    load();
    loadFailures();
  });
  return () => {
    stop();
    failures.close();
  };
}
