// Connect: how each client reaches this gateway, with the command filled in.
import { get } from "../api.js";
import { copyButton, empty, fault, h, show } from "../dom.js";
import { shell } from "../format.js";

const lines = (entry) => JSON.stringify({ "agent-gate": entry }, null, 2);

function card({ title, command, entry, note, name }) {
  const own = `agent-gate connect ${name}`;
  return h(
    "div.card",
    h(
      "header",
      h("h2", title),
      copyButton("Copy", () => (command ? shell(command) : own)),
    ),
    h("pre", command ? shell(command) : own),
    h(
      "details",
      h("summary.soft", command ? "or as an entry of its file" : "or by hand, as an entry of its file"),
      h("pre", lines(entry)),
      h(
        "div.buttons",
        copyButton("Copy the entry", () => lines(entry)),
      ),
    ),
    note ? h("p.soft", note) : null,
  );
}

function plain(title, text, note) {
  return h(
    "div.card",
    h(
      "header",
      h("h2", title),
      copyButton("Copy", () => text),
    ),
    h("pre", text),
    note ? h("p.soft", note) : null,
  );
}

export function connect(main) {
  const [first, cards] = [h("section"), h("section")];
  show(main, first, cards);

  async function load() {
    try {
      const { gateway, clients } = await get("/api/clients");
      draw(gateway, clients);
    } catch (error) {
      show(cards, fault(error, load));
    }
  }

  function draw({ url, endpoint, fingerprint }, clients) {
    const trust = fingerprint ? ` --fingerprint ${fingerprint}` : "";
    show(
      first,
      h("h2", "First, a token"),
      h(
        "p",
        "Each agent has its own token, so that you see who asked. ",
        h("a", { href: "#/agents" }, "Make an agent"),
        " and put its token where the client runs:",
      ),
      h("pre", "export AGENT_TOKEN=…"),
    );
    show(
      cards,
      h("h2", "Then, the client"),
      h(
        "div.cards",
        plain(
          "A shell",
          shell(["export", `AGENT_GATE_URL=${url}`]) + `\nagent-gate tools${trust}`,
          "Scripts call tools with agent-gate request.",
        ),
        plain("Anything that speaks MCP", endpoint, "Streamable HTTP; send Authorization: Bearer with the token."),
        plain(
          "curl",
          `curl -sS ${url}/api/tools -H "Authorization: Bearer $AGENT_TOKEN"`,
          fingerprint
            ? "Add --cacert with the gateway's certificate."
            : "The document of all operations is at /openapi.json.",
        ),
        clients.slice(0, 500).map(card),
      ),
      clients.length ? null : empty("No client is known", "Use the addresses above."),
    );
  }

  load();
}
