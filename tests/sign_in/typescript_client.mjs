// Signs in with the TypeScript SDK's own OAuth client and lists tools: FOLDER URL KEPT PORT.
// Prints `OPEN <address>` where a browser is needed and `TOOLS [...]` in the end.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, url, kept, port] = process.argv.slice(2);
const from = createRequire(pathToFileURL(folder + "/package.json"));
const load = (name) => import(pathToFileURL(from.resolve(name)));
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { UnauthorizedError } = await load("@modelcontextprotocol/sdk/client/auth.js");

const read = () => (existsSync(kept) ? JSON.parse(readFileSync(kept, "utf8")) : {});
const write = (more) => writeFileSync(kept, JSON.stringify({ ...read(), ...more }));
let arrived;
const code = new Promise((resolve) => (arrived = resolve));
const server = createServer((request, response) => {
  const given = new URL(request.url, "http://x").searchParams.get("code");
  response.end("done");
  if (given) arrived(given);
}).listen(Number(port), "127.0.0.1");

const redirectUrl = `http://127.0.0.1:${port}/callback`;
const authProvider = {
  redirectUrl,
  clientMetadata: { client_name: "TypeScript SDK", redirect_uris: [redirectUrl], grant_types: ["authorization_code", "refresh_token"] },
  clientInformation: () => read().client,
  saveClientInformation: (client) => write({ client }),
  tokens: () => read().tokens,
  saveTokens: (tokens) => write({ tokens }),
  redirectToAuthorization: (address) => console.log("OPEN", address.href),
  saveCodeVerifier: (verifier) => write({ verifier }),
  codeVerifier: () => read().verifier,
  invalidateCredentials: (what) => write(what === "tokens" ? { tokens: undefined } : { tokens: undefined, client: undefined }),
};

async function connect() {
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
  const client = new Client({ name: "test", version: "1" });
  try {
    await client.connect(transport);
    return client;
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    await transport.finishAuth(await code);
    return connect();
  }
}

const client = await connect();
const { tools } = await client.listTools();
console.log("TOOLS", JSON.stringify(tools.map((tool) => tool.name)));
await client.close();
server.close();
process.exit(0);
