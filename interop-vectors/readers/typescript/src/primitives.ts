/** The recipes of suite 1 (vault-format, section 2): the only file that touches the crypto libraries. */

import { ed25519 } from "@noble/curves/ed25519.js";
import { expand, extract, hkdf } from "@noble/hashes/hkdf.js";
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 as nobleSha256, sha512 } from "@noble/hashes/sha2.js";
import { ml_kem768_x25519 } from "@noble/post-quantum/hybrid.js";
import { argon2id } from "hash-wasm";

import { type Bytes, concat, equal, random, toHex, u32, utf8 } from "./bytes.js";
import { type Code, FormatError } from "./errors.js";

// ── hash, derive, passphrase ────────────────────────────────────────────────────────────────────────

// Synchronous, unlike WebCrypto's: a log hashes each of its small records, and a wait for each would cost more than it.
export function sha256(...pieces: readonly Uint8Array[]): Bytes {
  const hash = nobleSha256.create();
  for (const piece of pieces) hash.update(piece);
  return hash.digest() as Bytes;
}

/** HKDF-SHA-512 over label and parts, each with its length in front. */
export function derive(ikm: Uint8Array, salt: Uint8Array, label: string, ...parts: readonly Uint8Array[]): Bytes {
  const info = [utf8(label), ...parts].flatMap((part) => [u32(part.length), part]);
  return hkdf(sha512, ikm, salt, concat(...info), 32) as Bytes;
}

export interface Cost {
  readonly name: string;
  readonly memory: number;
  readonly passes: number;
  readonly lanes: number;
}

export const STANDARD_COST: Cost = { name: "argon2id", memory: 65536, passes: 3, lanes: 4 };

export function costBytes(cost: Cost): Bytes {
  return concat(u32(cost.memory), u32(cost.passes), u32(cost.lanes));
}

/** Refuse a cost before anything is derived with it. */
export function checkCost(cost: Cost): void {
  if (cost.name !== "argon2id") throw new FormatError("kdf_unknown");
  if (cost.memory < 65536 || cost.passes < 3 || cost.lanes < 1) throw new FormatError("kdf_floor");
  if (cost.memory > 1048576 || cost.passes > 10 || cost.lanes > 16) throw new FormatError("kdf_ceiling");
}

// Spelt out: JavaScript's \s has other members (U+FEFF is one, U+0085 is none).
export const WHITE_SPACE = /[\u0009-\u000d\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/g;

/** Whether it is empty or only white space: such a passphrase is never set, so it opens nothing. */
export function isBlank(passphrase: string): boolean {
  return passphrase.replace(WHITE_SPACE, "") === "";
}

export async function stretch(passphrase: string, salt: Uint8Array, cost: Cost): Promise<Bytes> {
  if (isBlank(passphrase)) throw new FormatError("passphrase_empty");
  checkCost(cost);
  const password = utf8(passphrase.normalize("NFC"));
  const known = toHex(sha256(costBytes(cost), salt, password));
  const output = kept?.get(known) ?? (await argon2(password, salt, cost));
  kept?.set(known, output);
  return output;
}

let kept: Map<string, Bytes> | null = null;

/** Keep what is derived, for a run over many vectors with few passphrases: most of its time goes here. Never where a secret is typed. */
export function keepStretched(): void {
  kept ??= new Map();
}

async function argon2(password: Uint8Array, salt: Uint8Array, cost: Cost): Promise<Bytes> {
  const output = await argon2id({
    password,
    salt,
    parallelism: cost.lanes,
    iterations: cost.passes,
    memorySize: cost.memory,
    hashLength: 32,
    outputType: "binary",
  });
  return output as Bytes;
}

// ── seal: Cobblestone-256 ───────────────────────────────────────────────────────────────────────────

const CHUNK = 16384;
const TAG = 16;
const SALT = 24;
const COMMITMENT = 32;
const PREFIX = SALT + COMMITMENT;
const COBBLESTONE = utf8("c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0");

export function sealedLength(length: number): number {
  return length + PREFIX + TAG * (Math.floor(length / CHUNK) + 1);
}

export async function seal(key: Uint8Array, context: Uint8Array, plaintext: Uint8Array): Promise<Bytes> {
  const salt = random(SALT);
  const keys = await messageKeys(key, salt, context, "encrypt");
  const pieces: Uint8Array[] = [salt, keys.commitment];
  for (let chunk = 0; chunk * CHUNK <= plaintext.length; chunk++) {
    const part = plaintext.slice(chunk * CHUNK, (chunk + 1) * CHUNK);
    pieces.push(new Uint8Array(await crypto.subtle.encrypt(gcm(keys.nonce, chunk), keys.key, part)));
  }
  return concat(...pieces);
}

/** Open sealed bytes, or throw `code`; no byte of plaintext is given out before all tags are checked. */
export async function open(key: Uint8Array, context: Uint8Array, sealed: Uint8Array, code: Code): Promise<Bytes> {
  const full = Math.floor((sealed.length - PREFIX) / (CHUNK + TAG));
  const rest = sealed.length - PREFIX - full * (CHUNK + TAG);
  if (sealed.length < PREFIX + TAG || rest < TAG) throw new FormatError(code);
  const keys = await messageKeys(key, sealed.subarray(0, SALT), context, "decrypt");
  if (!equal(keys.commitment, sealed.subarray(SALT, PREFIX))) throw new FormatError(code);
  const plaintext = new Uint8Array(full * CHUNK + rest - TAG);
  for (let chunk = 0; chunk <= full; chunk++) {
    const start = PREFIX + chunk * (CHUNK + TAG);
    const part = sealed.slice(start, start + CHUNK + TAG);
    plaintext.set(await decrypted(keys.key, gcm(keys.nonce, chunk), part, code), chunk * CHUNK);
  }
  return plaintext;
}

async function messageKeys(key: Uint8Array, salt: Uint8Array, context: Uint8Array, use: KeyUsage) {
  const output = expandSha512(key, concat(COBBLESTONE, salt, context), 32 + 12 + COMMITMENT);
  return {
    key: await crypto.subtle.importKey("raw", output.slice(0, 32), "AES-GCM", false, [use]),
    nonce: output.slice(32, 44),
    commitment: output.slice(44),
  };
}

// By hand: the library refuses a key that is shorter than the hash, which Cobblestone-256 has by its definition.
function expandSha512(key: Uint8Array, info: Uint8Array, length: number): Bytes {
  let block: Uint8Array = new Uint8Array(0);
  const blocks: Uint8Array[] = [];
  for (let counter = 1; 64 * blocks.length < length; counter++) {
    block = hmac(sha512, key, concat(block, info, Uint8Array.of(counter)));
    blocks.push(block);
  }
  return concat(...blocks).slice(0, length);
}

function gcm(base: Bytes, chunk: number): AesGcmParams {
  const nonce = base.slice();
  const last = new DataView(nonce.buffer, 8);
  last.setUint32(0, last.getUint32(0) ^ chunk);
  return { name: "AES-GCM", iv: nonce };
}

async function decrypted(key: CryptoKey, algorithm: AesGcmParams, part: Bytes, code: Code): Promise<Uint8Array> {
  try {
    return new Uint8Array(await crypto.subtle.decrypt(algorithm, key, part));
  } catch (error) {
    // OperationError is how WebCrypto says that the tag is wrong; nothing else is hidden.
    if (error instanceof Error && error.name === "OperationError") throw new FormatError(code);
    throw error;
  }
}

// ── wrap: HPKE base mode with X-Wing ────────────────────────────────────────────────────────────────

const ENC = 1120;
export const WRAPPED = ENC + 32 + TAG;
const HPKE_SUITE = concat(utf8("HPKE"), Uint8Array.of(0x64, 0x7a, 0x00, 0x01, 0x00, 0x02));
const HPKE_VERSION = utf8("HPKE-v1");
const NOTHING = new Uint8Array(0);

export function publicWrappingKey(seed: Uint8Array): Bytes {
  return ml_kem768_x25519.keygen(seed).publicKey as Bytes;
}

export async function unwrap(seed: Uint8Array, info: Uint8Array, wrapped: Uint8Array): Promise<Bytes> {
  if (wrapped.length < ENC + TAG) throw new FormatError("box_sealed");
  const shared = decapsulated(seed, wrapped.subarray(0, ENC));
  const context = concat(
    Uint8Array.of(0),
    labeledExtract(NOTHING, "psk_id_hash", NOTHING),
    labeledExtract(NOTHING, "info_hash", info),
  );
  const secret = labeledExtract(shared, "secret", NOTHING);
  const raw = labeledExpand(secret, "key", context, 32);
  const nonce = labeledExpand(secret, "base_nonce", context, 12);
  const key = await crypto.subtle.importKey("raw", raw, "AES-GCM", false, ["decrypt"]);
  const opened = await decrypted(key, { name: "AES-GCM", iv: nonce }, wrapped.slice(ENC), "box_sealed");
  return opened as Bytes;
}

function decapsulated(seed: Uint8Array, enc: Uint8Array): Uint8Array {
  try {
    return ml_kem768_x25519.decapsulate(enc, seed);
  } catch {
    // The library refuses points of low order with an error of no type of its own; its lengths are right here.
    throw new FormatError("box_sealed");
  }
}

function labeledExtract(salt: Uint8Array, label: string, ikm: Uint8Array): Uint8Array {
  return extract(nobleSha256, concat(HPKE_VERSION, HPKE_SUITE, utf8(label), ikm), salt);
}

function labeledExpand(prk: Uint8Array, label: string, info: Uint8Array, length: number): Bytes {
  const labeled = concat(Uint8Array.of(0, length), HPKE_VERSION, HPKE_SUITE, utf8(label), info);
  return expand(nobleSha256, prk, labeled, length) as Bytes;
}

// ── sign ────────────────────────────────────────────────────────────────────────────────────────────

const PRIME = 2n ** 255n - 19n;
const HIGHEST_BIT = 1n << 255n;
const UNSOUND = new Set([
  0n,
  1n,
  PRIME - 1n,
  littleEndian(hexBytes("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")),
  littleEndian(hexBytes("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")),
]);

/** Whether nobody could make signatures for this key without having its private half. */
export function isSound(key: Uint8Array): boolean {
  const y = littleEndian(key) & ~HIGHEST_BIT;
  return key.length === 32 && y < PRIME && !UNSOUND.has(y);
}

export function publicSigningKey(seed: Uint8Array): Bytes {
  return ed25519.getPublicKey(seed) as Bytes;
}

export function sign(seed: Uint8Array, message: Uint8Array): Bytes {
  return ed25519.sign(message, seed) as Bytes;
}

/**
 * Verify without the cofactor. By hand, because the library's own check multiplies by the cofactor, and so takes
 * signatures that others refuse.
 */
export function verify(key: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (key.length !== 32 || signature.length !== 64) return false;
  const { Point } = ed25519;
  const order = Point.Fn.ORDER;
  const s = littleEndian(signature.subarray(32));
  if (s >= order) return false;
  const r = signature.subarray(0, 32);
  const k = littleEndian(sha512(concat(r, key, message))) % order;
  try {
    const a = Point.fromBytes(key, false);
    const base = s === 0n ? Point.ZERO : Point.BASE.multiplyUnsafe(s);
    const point = base.subtract(k === 0n ? Point.ZERO : a.multiplyUnsafe(k));
    return equal(point.toBytes(), r);
  } catch {
    return false; // not a point
  }
}

function littleEndian(bytes: Uint8Array): bigint {
  let value = 0n;
  for (let i = bytes.length - 1; i >= 0; i--) value = (value << 8n) | BigInt(bytes[i]!);
  return value;
}

function hexBytes(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g)!, (pair) => parseInt(pair, 16));
}
