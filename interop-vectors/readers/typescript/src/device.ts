/** The device file: private keys behind the passphrase (vault-format, section 8). */

import { type Bytes, equal, isZero } from "./bytes.js";
import { codeOf, type Code, FormatError } from "./errors.js";
import { Fields } from "./fields.js";
import { decodeCost, type Entry, findEntry, isActive, type Version } from "./keyring.js";
import { decode, decodeMap, type Value } from "./msgpack.js";
import { decodePreamble, KIND, type Preamble, PREAMBLE_SIZE } from "./preamble.js";
import {
  checkCost,
  type Cost,
  costBytes,
  derive,
  isBlank,
  publicSigningKey,
  publicWrappingKey,
  stretch,
} from "./primitives.js";
import { openRecord, type StoredRecord, walk } from "./records.js";

const DEVICE_FILE: Code = "device_file";
const OWN_CODES: readonly Code[] = ["version_unknown", "suite_unknown", "kdf_unknown", "kdf_floor", "kdf_ceiling"];

export interface DeviceFile {
  readonly preamble: Preamble;
  readonly slots: readonly DeviceSlot[];
}

interface DeviceSlot {
  readonly salt: Bytes;
  readonly cost: Cost;
  readonly record: StoredRecord;
}

export interface KeySet {
  readonly sign: Bytes;
  readonly wrap: Bytes;
  readonly local: Bytes;
}

/** Take the file apart; all costs are checked before anything is derived. */
export function decodeDevice(bytes: Uint8Array): DeviceFile {
  try {
    return decoded(bytes);
  } catch (error) {
    const code = codeOf(error);
    throw new FormatError(OWN_CODES.includes(code) ? code : DEVICE_FILE);
  }
}

function decoded(bytes: Uint8Array): DeviceFile {
  const preamble = decodePreamble(bytes, KIND.device);
  if (preamble.epoch !== 0 || !isZero(preamble.nonce)) throw new FormatError(DEVICE_FILE);
  const [first, ...sealed] = walk(bytes, PREAMBLE_SIZE);
  if (!first) throw new FormatError(DEVICE_FILE);
  const slots = Fields.of(decode(first.body), DEVICE_FILE).array("slots");
  const isCounted = (slots.length === 1 || slots.length === 2) && sealed.length === slots.length + 1;
  if (!isCounted) throw new FormatError(DEVICE_FILE);
  return { preamble, slots: slots.map((slot, i) => decodeSlot(slot, i, sealed[i]!)) };
}

function decodeSlot(value: Value, position: number, record: StoredRecord): DeviceSlot {
  const fields = Fields.of(value, DEVICE_FILE);
  if (fields.text("state") !== (position === 0 ? "current" : "pending")) throw fields.wrong();
  const cost = decodeCost(fields.get("cost"), "device_file");
  checkCost(cost);
  return { salt: fields.bytes("salt", 32), cost, record };
}

/** The key sets that a passphrase opens, the current one first; none is `passphrase_wrong`. */
export async function openKeySets(device: DeviceFile, passphrase: string): Promise<KeySet[]> {
  if (isBlank(passphrase)) throw new FormatError("passphrase_wrong");
  const sets: KeySet[] = [];
  for (const slot of device.slots) {
    const set = await openSlot(device, slot, passphrase);
    if (set) sets.push(set);
  }
  if (sets.length === 0) throw new FormatError("passphrase_wrong");
  return sets;
}

async function openSlot({ preamble }: DeviceFile, slot: DeviceSlot, passphrase: string): Promise<KeySet | null> {
  const stretched = await stretch(passphrase, slot.salt, slot.cost);
  const key = derive(
    stretched,
    slot.salt,
    "memseal/v1/device",
    preamble.vaultId,
    preamble.streamId,
    costBytes(slot.cost),
  );
  let content: Bytes;
  try {
    content = await openRecord(key, preamble, slot.record);
  } catch (error) {
    if (codeOf(error) === "record_sealed") return null;
    throw new FormatError(DEVICE_FILE);
  }
  return keySet(content);
}

function keySet(content: Bytes): KeySet {
  try {
    const fields = new Fields(decodeMap(content), DEVICE_FILE);
    if (fields.get("local_before") !== null) fields.bytes("local_before", 32);
    return { sign: fields.bytes("sign", 32), wrap: fields.bytes("wrap", 32), local: fields.bytes("local", 32) };
  } catch (error) {
    codeOf(error);
    throw new FormatError(DEVICE_FILE);
  }
}

export interface Device {
  readonly id: Bytes;
  readonly keys: KeySet;
  readonly entry: Entry;
}

/** The key set that the newest version lists as active. */
export function listedDevice(device: DeviceFile, sets: readonly KeySet[], version: Version): Device {
  const id = device.preamble.streamId;
  const listed = sets.flatMap((keys) => {
    const entry = findEntry(version, publicSigningKey(keys.sign));
    const isOurs = entry && equal(entry.id, id) && equal(entry.wrap, publicWrappingKey(keys.wrap));
    return isOurs ? [{ id, keys, entry }] : [];
  });
  const active = listed.find(({ entry }) => isActive(entry));
  if (active) return active;
  // The listed keys may stand in the slot that did not open, or what opened never got into the keyring.
  if (listed.length === 0 || sets.length < device.slots.length) throw new FormatError("passphrase_wrong");
  const isReplaced = version.devices.some((entry) => isActive(entry) && equal(entry.id, id));
  throw new FormatError(isReplaced ? "local_rollback" : "device_ended");
}
