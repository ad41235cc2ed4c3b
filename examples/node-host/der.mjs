// The few forms of DER that a certificate and a certificate request need; Node makes neither by itself.
import { createHash, randomBytes, sign } from "node:crypto";

const node = (tag, ...parts) => {
  const body = Buffer.concat(parts);
  const size = body.length;
  const head = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255];
  return Buffer.concat([Buffer.from([tag, ...head]), body]);
};
const sequence = (...parts) => node(0x30, ...parts);
const oid = (hex) => node(0x06, Buffer.from(hex, "hex"));
const bits = (bytes) => node(0x03, Buffer.from([0]), bytes);
const whole = (bytes) => node(0x02, bytes);
const time = (date) => node(0x18, Buffer.from(date.toISOString().replace(/[-:T]|\.\d+/g, "")));

const ECDSA_SHA256 = sequence(oid("2a8648ce3d040302"));
const name = (text) => sequence(node(0x31, sequence(oid("550403"), node(0x0c, Buffer.from(text)))));
const keyOf = (pair) => pair.publicKey.export({ type: "spki", format: "der" });
const signed = (body, pair) => sequence(body, ECDSA_SHA256, bits(sign("sha256", body, pair.privateKey)));

export const pem = (label, der) =>
  `-----BEGIN ${label}-----\n${der.toString("base64").replace(/.{64}/g, "$&\n").trimEnd()}\n-----END ${label}-----\n`;

export const unpem = (text) => Buffer.from(text.replace(/-----[^-]+-----|\s/g, ""), "base64");

// A request for a certificate: a key and a name, nothing else.
export function certificateRequest(pair, commonName) {
  const body = sequence(whole(Buffer.from([0])), name(commonName), keyOf(pair), node(0xa0));
  return pem("CERTIFICATE REQUEST", signed(body, pair));
}

// What the host shows before it is paired. It proves nothing by itself; its fingerprint is signed in the handshake.
export function ownCertificate(pair, commonName) {
  const serial = Buffer.concat([Buffer.from([1]), randomBytes(15)]);
  const until = new Date(Date.now() + 365 * 86_400_000);
  const body = sequence(
    node(0xa0, whole(Buffer.from([2]))),
    whole(serial),
    ECDSA_SHA256,
    name(commonName),
    sequence(time(new Date(Date.now() - 300_000)), time(until)),
    name(commonName),
    keyOf(pair),
  );
  return pem("CERTIFICATE", signed(body, pair));
}

export const fingerprint = (der) => `sha256:${createHash("sha256").update(der).digest("hex")}`;
