// A tool host in Node, without a package: node host.mjs NAME HOST:PORT GATEWAY_KEY FOLDER
//
// Written from docs/peers.md. It offers two tools, is paired with the one gateway whose key it was given, and serves
// nobody else.
import { createPrivateKey, createPublicKey, generateKeyPairSync, createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import https from "node:https";
import { join as path } from "node:path";
import { ownCertificate } from "./der.mjs";
import { rawKey } from "./hpke.mjs";
import { join } from "./pairing.mjs";
import { accept } from "./websocket.mjs";

const [name, address, gatewayKey, folder] = process.argv.slice(2);
const [, hostname, port] = /^(.*):(\d+)$/.exec(address);
const REMEMBERED = 600_000;

const tools = {
  "text.reverse": {
    description: "Reverse a text",
    schema: { type: "object", properties: { text: { type: "string" } }, required: ["text"], additionalProperties: false },
    idempotent: true,
    most: 10_000,
    run: ({ text }) => [...text].reverse().join(""),
  },
  "wait": {
    description: "Wait for some milliseconds",
    schema: { type: "object", properties: { ms: { type: "integer" } }, required: ["ms"], additionalProperties: false },
    idempotent: false,
    most: 2_000,
    run: ({ ms }) => new Promise((resolve) => setTimeout(resolve, ms, { waited: ms })),
  },
};

// -- what it keeps

mkdirSync(folder, { recursive: true, mode: 0o700 });
const keep = (file, text) => {
  const draft = path(folder, `.${file}`);
  writeFileSync(draft, text, { mode: 0o600 });
  renameSync(draft, path(folder, file));
};
const kept = (file, make) => {
  if (!existsSync(path(folder, file))) keep(file, make());
  return readFileSync(path(folder, file), "utf8");
};
const pkcs8 = { type: "pkcs8", format: "pem" };
const pairOf = (text) => {
  const privateKey = createPrivateKey(text);
  return { privateKey, publicKey: createPublicKey(privateKey) };
};

const identity = pairOf(kept("identity.pem", () => generateKeyPairSync("ed25519").privateKey.export(pkcs8)));
const own = pairOf(kept("tls.pem", () => generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export(pkcs8)));
const ownCert = kept("tls.crt", () => ownCertificate(own, name));

const host = {
  name,
  identity,
  gatewayKey: Buffer.from(gatewayKey, "base64"),
  membership: existsSync(path(folder, "membership.json")) ? JSON.parse(readFileSync(path(folder, "membership.json"))) : null,
  get shown() {
    return this.membership ?? { cert: ownCert, key: own.privateKey.export(pkcs8) };
  },
  isNew(seen) {
    const all = JSON.parse(kept("seen.json", () => "{}"));
    const lately = Object.fromEntries(Object.entries(all).filter(([, at]) => Date.now() - at < REMEMBERED));
    if (seen in lately) return false;
    keep("seen.json", JSON.stringify({ ...lately, [seen]: Date.now() }));
    return true;
  },
  install(membership) {
    keep("membership.json", JSON.stringify(membership));
    this.membership = membership;
    server.setSecureContext(secure());
  },
};
const secure = () => ({ cert: host.shown.cert, key: host.shown.key, ca: host.membership?.ca, minVersion: "TLSv1.3", maxVersion: "TLSv1.3" });

// Whether it is the gateway that asks: a certificate of the authority from the handshake, for the gateway's own name.
function isGateway(socket) {
  const shown = socket.getPeerCertificate();
  return socket.authorized && shown.subjectaltname === host.membership.gateway && Date.parse(shown.valid_to) > Date.now();
}

// -- tools

const offer = () => ({
  version: "v1",
  service: "node-host",
  tools: Object.entries(tools).map(([tool, { description, schema, idempotent, most }]) => ({
    name: tool,
    description,
    input_schema: schema,
    output_schema: {},
    timeout_ms_default: most,
    timeout_ms_max: most,
    idempotent,
    side_effects: !idempotent,
  })),
});

const results = new Map();
const failed = (status, code, message) => ({ status, error: { code, message, retryable: false } });

async function ended({ tool_name, args, timeout_ms }) {
  const tool = tools[tool_name];
  if (!tool) return failed("error", "TOOL_NOT_FOUND", `There is no tool named ${tool_name}`);
  const unknown = Object.keys(args).find((key) => !(key in tool.schema.properties));
  const missing = tool.schema.required.find((key) => !(key in args));
  if (unknown || missing) return failed("error", "INVALID_ARGS", `${unknown ?? missing} does not fit`);
  const limit = Math.min(timeout_ms ?? tool.most, tool.most);
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, limit, failed("timeout", "TIMEOUT", `It did not end within ${limit} ms. It may have run`));
  });
  const work = (async () => {
    const result = await tool.run(args);
    return { status: "ok", result: typeof result === "object" ? result : { result } };
  })().catch(() => failed("error", "INTERNAL", "It failed"));
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

// The same key and arguments get the first answer, other arguments are refused.
function once(call) {
  if (call.idempotency_key === undefined) return ended(call);
  const key = JSON.stringify([call.tenant_id, call.context.agent_id, call.idempotency_key]);
  const asked = createHash("sha256").update(JSON.stringify([call.tool_name, call.args, call.context.isolation_key])).digest("hex");
  const first = results.get(key);
  if (first && first.asked !== asked) return failed("error", "INVALID_ARGS", "This key was used for another call");
  if (!first) results.set(key, { asked, answer: ended(call) });
  return results.get(key).answer;
}

const CALL = ["version", "call_id", "idempotency_key", "tool_name", "tenant_id", "args", "timeout_ms", "context"];
const CONTEXT = ["agent_id", "session_id", "platform", "channel_id", "actor_id", "isolation_key", "trace_id", "request_origin"];

function readCall(body) {
  const call = JSON.parse(body);
  const texts = [call.call_id, call.tool_name, call.tenant_id, call.context?.agent_id, call.context?.session_id];
  const right =
    call.version === "v1" &&
    texts.every((text) => typeof text === "string") &&
    typeof call.args === "object" &&
    call.args !== null &&
    Object.keys(call).every((key) => CALL.includes(key)) &&
    Object.keys(call.context).every((key) => CONTEXT.includes(key)) &&
    (call.timeout_ms === undefined || (Number.isInteger(call.timeout_ms) && call.timeout_ms >= 1 && call.timeout_ms <= 120_000));
  if (!right) throw new Error("This is no call of the protocol");
  return call;
}

async function answer(request, body) {
  const asked = `${request.method} ${request.url}`;
  if (asked === "GET /v1/tools") return [200, offer()];
  if (asked === "POST /v1/tools/cancel") return [200, { version: "v1", cancelled: false }];
  if (asked !== "POST /v1/tools/call") return [404, failed("error", "INVALID_ARGS", "There is nothing here")];
  let call;
  try {
    call = readCall(body);
  } catch (error) {
    return [400, failed("error", "INVALID_ARGS", error.message)];
  }
  const began = Date.now();
  const ending = await once(call);
  return [200, { version: "v1", call_id: call.call_id, tool_name: call.tool_name, duration_ms: Date.now() - began, ...ending }];
}

async function handle(request, response) {
  const send = (status, value) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(value));
  };
  if (!host.membership) return send(503, failed("error", "PAIRING_REQUIRED", "This host is not paired yet"));
  if (!isGateway(request.socket)) return send(403, failed("error", "FORBIDDEN", "Only its gateway may ask this host"));
  const parts = [];
  for await (const part of request) parts.push(part);
  return send(...(await answer(request, Buffer.concat(parts).toString("utf8"))));
}

const server = https.createServer({ ...secure(), requestCert: true, rejectUnauthorized: false }, handle);
server.on("upgrade", (request, socket) => {
  const refused = request.url !== "/v1/pair" || request.headers.origin || (host.membership && !isGateway(socket));
  if (refused) return socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  return join(accept(request, socket), host).catch((error) => console.error(`A handshake failed: ${error.message}`));
});
server.listen(Number(port), hostname, () => {
  const key = createHash("sha256").update(rawKey(identity.publicKey)).digest("hex");
  const paired = host.membership !== null;
  console.log(JSON.stringify({ url: `wss://${hostname}:${server.address().port}`, fingerprint: `sha256:${key}`, paired }));
});
process.on("SIGTERM", () => process.exit(0));
