// The host's side of pairing: it believes one gateway, whose key it was given, and installs what that one signed here.
import { createHash, createPublicKey, generateKeyPairSync, sign, timingSafeEqual, verify, X509Certificate } from "node:crypto";
import { certificateRequest, fingerprint, unpem } from "./der.mjs";
import { openSealed, rawKey } from "./hpke.mjs";

const PROFILE = "crab-pair/v1";
const FRESH = 120_000;
const FIELDS = {
  "pair.init": ["gateway", "sig_ed25519"],
  "pair.challenge": ["challenge_id", "ciphertext", "aad"],
  "pair.csr_issued": [
    "certificate_pem",
    "certificate_chain_pem",
    "serial_number",
    "mtls_cert_fingerprint",
    "not_before",
    "not_after",
    "sig_ed25519",
  ],
  "pair.complete": ["status"],
};
const GATEWAY = ["gateway_id", "public_key_ed25519", "nonce", "issued_at"];
const ED25519 = Buffer.from("302a300506032b6570032100", "hex");

// RFC 8785 for what occurs here: objects and lists of strings.
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.keys(value).sort();
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

function check(fact, why) {
  if (!fact) throw new Error(why);
}

// Outside of texts there is one colon for each field.
const colons = (text) => text.replace(/"(?:[^"\\]|\\.)*"/g, "").split(":").length;

const exactly = (object, keys) => canonical(Object.keys(object).sort()) === canonical([...keys].sort());

function fromBase64(text, size) {
  const raw = Buffer.from(text, "base64");
  check(raw.toString("base64") === text && (!size || raw.length === size), "bytes are not in canonical base64");
  return raw;
}

class Handshake {
  #said = [];

  constructor(line, host) {
    Object.assign(this, { line, host, id: null });
  }

  #digest() {
    const sum = createHash("sha256").update(`${PROFILE} transcript\0`);
    for (const text of this.#said) {
      const size = Buffer.alloc(4);
      size.writeUInt32BE(Buffer.byteLength(text));
      sum.update(size).update(text);
    }
    return sum.digest();
  }

  #signedBytes({ sig_ed25519: _, ...bare }) {
    return Buffer.concat([Buffer.from(`${PROFILE}\0${bare.type}\0`), this.#digest(), Buffer.from(canonical(bare))]);
  }

  #send(type, fields) {
    const message = { type, version: "v1", pairing_id: this.id, ...fields };
    message.sig_ed25519 = sign(null, this.#signedBytes(message), this.host.identity.privateKey).toString("base64");
    this.#said.push(canonical(message));
    this.line.send(canonical(message));
  }

  async #receive(type, seconds = 10) {
    const text = await this.line.receive(seconds);
    const message = JSON.parse(text);
    check(message.type !== "pair.error", `the gateway stopped: ${message.message}`);
    check(colons(text) === colons(canonical(message)), "a field is given twice");
    check(message.type === type && message.version === "v1", `${type} was expected`);
    check(exactly(message, ["type", "version", "pairing_id", ...FIELDS[type]]), `${type} has other fields`);
    check(this.id === null || message.pairing_id === this.id, "it belongs to another handshake");
    return message;
  }

  #verify(message) {
    const key = createPublicKey({ key: Buffer.concat([ED25519, this.host.gatewayKey]), type: "spki", format: "der" });
    const signature = fromBase64(message.sig_ed25519, 64);
    check(verify(null, this.#signedBytes(message), key, signature), "the gateway's signature does not fit");
    this.#said.push(canonical(message));
  }

  async run() {
    const { host } = this;
    const init = await this.#receive("pair.init");
    check(exactly(init.gateway, GATEWAY), "gateway has other fields");
    check(timingSafeEqual(fromBase64(init.gateway.public_key_ed25519, 32), host.gatewayKey), "another gateway is configured here");
    this.#verify(init);
    this.id = init.pairing_id;
    check(Math.abs(Date.now() - Date.parse(init.gateway.issued_at)) <= FRESH, "the initiation is too old");
    check(host.isNew(`${this.id} ${init.gateway.nonce}`), "this initiation was seen before");

    const encryption = generateKeyPairSync("x25519");
    this.#send("pair.identity", {
      remote: {
        component_type: "tool_host",
        component_id: host.name,
        public_key_ed25519: rawKey(host.identity.publicKey).toString("base64"),
        public_key_x25519: rawKey(encryption.publicKey).toString("base64"),
        mtls_cert_fingerprint: fingerprint(unpem(host.shown.cert)),
      },
    });
    await this.#answerChallenge(encryption);
    const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.#send("pair.csr_request", { csr_pem: certificateRequest(pair, host.name) });
    const membership = await this.#issued(pair, init.gateway.gateway_id);
    host.install(membership);
    this.#send("pair.csr_installed", { mtls_cert_fingerprint: membership.fingerprint });
    await this.#receive("pair.complete");
  }

  async #answerChallenge(encryption) {
    const challenge = await this.#receive("pair.challenge");
    const aad = canonical({
      alg: "HPKE-0020-0001-0003",
      challenge_id: challenge.challenge_id,
      pairing_id: this.id,
      transcript_sha256: this.#digest().toString("hex"),
    });
    check(fromBase64(challenge.aad).toString() === aad, "the challenge belongs to another handshake");
    const info = Buffer.from(`${PROFILE}\0pair.challenge\0${aad}`);
    const plain = openSealed(fromBase64(challenge.ciphertext), encryption, info);
    this.#said.push(canonical(challenge));
    this.#send("pair.challenge_response", {
      challenge_id: challenge.challenge_id,
      challenge_plaintext: plain.toString("base64"),
    });
  }

  async #issued(pair, gatewayId) {
    const issued = await this.#receive("pair.csr_issued", 60);
    this.#verify(issued);
    check(issued.certificate_chain_pem.length === 1, "the chain is not exactly one authority");
    const [leaf, authority] = [issued.certificate_pem, issued.certificate_chain_pem[0]].map((one) => new X509Certificate(one));
    check(leaf.verify(authority.publicKey), "the certificate was not issued by the authority beside it");
    check(leaf.publicKey.equals(pair.publicKey), "the certificate is for another key");
    check(fingerprint(leaf.raw) === issued.mtls_cert_fingerprint, "the certificate has another fingerprint");
    const found = /^URI:spiffe:\/\/([^/]+)\/tool_host\/([^/]+)$/.exec(leaf.subjectAltName ?? "");
    check(found && found[2] === this.host.name, "the certificate is for another component");
    return {
      cert: issued.certificate_pem,
      key: pair.privateKey.export({ type: "pkcs8", format: "pem" }),
      ca: issued.certificate_chain_pem[0],
      gateway: `URI:spiffe://${found[1]}/gateway/${gatewayId}`,
      fingerprint: issued.mtls_cert_fingerprint,
    };
  }

  refuse(error) {
    const message = { type: "pair.error", version: "v1", pairing_id: this.id ?? "unknown0", code: "PROTOCOL", message: error.message };
    this.line.send(canonical(message));
  }
}

// Take part in one handshake on a line that the gateway opened.
export async function join(line, host) {
  const handshake = new Handshake(line, host);
  try {
    await handshake.run();
  } catch (error) {
    handshake.refuse(error);
    throw error;
  } finally {
    line.close();
  }
}
