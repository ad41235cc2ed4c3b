// Connect: how each client reaches this gateway, with the command filled in.
import { get } from "../api.js";
import { copyButton, empty, fault, h, show } from "../dom.js";
import { shell } from "../format.js";

const lines = (entry) => JSON.stringify({ "agent-gate": entry }, null, 2);

const loopback = ["localhost", "127.0.0.1", "[::1]"];

// On the gateway's machine its configuration names it, and the client gets an agent of its own.
const own = ({ here, elsewhere }) => shell(loopback.includes(location.hostname) ? here : elsewhere);

function card(client) {
  const { title, command, entry, note } = client;
  return h(
    "div.card",
    h(
      "header",
      h("h2", title),
      copyButton("Copy", () => own(client)),
    ),
    h("pre", own(client)),
    command || entry ? byHand(command, entry) : null,
    note ? h("p.soft", note) : null,
  );
}

function byHand(command, entry) {
  return h(
    "details",
    h("summary.soft", "or by hand, with AGENT_TOKEN set"),
    command ? h("pre", shell(command)) : null,
    entry ? h("pre", lines(entry)) : null,
    entry
      ? h(
          "div.buttons",
          copyButton("Copy the entry", () => lines(entry)),
        )
      : null,
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
