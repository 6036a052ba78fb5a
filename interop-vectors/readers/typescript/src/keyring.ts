/** Keyring versions: framing, fields and rule K1 (vault-format, section 7). */

import { type Bytes, concat, equal, isZero, readU64, toHex, utf8 } from "./bytes.js";
import { type Code, FormatError } from "./errors.js";
import { asBytes, asInteger, asRow, BELOW_2_53, Fields } from "./fields.js";
import { decode, type Value, type ValueMap } from "./msgpack.js";
import { decodePreamble, KIND, type Preamble, PREAMBLE_SIZE } from "./preamble.js";
import { type Cost, isSound, sha256 } from "./primitives.js";
import { type StoredRecord, walk } from "./records.js";

/** Where a stream ends. */
export interface End {
  readonly stream: Bytes;
  readonly records: number;
  readonly chain: Bytes;
  readonly length: number;
}

export interface Entry {
  readonly id: Bytes;
  readonly sign: Bytes;
  readonly wrap: Bytes;
  readonly since: number;
  readonly ended: { readonly version: number; readonly streams: readonly End[] } | null;
  readonly map: ValueMap;
}

export interface Way {
  readonly generation: number;
  readonly since: number;
  readonly wrap: Bytes;
  readonly request: Bytes;
  readonly map: ValueMap;
}

export interface FloorRow extends End {
  readonly epoch: number;
  readonly nonce: Bytes;
  readonly segment: number;
  readonly counter: number;
}

export interface Floor {
  readonly checkpoint: Bytes;
  readonly digest: Bytes;
  readonly parts: readonly Bytes[];
  readonly logs: readonly FloorRow[];
  readonly map: ValueMap;
}

export interface Signature {
  readonly key: Bytes;
  readonly signature: Bytes;
}

export interface Version {
  readonly preamble: Preamble;
  readonly version: number;
  readonly previous: Bytes;
  readonly epoch: number;
  readonly epochSince: number;
  readonly epochKey: Bytes;
  readonly devices: readonly Entry[];
  readonly kit: Way & { readonly cost: Cost };
  readonly recovery: Way | null;
  readonly passphraseSince: number;
  readonly floor: Floor | null;
  readonly map: ValueMap;
  readonly sealed: Bytes;
  readonly signatures: readonly Signature[];
  readonly digest: Bytes;
  /** SHA-256(preamble ‖ record 0 as stored), which slots name. */
  readonly publicHash: Bytes;
  /** Records 2 and 3, or null in a stripped version. */
  readonly sealedPart: { readonly boxes: StoredRecord; readonly secrets: StoredRecord; readonly hash: Bytes } | null;
}

/** Accepted versions, from the first to the newest. */
export interface Keyring {
  readonly vaultId: Bytes;
  readonly versions: readonly Version[];
}

export function newest(keyring: Keyring): Version {
  return keyring.versions.at(-1)!;
}

export function isActive(entry: Entry): boolean {
  return entry.ended === null;
}

const MAX_SIZE = 4 * 1024 * 1024;
const MAX_ENTRIES = 1_024;
const MALFORMED = "keyring_malformed";
const DIGEST = utf8("memseal/v1/keyring");

/** Take one version apart: framing, limits, rule K1. */
export function decodeVersion(bytes: Uint8Array, vaultId?: Uint8Array): Version {
  if (bytes.length > MAX_SIZE) throw new FormatError("keyring_limit");
  const preamble = decodePreamble(bytes, KIND.keyring, vaultId);
  const records = walk(bytes, PREAMBLE_SIZE);
  if (records.length !== 2 && records.length !== 4) throw malformed();
  const [first, second, third, fourth] = records as [StoredRecord, StoredRecord, StoredRecord?, StoredRecord?];
  const map = decoded(first.body);
  const sealedPart =
    third && fourth ? { boxes: third, secrets: fourth, hash: sha256(third.stored, fourth.stored) } : null;
  const approval = Fields.of(decoded(second.body), MALFORMED);
  const sealed = approval.bytes("sealed", 32);
  const version = {
    preamble,
    ...publicSection(map),
    map: map as ValueMap,
    sealed,
    signatures: approval.array("signatures").map(signature),
    digest: sha256(DIGEST, preamble.bytes, first.stored, sealed),
    publicHash: sha256(preamble.bytes, first.stored),
    sealedPart,
  };
  checkAgreement(version);
  return version;
}

function malformed(): FormatError {
  return new FormatError(MALFORMED);
}

function decoded(body: Uint8Array): Value {
  try {
    return decode(body);
  } catch (error) {
    if (error instanceof FormatError) throw malformed();
    throw error;
  }
}

function signature(value: Value): Signature {
  const [key, signed] = asRow(value, 2, MALFORMED);
  return { key: asBytes(key, 32, MALFORMED), signature: asBytes(signed, 64, MALFORMED) };
}

function publicSection(value: Value) {
  const fields = Fields.of(value, MALFORMED);
  const devices = fields.array("devices");
  if (devices.length > MAX_ENTRIES) throw new FormatError("keyring_limit");
  return {
    version: fields.integer("version", 1),
    previous: fields.bytes("previous", 32),
    epoch: fields.integer("epoch", 1),
    epochSince: fields.integer("epoch_since", 1),
    epochKey: fields.bytes("epoch_key", 32),
    devices: devices.map(entry),
    kit: kit(fields.fields("kit")),
    recovery: optional(fields, "recovery", way),
    passphraseSince: fields.integer("passphrase_since", 1),
    floor: optional(fields, "floor", floor),
  };
}

function optional<T>(fields: Fields, name: string, read: (fields: Fields) => T): T | null {
  const inner = fields.optionalFields(name);
  return inner && read(inner);
}

function entry(value: Value): Entry {
  const fields = Fields.of(value, MALFORMED);
  return {
    id: fields.bytes("id", 16),
    sign: fields.bytes("sign", 32),
    wrap: fields.bytes("wrap", 1_216),
    since: fields.integer("since", 1),
    ended: optional(fields, "ended", (ended) => ({
      version: ended.integer("version", 1),
      streams: unrepeated(ended.array("streams").map(end), (one) => one.stream),
    })),
    map: fields.map,
  };
}

function end(value: Value): End {
  const [stream, records, chain, length] = asRow(value, 4, MALFORMED);
  return {
    stream: asBytes(stream, 16, MALFORMED),
    records: asInteger(records, 0, 2 ** 32 - 1, MALFORMED),
    chain: asBytes(chain, 32, MALFORMED),
    length: asInteger(length, 64, BELOW_2_53, MALFORMED),
  };
}

function way(fields: Fields): Way {
  return {
    generation: fields.integer("generation", 1),
    since: fields.integer("since", 1),
    wrap: fields.bytes("wrap", 1_216),
    request: fields.bytes("request", 32),
    map: fields.map,
  };
}

function kit(fields: Fields): Way & { readonly cost: Cost } {
  const cost = decodeCost(fields.get("cost"), MALFORMED);
  if (cost.name !== "argon2id") throw new FormatError("kdf_unknown");
  return { ...way(fields), cost };
}

export function decodeCost(value: Value, code: Code): Cost {
  const fields = Fields.of(value, code);
  if (fields.map.size !== 4) throw fields.wrong();
  return {
    name: fields.text("name"),
    memory: fields.integer("memory"),
    passes: fields.integer("passes"),
    lanes: fields.integer("lanes"),
  };
}

function floor(fields: Fields): Floor {
  return {
    checkpoint: fields.bytes("checkpoint", 16),
    digest: fields.bytes("digest", 32),
    parts: unrepeated(
      fields.array("parts").map((part) => asBytes(part, 16, MALFORMED)),
      (part) => part,
    ),
    logs: unrepeated(fields.array("logs").map(floorRow), (row) => row.stream),
    map: fields.map,
  };
}

function floorRow(value: Value): FloorRow {
  const [stream, epoch, nonce, segment, length, records, chain, counter] = asRow(value, 8, MALFORMED);
  return {
    ...end([stream!, records!, chain!, length!]),
    epoch: asInteger(epoch, 1, 2 ** 32 - 1, MALFORMED),
    nonce: asBytes(nonce, 12, MALFORMED),
    segment: asInteger(segment, 0, 2 ** 32 - 1, MALFORMED),
    counter: asInteger(counter, 0, BELOW_2_53, MALFORMED),
  };
}

function unrepeated<T>(items: readonly T[], idOf: (item: T) => Uint8Array): readonly T[] {
  if (new Set(items.map((item) => toHex(idOf(item)))).size !== items.length) throw malformed();
  return items;
}

/** K1's second half: what the fields say of each other and of the preamble. */
function checkAgreement(version: Version): void {
  const { preamble, devices, kit, recovery } = version;
  const isPlaced =
    preamble.epoch === version.epoch && isZero(preamble.nonce) && isZero(preamble.streamId.subarray(0, 8));
  if (!isPlaced || readU64(preamble.streamId, 8) !== BigInt(version.version)) throw malformed();
  const keys = [
    version.epochKey,
    kit.request,
    ...(recovery ? [recovery.request] : []),
    ...devices.map((one) => one.sign),
  ];
  if (!keys.every(isSound)) throw malformed();
  unrepeated(devices, (one) => one.sign);
  unrepeated(devices, (one) => one.wrap);
  unrepeated(devices.filter(isActive), (one) => one.id);
}

export function findEntry(version: Version, sign: Uint8Array): Entry | undefined {
  return version.devices.find((one) => equal(one.sign, sign));
}

export function signedDigest(version: Version): Bytes {
  return concat(utf8("memseal/v1/keyring-sign"), version.digest);
}
