/** Traces: what a device has given out (vault-format, section 8e). */

import { decodeEnvelope, decodeMeta, type Envelope, FLAG } from "./content.js";
import { equal } from "./bytes.js";
import { codeOf, type Finding, FormatError } from "./errors.js";
import { asBytes, asInteger, asRow, Fields } from "./fields.js";
import { Float, type Value, type ValueMap } from "./msgpack.js";
import { decodePreamble, KIND, PREAMBLE_SIZE } from "./preamble.js";
import { derive, sha256 } from "./primitives.js";
import { openRecord, scan } from "./records.js";

const MAX_FILE = 67_108_864;
const CODE = "trace_invalid";
const LEAST_I64 = -(2n ** 63n);
const MOST_I64 = 2n ** 63n - 1n;

/** Where a file of traces belongs: its device with that device's local key, and the nonce that names it. */
export interface TracePlace {
  readonly nonce: Uint8Array;
  readonly local: Uint8Array;
  readonly vaultId: Uint8Array;
  readonly deviceId: Uint8Array;
}

/** Return the traces of a file, each a map with all its fields, and what is wrong; a file that is none is thrown. */
export async function openTraces(
  bytes: Uint8Array,
  place: TracePlace,
): Promise<{ traces: ValueMap[]; findings: Finding[] }> {
  if (bytes.length > MAX_FILE) throw new FormatError(CODE);
  const preamble = decodePreamble(bytes, KIND.trace, place.vaultId);
  const isNamed =
    preamble.epoch === 0 && equal(preamble.streamId, place.deviceId) && equal(preamble.nonce, place.nonce);
  if (!isNamed) throw new FormatError(CODE);
  const { vaultId, deviceId, nonce } = place;
  const key = derive(place.local, new Uint8Array(), "memseal/v1/trace", vaultId, deviceId, nonce);
  const { records, damaged } = scan(bytes, PREAMBLE_SIZE);
  const findings: Finding[] = [];
  const note = (error: unknown, index: number): void =>
    void findings.push({ code: codeOf(error), file: "traces", records: [index] });
  for (const { code, first } of damaged) {
    // What a process that was killed leaves at the end.
    if (code !== "record_torn") note(new FormatError(code), first);
  }
  const traces: ValueMap[] = [];
  let [chain, next]: [Uint8Array | null, number] = [sha256(preamble.bytes), 0];
  for (const record of records) {
    const before: Uint8Array | null = record.index === next ? chain : null;
    [chain, next] = [null, record.index + 1];
    try {
      const envelope = decodeEnvelope(await openRecord(key, preamble, record));
      const trace = await traceMap(envelope);
      if (before && !equal(envelope.chain, before)) note(new FormatError("chain_broken"), record.index);
      chain = sha256(envelope.chain, record.stored);
      traces.push(checked(trace));
    } catch (error) {
      note(error, record.index);
    }
  }
  return { traces, findings };
}

async function traceMap(envelope: Envelope): Promise<ValueMap> {
  const { map } = await decodeMeta(envelope);
  if (envelope.flags & FLAG.signed) throw new FormatError(CODE);
  return map;
}

/** Return a trace of which every field is what it must be. */
function checked(trace: ValueMap): ValueMap {
  const fields = Fields.of(trace, CODE);
  fields.bytes("id", 16);
  isI64(fields.get("at"));
  for (const name of ["surface", "engine"]) fields.text(name);
  for (const name of ["turn", "query", "searched", "embedder"]) optional(fields.get(name), isText);
  optional(fields.get("about"), isId);
  fields.array("terms").forEach(isText);
  for (const name of ["time", "receipt"]) fields.optionalFields(name);
  optional(fields.get("floor"), isScore);
  fields.integer("considered");
  rows(fields, "candidates", [isId, isScore, isScore, orNil(isScore), isFlag, isFlag]);
  rows(fields, "stages", [isText, isCount]);
  rows(fields, "served", [isId, isCount, isFlag, isFlag]);
  if (fields.get("pieces") !== null) rows(fields, "pieces", [orNil(isId), orNil(isText)]);
  fields.array("erased").forEach(isId);
  return trace;
}

type Check = (value: Value) => void;

function rows(fields: Fields, name: string, checks: readonly Check[]): void {
  for (const row of fields.array(name)) {
    asRow(row, checks.length, CODE).forEach((value, place) => checks[place]!(value));
  }
}

function optional(value: Value, check: Check): void {
  if (value !== null) check(value);
}

function orNil(check: Check): Check {
  return (value) => optional(value, check);
}

function isId(value: Value): void {
  asBytes(value, 16, CODE);
}

function isText(value: Value): void {
  if (typeof value !== "string") throw new FormatError(CODE);
}

function isCount(value: Value): void {
  asInteger(value, 0, 2 ** 32 - 1, CODE);
}

function isFlag(value: Value): void {
  asInteger(value, 0, 1, CODE);
}

function isScore(value: Value): void {
  if (!(value instanceof Float) || !Number.isFinite(value.value)) throw new FormatError(CODE);
}

function isI64(value: Value): void {
  if (typeof value !== "number" && typeof value !== "bigint") throw new FormatError(CODE);
  if (BigInt(value) < LEAST_I64 || BigInt(value) > MOST_I64) throw new FormatError(CODE);
}
