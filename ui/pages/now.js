// Now: what needs a person, what runs, what just happened.
import { get, post, segment } from "../api.js";
import { now as time } from "../clock.js";
import { button, empty, fault, h, say, show } from "../dom.js";
import { ago, many, span } from "../format.js";
import { inbox, listen } from "../inbox.js";
import { because, boxed, every } from "../layout.js";
import { List } from "../list.js";
import { picture } from "../picture.js";
import { callList } from "../rows.js";

function question(approval) {
  return h(
    "div.need",
    h("strong", approval.sentence || `Let ${approval.agent} call ${approval.tool}?`),
    h(
      "p",
      `${approval.agent} asked `,
      h("span", { "data-asked": approval.asked_at }, ago(approval.asked_at)),
      " · ",
      h("code", approval.signature),
    ),
    h("div.buttons", h("a", { href: `#/approvals/${approval.id}` }, "Look and answer")),
  );
}

function trouble(need, again) {
  const mend = need.action
    ? button(need.action.label, async () => {
        await post(need.action.path);
        say("Done. It takes a moment to show.");
        again();
      })
    : null;
  return h(
    "div.need",
    h("strong", need.problem),
    h("div", because(need.reason)),
    h("div.buttons", mend, h("a", { href: `#/${need.page}` }, "Look")),
  );
}

const SHOWN = 3;
const MOST_NEEDS = 12;
const LATEST = 20;

function needs(needed, again) {
  const open = [...inbox.open.values()];
  if (!open.length && !needed.length)
    return empty("Nothing needs you", "No question waits for an answer, and every source is well.");
  return h(
    "div.needs",
    open.slice(0, SHOWN).map(question),
    open.length > SHOWN
      ? h(
          "div.need",
          h("strong", `${many(open.length, "question")} in all`),
          h("div.buttons", h("a", { href: "#/approvals" }, "Open the inbox")),
        )
      : null,
    needed.slice(0, MOST_NEEDS).map((need) => trouble(need, again)),
    needed.length > MOST_NEEDS
      ? h(
          "div.need",
          h("strong", `and ${many(needed.length - MOST_NEEDS, "more problem", "more problems")}`),
          h("div.buttons", h("a", { href: "#/sources" }, "See the sources")),
        )
      : null,
  );
}

const runningRow = (call) =>
  h(
    "div.two",
    h("span.lead", call.signature),
    h("span.end", span(Math.max(0, time() - call.since))),
    h("span.rest", `${call.caller} over ${call.surface}`),
    h("span.end"),
  );

function browser(screen, again) {
  const stop = button("Stop", async () => {
    await post(`/api/browsers/${segment(screen.id)}/stop`);
    say("Stopped.");
    again();
  });
  return h(
    "div.need",
    h("strong", screen.title || screen.place || "Nothing open yet"),
    h("p", `${screen.caller} · `, h("code", screen.place)),
    picture(`/api/browsers/${segment(screen.id)}/picture`, `What ${screen.caller} sees`),
    h("div.buttons", stop),
  );
}

const noCalls = () =>
  empty(
    "No call was made yet",
    "Connect an agent and let it use a tool.",
    h("a", { href: "#/connect" }, "How to connect one"),
  );

export function now(main) {
  const [todo, running, latest, browsers] = [h("div"), h("div"), h("div"), h("div")];
  show(
    main,
    h("section", h("h2", "Needs you"), todo),
    h("section", h("h2", "Running now"), running),
    browsers,
    h("section", h("h2", "Latest calls"), latest),
  );
  let needed = null;
  let drawn = "";
  const runs = new List({ row: runningRow, key: (call) => call.call, label: "Running calls", onSelect: () => {} });
  const calls = callList("Latest calls");
  const fill = (place, list, items, nothing) => (items.length ? boxed(place, list, items) : show(place, nothing));

  // Drawn only when there is something else to see: a button must stay where it is while it is pressed.
  function drawNeeds() {
    const open = [...inbox.open.values()];
    const seen = JSON.stringify([open.length, open.slice(0, SHOWN), needed]);
    if (seen !== drawn) show(todo, needs(needed, load));
    drawn = seen;
    for (const node of todo.querySelectorAll("[data-asked]")) node.textContent = ago(Number(node.dataset.asked));
  }

  async function load() {
    try {
      const value = await get("/api/now");
      needed = value.needs;
      drawNeeds();
      fill(running, runs, value.running, empty("No call is running", "Calls appear here while a tool works."));
    } catch (error) {
      needed = null;
      drawn = "";
      show(todo, fault(error, load));
      show(running);
    }
  }

  // A section of its own only while something is open; a picture is fetched anew each time.
  async function loadBrowsers() {
    try {
      const open = await get("/api/browsers");
      const shown = () =>
        h(
          "section",
          h("h2", "Open browsers"),
          h(
            "div.needs",
            open.map((screen) => browser(screen, loadBrowsers)),
          ),
        );
      show(browsers, open.length ? shown() : null);
    } catch (error) {
      show(browsers, fault(error, loadBrowsers));
    }
  }

  async function loadCalls() {
    try {
      const value = await get("/api/calls?by=call&limit=60");
      fill(latest, calls, value.calls.slice(0, LATEST), noCalls());
    } catch (error) {
      show(latest, fault(error, loadCalls));
    }
  }

  load();
  loadCalls();
  loadBrowsers();
  const stop = [
    listen((kind) => {
      if (kind === "approvals" && needed) drawNeeds();
      if (kind === "calls") loadCalls();
      if (kind === "calls" || kind === "catalog" || kind === "online") load();
    }),
    every(5000, load),
    every(5000, loadBrowsers),
    () => runs.close(),
    () => calls.close(),
  ];
  return () => stop.forEach((end) => end());
}
