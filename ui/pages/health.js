// Health: how much, how fast, what failed, and whether the record is whole.
import { get, text } from "../api.js";
import { bars, lines, thinned } from "../chart.js";
import { button, empty, h, show } from "../dom.js";
import { count, many, span } from "../format.js";
import { boxed, every, loader } from "../layout.js";
import { List } from "../list.js";
import { callRow } from "./now.js";

const tile = (value, says) => h("div.tile", h("b", value), h("span", says));

export function health(main) {
  const [tiles, charts, slow, failed, record] = [h("div"), h("div"), h("div"), h("div"), h("div")];
  const failures = new List({
    row: callRow,
    key: (call) => call.call,
    label: "Failed calls",
    onSelect: (call, byHand) => byHand && (location.hash = `#/calls/${call.call}`),
  });
  show(
    main,
    h("section", h("h2", "Since the gateway started"), tiles),
    h("section", h("h2", "The last hour"), charts),
    h("section", h("h2", "Sources"), slow),
    h("section", h("h2", "Latest failures"), failed),
    h("section", h("h2", "The record"), record),
  );

  const load = loader(tiles, "/api/trends", ({ points, totals, sources, every: step }) => {
    show(
      tiles,
      h(
        "div.tiles",
        tile(count(totals.calls), "calls"),
        tile(count(totals.failed), "failed"),
        tile(count(totals.refused), "refused"),
        tile(span(totals.p50), "half were faster"),
        tile(span(totals.p95), "95 % were faster"),
        tile(span(totals.p99), "99 % were faster"),
      ),
    );
    drawCharts(thinned(points), step * Math.max(1, points.length / Math.max(1, thinned(points).length)));
    show(
      slow,
      sources.length
        ? h(
            "table",
            h("thead", h("tr", h("th", "source"), h("th.number", "calls"), h("th.number", "mean"))),
            h(
              "tbody",
              sources
                .slice(0, 200)
                .map((one) =>
                  h(
                    "tr",
                    h("td", h("code", one.source)),
                    h("td.number", count(one.calls)),
                    h("td.number", span(one.mean)),
                  ),
                ),
            ),
          )
        : h("p.soft", "No source was called yet."),
    );
  });

  function drawCharts(points, step) {
    if (!points.length)
      return show(charts, empty("Nothing was measured yet", "The first point comes ten seconds after the start."));
    const [rate, most] = bars(
      points,
      (point) => point.calls + point.refused,
      (point) => point.failed + point.refused,
      "Calls per interval",
    );
    const [pace, high] = lines(
      points,
      [
        [(point) => point.p50, "ink"],
        [(point) => point.p95, "soft"],
      ],
      "Latency",
    );
    return show(
      charts,
      h(
        "div.card",
        h(
          "header",
          h("strong", "Calls"),
          h("span.legend", h("span", `most: ${count(most)} in ${span(step)}`), h("span", "dark: failed or refused")),
        ),
        rate,
      ),
      h(
        "div.card",
        h(
          "header",
          h("strong", "Time per call"),
          h(
            "span.legend",
            h("span", `top: ${span(high)}`),
            h("span", "solid: half were faster"),
            h("span", "dashed: 95 % were faster"),
          ),
        ),
        pace,
      ),
    );
  }

  const loadFailures = loader(
    failed,
    () => get("/api/calls?by=call&state=failed&limit=100"),
    ({ calls }) => {
      if (!calls.length)
        return show(failed, empty("Nothing failed", "Calls that a source could not answer are listed here."));
      return boxed(failed, failures, calls, { most: "50vh" });
    },
  );

  function drawRecord() {
    const result = h("div", { "aria-live": "polite" });
    const verify = button("Verify the record", async () => {
      show(result, h("p.soft", "Walking the whole chain…"));
      const report = await get("/api/audit/verify");
      show(
        result,
        h(
          "p",
          report.ok
            ? h("span.word.good", "Nothing was changed, removed or cut off.")
            : h("span.word.bad", many(report.problems.length, "problem")),
          ` ${many(report.rows, "row")}, ${many(report.seals, "seal")}, ${many(report.unsealed, "row")} not sealed yet.`,
        ),
        report.problems
          .slice(0, 100)
          .map((problem) => h("p", h("code", `${problem.chain} ${problem.seq}`), ` ${problem.text}`)),
      );
    });
    const save = (kind) =>
      button(
        `Export ${kind}`,
        async () => {
          const url = URL.createObjectURL(
            new Blob([await text(`/api/audit/export?format=${kind}`)], { type: "text/plain" }),
          );
          h("a", { href: url, download: `record.${kind}` }).click();
          setTimeout(() => URL.revokeObjectURL(url), 10_000);
        },
        { kind: "quiet" },
      );
    show(
      record,
      h(
        "p.soft",
        "Every state of every call is a row, chained to the one before; seals by a key outside the database show a cut end.",
      ),
      h("div.buttons", verify, save("jsonl"), save("csv")),
      result,
    );
  }

  load();
  loadFailures();
  drawRecord();
  const stop = every(10_000, () => {
    load();
    loadFailures();
  });
  return () => {
    stop();
    failures.close();
  };
}
