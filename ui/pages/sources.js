// Sources: where tools come from, how each is, and definitions that changed since a person looked.
import { get, post, segment } from "../api.js";
import { diff } from "../diff.js";
import { button, empty, h, say, show } from "../dom.js";
import { ago, left, many } from "../format.js";
import { listen } from "../inbox.js";
import { boxed, every, loader } from "../layout.js";
import { List } from "../list.js";
import { sourceWord } from "../words.js";

// A source that is disabled in the configuration has no reason; one that a person disconnected has.
const isDisconnected = (source) => source.status === "disabled" && source.reason !== "";

export function sources(main) {
  const [changed, all] = [h("div"), h("div")];
  const changes = h("section", { hidden: true }, h("h2", "Changed definitions"), changed);
  show(main, changes, h("section", h("h2", "Sources"), all));
  const list = new List({ row, key: (source) => source.key, label: "Sources" });

  function row(source) {
    const again = ["failed", "degraded"].includes(source.status) || isDisconnected(source)
      ? button(isDisconnected(source) ? "Connect" : "Try now", () => reconnect(source.key))
      : null;
    const when = source.next_try ? ` · next try: ${left(source.next_try)}` : "";
    return h(
      "div.two",
      h("span.lead", source.title && source.title !== source.key ? `${source.key} (${source.title})` : source.key),
      h("span.end", again ?? sourceWord(source.status)),
      h(
        "span.rest",
        { title: source.reason },
        source.reason
          ? `${source.reason}${when}`
          : `${source.kind} · ${many(source.tools, "tool")}${source.since ? ` · since ${ago(source.since)}` : ""}${when}`,
      ),
      h("span.end", again ? sourceWord(source.status) : ""),
    );
  }

  async function reconnect(key) {
    await post(`/api/sources/${segment(key)}/connect`);
    say(`Connecting ${key}…`);
    setTimeout(load, 600);
  }

  const load = loader(
    all,
    () => Promise.all([get("/api/sources"), get("/api/changes")]),
    ([found, differing]) => {
      drawChanges(differing);
      if (!found.length)
        return show(
          all,
          empty(
            "No source is configured",
            "Add services, servers or mcpServers to the configuration; docs/configuration.md shows how.",
          ),
        );
      return boxed(all, list, found, { most: "70vh" });
    },
  );

  function drawChanges(found) {
    changes.hidden = !found.length;
    const seen = JSON.stringify(found);
    if (seen === changed.dataset.seen) return;
    changed.dataset.seen = seen;
    show(
      changed,
      found.slice(0, 100).map((change) =>
        h(
          "div.card",
          h(
            "header",
            h("h2", h("code", change.tool), ` of ${change.source}`),
            h("span.word.you", change.held ? "held until you accept" : "served already"),
          ),
          h("p.soft", `changed ${ago(change.changed_at)}`),
          diff(change.diff),
          h(
            "div.buttons",
            button(
              "Accept the new definition",
              async () => {
                const { source, tool, pin } = change;
                await post("/api/changes/accept", { source, tool, pin });
                say(`Accepted ${change.tool}`);
                load();
              },
              { kind: "strong" },
            ),
          ),
        ),
      ),
    );
  }

  load();
  const stop = [
    every(3000, load),
    listen((kind) => (kind === "catalog" || kind === "online") && load()),
    () => list.close(),
  ];
  return () => stop.forEach((end) => end());
}
