/** Rules K2–K10: whether a keyring version follows the one before (vault-format, section 7, "Acceptance"). */

import { type Bytes, equal, isZero, toHex, utf8 } from "./bytes.js";
import { type Code, FormatError } from "./errors.js";
import {
  decodeVersion,
  type Entry,
  findEntry,
  type FloorRow,
  isActive,
  type Keyring,
  signedDigest,
  type Version,
  type Way,
} from "./keyring.js";
import { mostCounter } from "./fields.js";
import { streamId } from "./log.js";
import { same, type ValueMap } from "./msgpack.js";
import { PREAMBLE_SIZE } from "./preamble.js";
import { sha256, verify } from "./primitives.js";

export function vaultIdOf(firstSigningKey: Uint8Array): Bytes {
  return sha256(utf8("memseal/v1/vault"), firstSigningKey).slice(0, 16);
}

/** Accept versions one after the other, from the first on. */
export function acceptAll(files: readonly Uint8Array[], vaultId: Bytes): Keyring {
  const versions: Version[] = [];
  for (const file of files) {
    const version = decodeVersion(file, vaultId);
    accept(version, versions.at(-1) ?? null, vaultId);
    versions.push(version);
  }
  if (versions.length === 0) throw new FormatError("keyring_missing");
  return { vaultId, versions };
}

/** Check K2 to K10 in their order; `before` is null for version 1. */
export function accept(version: Version, before: Version | null, vaultId: Uint8Array): void {
  const n = before ? before.version + 1 : 1;
  const isNext = before ? equal(version.previous, before.digest) : isZero(version.previous);
  require(version.version === n && isNext, "keyring_chain");
  if (before) {
    require(isEpochRight(version, before), "keyring_epoch");
    require(areDevicesRight(version, before), "keyring_devices");
    require(areWaysRight(version, before), "keyring_kit");
    require(!needsEpoch(version, before) || version.epoch !== before.epoch, "keyring_epoch_needed");
    require(isFloorRight(version, before, vaultId), "keyring_floor");
  } else {
    require(isFirst(version, vaultId), "keyring_first");
    require(version.floor === null, "keyring_floor");
  }
  require(!version.sealedPart || equal(version.sealedPart.hash, version.sealed), "keyring_sealed");
  require(areSignaturesRight(version, before), "keyring_signature");
}

function require(condition: boolean, code: Code): void {
  if (!condition) throw new FormatError(code);
}

/** K3 */
function isFirst(version: Version, vaultId: Uint8Array): boolean {
  const [entry, ...others] = version.devices;
  if (!entry || others.length > 0 || entry.ended !== null) return false;
  const ones = [version.epoch, version.epochSince, entry.since, version.passphraseSince];
  const ways = version.recovery ? [version.kit, version.recovery] : [version.kit];
  ones.push(...ways.flatMap((way) => [way.since, way.generation]));
  return equal(vaultIdOf(entry.sign), vaultId) && ones.every((number) => number === 1);
}

/** K4 */
function isEpochRight(version: Version, before: Version): boolean {
  const isSameKey = equal(version.epochKey, before.epochKey);
  if (version.epoch === before.epoch) return isSameKey && version.epochSince === before.epochSince;
  return version.epoch === before.epoch + 1 && version.epochSince === version.version && !isSameKey;
}

/** K5 */
function areDevicesRight(version: Version, before: Version): boolean {
  const kept = version.devices.slice(0, before.devices.length);
  if (kept.length !== before.devices.length) return false;
  const areKept = before.devices.every((old, i) => isKept(old, kept[i]!, version.version));
  const areNew = added(version, before).every((entry) => isAdded(entry, version, before));
  return areKept && areNew && version.devices.some(isActive);
}

function isKept(old: Entry, entry: Entry, n: number): boolean {
  if (same(old.map, entry.map)) return true;
  const isEnded = isActive(old) && entry.ended?.version === n;
  return isEnded && same(without(old.map, "ended"), without(entry.map, "ended"));
}

function isAdded(entry: Entry, version: Version, before: Version): boolean {
  const listed = before.devices.filter((old) => equal(old.id, entry.id));
  const active = listed.find(isActive);
  const isIdFree = listed.length === 0 || (active !== undefined && endsIn(version, active.sign));
  return isActive(entry) && entry.since === version.version && isIdFree;
}

function endsIn(version: Version, sign: Uint8Array): boolean {
  return findEntry(version, sign)?.ended?.version === version.version;
}

function added(version: Version, before: Version): readonly Entry[] {
  return version.devices.slice(before.devices.length);
}

/** K6 */
function areWaysRight(version: Version, before: Version): boolean {
  const isKitChanged = !same(version.kit.map, before.kit.map);
  if (isKitChanged && !isNextWay(version.kit, before.kit, version.version)) return false;
  if (!isRecoveryRight(version, before)) return false;
  if (version.passphraseSince === before.passphraseSince) return true;
  return version.passphraseSince === version.version && isKitChanged;
}

function isRecoveryRight(version: Version, before: Version): boolean {
  const [now, then] = [version.recovery, before.recovery];
  if (!now) return !then;
  if (!then) return now.generation === 1 && now.since === version.version;
  return same(now.map, then.map) || isNextWay(now, then, version.version);
}

function isNextWay(way: Way, before: Way, n: number): boolean {
  const areOthers = !equal(way.wrap, before.wrap) && !equal(way.request, before.request);
  return way.generation === before.generation + 1 && way.since === n && areOthers;
}

/** K7 */
function needsEpoch(version: Version, before: Version): boolean {
  const hasEnded = before.devices.some((old, i) => isActive(old) && !isActive(version.devices[i]!));
  const areWaysChanged = !same(version.kit.map, before.kit.map) || !same(version.recovery?.map, before.recovery?.map);
  return hasEnded || areWaysChanged;
}

/** K8 */
function isFloorRight(version: Version, before: Version, vaultId: Uint8Array): boolean {
  const [now, then] = [version.floor, before.floor];
  if (same(now?.map, then?.map)) return true;
  if (!now || !same(without(version.map, ...STEP, "floor"), without(before.map, ...STEP, "floor"))) return false;
  if (!arePossible(now.logs, version, vaultId)) return false;
  if (!then) return true;
  if (equal(now.checkpoint, then.checkpoint)) return false;
  return then.logs.every((old) => now.logs.some((row) => equal(row.stream, old.stream) && isNotBelow(row, old)));
}

const SMALLEST_RECORD = 1_108;
const LARGEST_RECORD = 67_108_876;
const MAX_PAIRS = 2 ** 22;

/** Whether there can be logs that end as these rows say. */
function arePossible(rows: readonly FloorRow[], version: Version, vaultId: Uint8Array): boolean {
  if (rows.length * version.devices.length > MAX_PAIRS) return false;
  return rows.every((row) => {
    const size = row.length - PREAMBLE_SIZE;
    const isSized = size >= row.records * SMALLEST_RECORD && size <= row.records * LARGEST_RECORD;
    const isCounted = row.records >= 1 && row.records >= row.segment && row.counter <= mostCounter(row.epoch);
    const isOwned = version.devices.some((entry) => equal(streamId(vaultId, entry.sign, row.nonce), row.stream));
    return row.epoch <= version.epoch && isSized && isCounted && isOwned;
  });
}

const STEP = ["version", "previous"] as const;

function isNotBelow(row: FloorRow, old: FloorRow): boolean {
  const isSameLog = row.epoch === old.epoch && equal(row.nonce, old.nonce);
  const isSameLength = row.length === old.length;
  const isRisen =
    row.segment >= old.segment && row.length >= old.length && row.records >= old.records && row.counter >= old.counter;
  const isSameRow =
    row.segment === old.segment &&
    row.records === old.records &&
    row.counter === old.counter &&
    equal(row.chain, old.chain);
  return isSameLog && isRisen && (!isSameLength || isSameRow);
}

/** K10 */
function areSignaturesRight(version: Version, before: Version | null): boolean {
  const signers = new Set(version.signatures.map(({ key }) => toHex(key)));
  if (signers.size !== version.signatures.length) return false;
  const newKeys = (before ? added(version, before) : version.devices).map((entry) => toHex(entry.sign));
  const oldKeys = (before?.devices ?? []).filter(isActive).map((entry) => toHex(entry.sign));
  const epochKeys = [...(before ? [toHex(before.epochKey)] : []), toHex(version.epochKey)];
  const allowed = new Set([...newKeys, ...oldKeys, ...epochKeys]);
  if (![...signers].every((key) => allowed.has(key))) return false;
  // The epoch key of n−1, and that of n where it is another: both are in the list, once or twice.
  if (![...newKeys, ...epochKeys].every((key) => signers.has(key))) return false;
  const isByDevice = before === null || oldKeys.some((key) => signers.has(key)) || isJoin(version, before);
  const message = signedDigest(version);
  return isByDevice && version.signatures.every(({ key, signature }) => verify(key, message, signature));
}

function isJoin(version: Version, before: Version): boolean {
  const [entry, ...others] = added(version, before);
  if (!entry || others.length > 0 || before.devices.some((old) => equal(old.id, entry.id))) return false;
  const areKept = before.devices.every((old, i) => same(old.map, version.devices[i]!.map));
  return areKept && same(without(version.map, ...STEP, "devices"), without(before.map, ...STEP, "devices"));
}

function without(map: ValueMap, ...names: readonly string[]): ValueMap {
  return new Map([...map].filter(([name]) => !names.includes(name)));
}
