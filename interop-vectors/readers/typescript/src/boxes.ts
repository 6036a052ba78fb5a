/** Boxes, slots and secrets of a keyring version (vault-format, sections 6 and 7, "Opening"). */

import { type Bytes, concat, equal, toHex, u32, u64, utf8 } from "./bytes.js";
import { FormatError } from "./errors.js";
import { asBytes, asInteger, asRow, Fields } from "./fields.js";
import { decode, type Value } from "./msgpack.js";
import type { Version } from "./keyring.js";
import { derive, publicSigningKey, publicWrappingKey, sha256, unwrap, WRAPPED } from "./primitives.js";
import { openRecord } from "./records.js";

const NOTHING = new Uint8Array(0);
const WAY_ID = new Uint8Array(16);

/** Who a box is for: a device, or with an id of zeros the kit or the recovery code by its request key. */
export interface Recipient {
  readonly id: Uint8Array;
  readonly sign: Uint8Array;
  readonly seed: Uint8Array;
}

export function wayRecipient(request: Uint8Array, seed: Uint8Array): Recipient {
  return { id: WAY_ID, sign: request, seed };
}

/** Return the vault key of the version's epoch. */
export async function openBox(version: Version, recipient: Recipient): Promise<Bytes> {
  const wrap = publicWrappingKey(recipient.seed);
  const wrapped = boxesOf(version).find(([key]) => equal(key, wrap))?.[1];
  if (!wrapped) throw new FormatError("box_missing");
  const info = concat(
    utf8("memseal/v1/box"),
    version.preamble.vaultId,
    u64(version.version),
    u32(version.epoch),
    recipient.id,
    recipient.sign,
    sha256(wrap),
  );
  const vaultKey = await unwrap(recipient.seed, info, wrapped);
  if (vaultKey.length !== 32) throw new FormatError("box_sealed");
  if (!isEpochKey(vaultKey, version)) throw new FormatError("epoch_key_mismatch");
  return vaultKey;
}

export function isEpochKey(vaultKey: Uint8Array, version: Version): boolean {
  const seed = derive(vaultKey, NOTHING, "memseal/v1/epoch", version.preamble.vaultId, u32(version.epoch));
  return equal(publicSigningKey(seed), version.epochKey);
}

/** A malformed record 2 is as if it had no boxes and no slots. */
function boxesOf(version: Version): readonly (readonly [Bytes, Bytes])[] {
  return lenient(() => boxList(version).array("boxes").map(box)) ?? [];
}

function box(value: Value): readonly [Bytes, Bytes] {
  const [key, wrapped] = asRow(value, 2, "keyring_malformed");
  return [asBytes(key, 1_216, "keyring_malformed"), asBytes(wrapped, WRAPPED, "keyring_malformed")];
}

export interface Slot {
  readonly generation: number;
  readonly salt: Bytes | null;
  readonly sealed: Bytes;
}

/** The slot for a purpose; of several the last counts. */
export function slotFor(version: Version, purpose: "kit" | "recovery"): Slot | null {
  const slots =
    lenient(() =>
      boxList(version)
        .array("slots")
        .map((value) => Fields.of(value, "keyring_malformed")),
    ) ?? [];
  const slot = slots.filter((fields) => fields.map.get("for") === purpose).at(-1);
  if (!slot) return null;
  return lenient(() => ({
    generation: slot.integer("generation", 1),
    salt: purpose === "kit" ? slot.bytes("salt", 32) : null,
    sealed: slot.bytes("sealed"),
  }));
}

function boxList(version: Version): Fields {
  if (!version.sealedPart) throw new FormatError("keyring_malformed");
  return Fields.of(decode(version.sealedPart.boxes.body), "keyring_malformed");
}

function lenient<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof FormatError) return null;
    throw error;
  }
}

// ── secrets ─────────────────────────────────────────────────────────────────────────────────────────

export interface Secrets {
  readonly history: ReadonlyMap<number, Bytes>;
  /** Names of devices by their id in hexadecimal. */
  readonly names: ReadonlyMap<string, string>;
  readonly kitSecret: Bytes;
}

export async function openSecrets(version: Version, vaultKey: Uint8Array): Promise<Secrets> {
  if (!version.sealedPart) throw new FormatError("keyring_missing");
  const key = derive(vaultKey, NOTHING, "memseal/v1/keyring-secrets", version.preamble.vaultId, u64(version.version));
  const fields = Fields.of(
    decode(await openRecord(key, version.preamble, version.sealedPart.secrets)),
    "keyring_malformed",
  );
  const history = fields.array("history").map((row): [number, Bytes] => {
    const [epoch, old] = asRow(row, 2, "keyring_malformed");
    return [asInteger(epoch, 1, 2 ** 32 - 1, "keyring_malformed"), asBytes(old, 32, "keyring_malformed")];
  });
  return { history: new Map(history), names: names(fields), kitSecret: fields.bytes("kit_secret", 16) };
}

function names(fields: Fields): Map<string, string> {
  const rows = fields.array("names").map((row): [string, string] => {
    const [id, name] = asRow(row, 2, "keyring_malformed");
    if (typeof name !== "string") throw fields.wrong();
    return [toHex(asBytes(id, 16, "keyring_malformed")), name];
  });
  return new Map(rows);
}
