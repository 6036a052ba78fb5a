/** Records: headers, the walk and the scan over them, sealing and padding (vault-format, section 4). */

import { type Bytes, concat, crc32, isZero, readU32, u32, utf8, view } from "./bytes.js";
import { type Code, FormatError } from "./errors.js";
import type { Preamble } from "./preamble.js";
import { open, seal } from "./primitives.js";

export const HEADER_SIZE = 12;
export const MAX_BODY = 67_108_864;
export const MIN_SEALED_BODY = 1_096;
const MAX_PLAINTEXT = 67_043_327;
const CONTEXT = utf8("memseal/v1/record");

/** One stored record: where it stands, and its bytes with the header. */
export interface StoredRecord {
  readonly index: number;
  readonly start: number;
  readonly end: number;
  readonly stored: Uint8Array;
  readonly body: Uint8Array;
}

/** Bytes that hold no record, or a place where records were cut out: indexes `first` up to before `next`. */
export interface DamagedRange {
  readonly start: number;
  readonly end: number;
  readonly first: number;
  readonly next: number | null;
  readonly code: Code;
}

export interface Scan {
  readonly records: readonly StoredRecord[];
  readonly damaged: readonly DamagedRange[];
}

/** Read the one record that must stand at `start`, checked in the order of section 4 up to its index. */
export function recordAt(bytes: Uint8Array, start: number, index: number, minimum = 0): StoredRecord {
  const code = faultAt(bytes, start, index, minimum);
  if (code) throw new FormatError(code);
  return stored(bytes, start);
}

/** Walk a container of which every record must be whole; the first fault is thrown. */
export function walk(bytes: Uint8Array, start: number, first = 0): StoredRecord[] {
  const records: StoredRecord[] = [];
  for (let offset = start; offset < bytes.length;) {
    const record = recordAt(bytes, offset, first + records.length);
    records.push(record);
    offset = record.end;
  }
  return records;
}

/** Walk the headers of a container of sealed records, going on behind what is damaged. */
export function scan(bytes: Uint8Array, start: number, first = 0): Scan {
  const records: StoredRecord[] = [];
  const damaged: DamagedRange[] = [];
  let [offset, expected] = [start, first];
  while (offset < bytes.length) {
    const code = faultAt(bytes, offset, expected, MIN_SEALED_BODY);
    if (code) {
      const found = nextHeader(bytes, offset, expected);
      const end = found ?? bytes.length;
      const next = found === null ? null : readU32(bytes, found + 4);
      // What only seems to be cut, for a sound record follows, is a damaged header.
      const reason = code === "record_torn" && found !== null ? "record_header" : code;
      damaged.push({ start: offset, end, first: expected, next, code: reason });
      if (found === null) break;
      [offset, expected] = [found, next!];
    }
    const record = stored(bytes, offset);
    records.push(record);
    [offset, expected] = [record.end, record.index + 1];
  }
  return { records, damaged };
}

function faultAt(bytes: Uint8Array, start: number, index: number, minimum: number): Code | null {
  if (bytes.length - start < HEADER_SIZE) return "record_torn";
  const length = readU32(bytes, start);
  const isHeaderWhole = crc32(bytes, start, start + 8) === readU32(bytes, start + 8);
  if (!isHeaderWhole) return "record_header";
  if (length > MAX_BODY || length < minimum) return "record_length";
  if (bytes.length - start - HEADER_SIZE < length) return "record_torn";
  return readU32(bytes, start + 4) === index ? null : "record_order";
}

// As many records may have been cut out, plus one for each of the smallest records that fits what is skipped.
const MAX_CUT_OUT = 1_024;
const SMALLEST_RECORD = HEADER_SIZE + MIN_SEALED_BODY;

function nextHeader(bytes: Uint8Array, from: number, expected: number): number | null {
  const data = view(bytes);
  for (let start = from; start + SMALLEST_RECORD <= bytes.length; start++) {
    const length = data.getUint32(start);
    if (length < MIN_SEALED_BODY || length > MAX_BODY || start + HEADER_SIZE + length > bytes.length) continue;
    const above = data.getUint32(start + 4) - expected;
    if (above < 0 || above > MAX_CUT_OUT + Math.floor((start - from) / SMALLEST_RECORD)) continue;
    if (crc32(bytes, start, start + 8) === data.getUint32(start + 8)) return start;
  }
  return null;
}

function stored(bytes: Uint8Array, start: number): StoredRecord {
  const end = start + HEADER_SIZE + readU32(bytes, start);
  return {
    index: readU32(bytes, start + 4),
    start,
    end,
    stored: bytes.subarray(start, end),
    body: bytes.subarray(start + HEADER_SIZE, end),
  };
}

// ── seal and open ───────────────────────────────────────────────────────────────────────────────────

/** Return the content of a sealed record; `code` names what it is when it does not open. */
export async function openRecord(
  key: Uint8Array,
  preamble: Pick<Preamble, "bytes">,
  record: StoredRecord,
  code: Code = "record_sealed",
): Promise<Bytes> {
  const plaintext = await open(key, recordContext(preamble, record.index), record.body, code);
  if (plaintext.length < 4) throw new FormatError("record_padding");
  const length = readU32(plaintext, 0);
  const isPadded = length <= plaintext.length - 4 && plaintext.length === padded(4 + length);
  if (!isPadded || !isZero(plaintext.subarray(4 + length))) throw new FormatError("record_padding");
  return plaintext.slice(4, 4 + length);
}

export async function sealRecord(
  key: Uint8Array,
  preamble: Preamble,
  index: number,
  content: Uint8Array,
): Promise<Bytes> {
  const plaintext = new Uint8Array(plaintextLength(content.length));
  plaintext.set(u32(content.length));
  plaintext.set(content, 4);
  return encodeRecord(index, await seal(key, recordContext(preamble, index), plaintext));
}

export function encodeRecord(index: number, body: Uint8Array): Bytes {
  const head = concat(u32(body.length), u32(index));
  return concat(head, u32(crc32(head)), body);
}

function recordContext(preamble: Pick<Preamble, "bytes">, index: number): Bytes {
  return concat(CONTEXT, preamble.bytes, u32(index));
}

/** The length of the plaintext for a content, length word counted; one that no record can hold is refused. */
export function plaintextLength(content: number): number {
  if (4 + content > MAX_PLAINTEXT) throw new FormatError("record_too_large");
  return padded(4 + content);
}

/** Padmé above 1,024 bytes, so that a length says little of what is inside. */
function padded(size: number): number {
  if (size <= 1_024) return 1_024;
  const exponent = log2(size);
  const step = 2 ** (exponent - log2(exponent) - 1);
  return Math.min(Math.ceil(size / step) * step, MAX_PLAINTEXT);
}

function log2(value: number): number {
  return 31 - Math.clz32(value);
}
