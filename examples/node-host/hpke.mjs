// HPKE (RFC 9180), base mode, one message, receiving only: X25519, HKDF-SHA256, ChaCha20-Poly1305.
import { createDecipheriv, createHmac, createPublicKey, diffieHellman } from "node:crypto";

const KEM = Buffer.from([0x4b, 0x45, 0x4d, 0x00, 0x20]); // "KEM", 0x0020
const SUITE = Buffer.from([0x48, 0x50, 0x4b, 0x45, 0x00, 0x20, 0x00, 0x01, 0x00, 0x03]); // "HPKE" and three ids
const SPKI = Buffer.from("302a300506032b656e032100", "hex");
const NONE = Buffer.alloc(0);

export const x25519Public = (raw) => createPublicKey({ key: Buffer.concat([SPKI, raw]), type: "spki", format: "der" });
export const rawKey = (key) => key.export({ type: "spki", format: "der" }).subarray(-32);

const hmac = (key, ...parts) => parts.reduce((sum, part) => sum.update(part), createHmac("sha256", key)).digest();
const extract = (suite, salt, label, input) => hmac(salt, "HPKE-v1", suite, label, input);

function expand(suite, key, label, info, size) {
  const length = Buffer.from([size >> 8, size & 255]);
  return hmac(key, length, "HPKE-v1", suite, label, info, Buffer.from([1])).subarray(0, size); // one block is enough
}

export function openSealed(sealed, { privateKey, publicKey }, info) {
  const [enc, text, tag] = [sealed.subarray(0, 32), sealed.subarray(32, -16), sealed.subarray(-16)];
  const shared = diffieHellman({ privateKey, publicKey: x25519Public(enc) });
  const context = Buffer.concat([enc, rawKey(publicKey)]);
  const secret = expand(KEM, extract(KEM, NONE, "eae_prk", shared), "shared_secret", context, 32);
  const schedule = Buffer.concat([
    Buffer.from([0]),
    extract(SUITE, NONE, "psk_id_hash", NONE),
    extract(SUITE, NONE, "info_hash", info),
  ]);
  const prk = extract(SUITE, secret, "secret", NONE);
  const [key, nonce] = [expand(SUITE, prk, "key", schedule, 32), expand(SUITE, prk, "base_nonce", schedule, 12)];
  const cipher = createDecipheriv("chacha20-poly1305", key, nonce, { authTagLength: 16 }).setAuthTag(tag);
  return Buffer.concat([cipher.update(text), cipher.final()]);
}
