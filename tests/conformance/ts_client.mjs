// Lists and calls through the gateway with the official TypeScript clients: FOLDER URL TOKEN KIND, KIND a client and its era.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, url, token, kind] = process.argv.slice(2);
const from = createRequire(pathToFileURL(folder + "/package.json"));
const load = (name) => import(pathToFileURL(from.resolve(name)));
const options = { requestInit: { headers: { Authorization: `Bearer ${token}` } } };
const modes = { legacy: "legacy", auto: "auto", modern: { pin: "2026-07-28" } };

async function connect() {
  if (kind === "sdk") {
    const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const client = new Client({ name: "test", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: modes[kind] } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
  return client;
}

const client = await connect();
const { tools } = await client.listTools();
const result = await client.callTool({ name: "test_simple_text", arguments: {} });
const { resources } = await client.listResources();
const prompt = await client.getPrompt({ name: "test_simple_prompt" });
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), result, resources, prompt }));
await client.close();
