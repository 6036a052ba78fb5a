/** Checkpoints: manifests and parts (vault-format, section 8b). */

import { type Bytes, equal, isZero, toHex } from "./bytes.js";
import { decodeEnvelope, decodeMeta, FLAG, isSignatureValid } from "./content.js";
import { type Code, type Finding, FormatError } from "./errors.js";
import { asBytes, asInteger, asRow, BELOW_2_53, Fields } from "./fields.js";
import { type Floor, findEntry, type Keyring, newest } from "./keyring.js";
import { epochBeginning } from "./log.js";
import type { Value, ValueMap } from "./msgpack.js";
import { type Piece, readPiece } from "./pieces.js";
import { decodePreamble, KIND, type Preamble, PREAMBLE_SIZE } from "./preamble.js";
import { derive, sha256 } from "./primitives.js";
import { openRecord, walk } from "./records.js";

const INVALID: Code = "checkpoint_invalid";
const NO_SALT = new Uint8Array(0);

export interface PartRow {
  readonly id: Bytes;
  readonly key: Bytes;
  readonly length: number;
  readonly records: number;
  readonly chain: Bytes;
}

export interface LogRow {
  readonly stream: Bytes;
  readonly length: number;
  readonly records: number;
  readonly chain: Bytes;
  readonly counter: number;
}

export interface Manifest {
  readonly madeBy: Bytes;
  readonly counter: number;
  readonly logs: readonly LogRow[];
  readonly parts: readonly PartRow[];
}

/** Open the manifest that a floor names, and check it against the floor. */
export async function openManifest(
  bytes: Uint8Array | null,
  floor: Floor,
  keyring: Keyring,
  vaultKeys: ReadonlyMap<number, Uint8Array>,
): Promise<Manifest> {
  if (!bytes) throw new FormatError("checkpoint_missing");
  const preamble = placeManifest(bytes, floor, keyring, vaultKeys);
  const records = walk(bytes, PREAMBLE_SIZE);
  if (records.length !== 1) throw new FormatError(INVALID);
  const key = derive(
    vaultKeys.get(preamble.epoch)!,
    NO_SALT,
    "memseal/v1/checkpoint",
    preamble.vaultId,
    preamble.streamId,
  );
  const envelope = decodeEnvelope(await openRecord(key, preamble, records[0]!));
  const { map } = await decodeMeta(envelope);
  const isFirst = equal(envelope.chain, sha256(preamble.bytes)) && envelope.columns.length === 0;
  if (!isFirst || (envelope.flags & (FLAG.signed | FLAG.more)) !== FLAG.signed) throw new FormatError(INVALID);
  const manifest = decodeManifest(map);
  const maker = findEntry(newest(keyring), manifest.madeBy);
  if (!maker || !isSignatureValid(maker.sign, preamble, 0, envelope)) throw new FormatError("signature_invalid");
  checkAgainst(floor, manifest);
  if (manifest.counter > Math.max(0, ...manifest.logs.map((row) => row.counter))) throw new FormatError(INVALID);
  return manifest;
}

function placeManifest(
  bytes: Uint8Array,
  floor: Floor,
  keyring: Keyring,
  vaultKeys: ReadonlyMap<number, Uint8Array>,
): Preamble {
  const preamble = decodePreamble(bytes, KIND.checkpoint, keyring.vaultId);
  const isPlaced =
    preamble.epoch > 0 && equal(preamble.streamId, floor.checkpoint) && isZero(preamble.nonce.subarray(8));
  if (!isPlaced || !equal(sha256(bytes), floor.digest)) throw new FormatError("checkpoint_mismatch");
  const beginning = epochBeginning(keyring, preamble.epoch);
  const isBegun = beginning !== null && equal(preamble.nonce.subarray(0, 8), beginning.subarray(0, 8));
  if (!vaultKeys.has(preamble.epoch) || !isBegun) throw new FormatError("epoch_mismatch");
  return preamble;
}

function decodeManifest(map: ValueMap): Manifest {
  const fields = new Fields(map, INVALID);
  return {
    madeBy: fields.bytes("made_by", 32),
    counter: fields.integer("counter", 0, BELOW_2_53),
    logs: fields.array("logs").map(logRow),
    parts: fields.array("parts").map(partRow),
  };
}

function logRow(value: Value): LogRow {
  const [stream, length, records, chain, counter] = asRow(value, 5, INVALID);
  return {
    stream: asBytes(stream, 16, INVALID),
    length: asInteger(length, 64, BELOW_2_53, INVALID),
    records: asInteger(records, 0, 2 ** 32 - 1, INVALID),
    chain: asBytes(chain, 32, INVALID),
    counter: asInteger(counter, 0, BELOW_2_53, INVALID),
  };
}

export function partRow(value: Value): PartRow {
  const [id, key, length, records, chain] = asRow(value, 5, INVALID);
  return {
    id: asBytes(id, 16, INVALID),
    key: asBytes(key, 32, INVALID),
    length: asInteger(length, 64, BELOW_2_53, INVALID),
    records: asInteger(records, 0, 2 ** 32 - 1, INVALID),
    chain: asBytes(chain, 32, INVALID),
  };
}

function checkAgainst(floor: Floor, manifest: Manifest): void {
  const areParts =
    floor.parts.length === manifest.parts.length && floor.parts.every((id, i) => equal(id, manifest.parts[i]!.id));
  const areLogs =
    floor.logs.length === manifest.logs.length && floor.logs.every((row, i) => isSameRow(row, manifest.logs[i]!));
  if (!areParts || !areLogs) throw new FormatError("checkpoint_mismatch");
}

function isSameRow(a: LogRow, b: LogRow): boolean {
  const areNumbers = a.length === b.length && a.records === b.records && a.counter === b.counter;
  return areNumbers && equal(a.stream, b.stream) && equal(a.chain, b.chain);
}

/** Open a part; one that is not what the manifest says is named, and read for what can be saved. */
export async function openPart(
  bytes: Uint8Array | null,
  vaultId: Uint8Array,
  row: PartRow,
  counter: number,
): Promise<Piece> {
  if (!bytes) throw new FormatError("checkpoint_missing");
  const preamble = decodePreamble(bytes, KIND.checkpoint, vaultId);
  const isNamed = preamble.epoch === 0 && isZero(preamble.nonce) && equal(preamble.streamId, row.id);
  if (!isNamed) throw new FormatError("checkpoint_mismatch");
  const file = partFile(row.id);
  const piece = await readPiece(bytes, {
    file,
    preamble,
    key: row.key,
    start: PREAMBLE_SIZE,
    first: 0,
    chain: sha256(preamble.bytes),
    most: counter,
    invalid: INVALID,
  });
  // Where a record was found wrong, the chain differs for that alone.
  const isChained = piece.findings.length > 0 || equal(piece.chain, row.chain);
  const isWhole = bytes.length === row.length && piece.size === row.records && isChained;
  const mismatch: Finding[] = isWhole ? [] : [{ code: "checkpoint_mismatch", file, records: [] }];
  return { ...piece, findings: [...piece.findings, ...mismatch] };
}

export function manifestFile(id: Uint8Array): string {
  return `checkpoints/${toHex(id)}.mseal`;
}

export function partFile(id: Uint8Array): string {
  return `parts/${toHex(id)}.mseal`;
}
