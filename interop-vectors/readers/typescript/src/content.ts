/** The content of a record in a log, checkpoint part or bundle (vault-format, section 5). */

import { type Bytes, concat, readU32, u32, utf8, view } from "./bytes.js";
import { FormatError } from "./errors.js";
import { BELOW_2_53, Fields } from "./fields.js";
import { decodeMap, encode, type ValueMap } from "./msgpack.js";
import type { Preamble } from "./preamble.js";
import { sign, verify } from "./primitives.js";
import { decompressFrame } from "./zstd.js";

export const FLAG = { signed: 1, more: 2, compressed: 4 } as const;
const ALL_FLAGS = 7;
const HEAD_SIZE = 37;
const SIGNATURE_SIZE = 64;
const SIGN = utf8("memseal/v1/sign");

/** What can be said of a content before its meta is decoded. */
export interface Envelope {
  readonly chain: Uint8Array;
  readonly flags: number;
  readonly meta: Uint8Array;
  readonly columns: Uint8Array;
  readonly signature: Uint8Array | null;
  readonly unsigned: Uint8Array;
}

export function decodeEnvelope(content: Uint8Array): Envelope {
  if (content.length < HEAD_SIZE) throw new FormatError("record_content");
  const flags = content[32]!;
  if (flags & ~ALL_FLAGS) throw new FormatError("record_flags");
  const metaEnd = HEAD_SIZE + readU32(content, 33);
  const end = content.length - (flags & FLAG.signed ? SIGNATURE_SIZE : 0);
  if (metaEnd > end) throw new FormatError("record_content");
  return {
    chain: content.subarray(0, 32),
    flags,
    meta: content.subarray(HEAD_SIZE, metaEnd),
    columns: content.subarray(metaEnd, end),
    signature: end < content.length ? content.subarray(end) : null,
    unsigned: content.subarray(0, end),
  };
}

/** Vectors of one model: `rows` of `width` halves each, as they are stored. */
export interface EmbeddingColumn {
  readonly model: string;
  readonly width: number;
  readonly rows: number;
  readonly bytes: Uint8Array;
}

export interface Meta {
  readonly map: ValueMap;
  readonly embeddings: readonly EmbeddingColumn[];
}

export async function decodeMeta(envelope: Envelope): Promise<Meta> {
  const isCompressed = (envelope.flags & FLAG.compressed) !== 0;
  const map = decodeMap(isCompressed ? await decompressFrame(envelope.meta) : envelope.meta);
  return { map, embeddings: decodeColumns(map, envelope.columns) };
}

/** Take the columns apart, which must fill `bytes`; those of another name or type are skipped. */
function decodeColumns(map: ValueMap, bytes: Uint8Array): EmbeddingColumn[] {
  const columns = map.has("columns") ? new Fields(map, "column_length").array("columns") : [];
  let offset = 0;
  const embeddings: EmbeddingColumn[] = [];
  for (const item of columns) {
    const column = Fields.of(item, "column_length");
    const size = column.integer("bytes", 0, BELOW_2_53);
    if (size > bytes.length - offset) throw column.wrong();
    const isKnown = column.map.get("type") === "f2" && column.map.get("name") === "embedding";
    if (isKnown) embeddings.push(embeddingColumn(column, bytes.subarray(offset, offset + size)));
    offset += size;
  }
  if (offset !== bytes.length) throw new FormatError("column_length");
  return embeddings;
}

function embeddingColumn(column: Fields, bytes: Uint8Array): EmbeddingColumn {
  const [rows, width] = [column.integer("rows"), column.integer("width", 1)];
  if (rows * width * 2 !== bytes.length) throw column.wrong();
  return { model: column.text("model"), width, rows, bytes };
}

const MAX_LENGTH_ERROR = 0.04;

/** Return one row below `rows`, or throw `column_value` if it is not finite or not of unit length. */
export function embeddingRow(column: EmbeddingColumn, row: number): Float32Array {
  const data = view(column.bytes);
  const vector = new Float32Array(column.width);
  let squared = 0;
  for (let i = 0; i < column.width; i++) {
    vector[i] = half(data.getUint16(2 * (row * column.width + i), true));
    squared += vector[i]! ** 2;
  }
  if (!(Math.abs(squared - 1) < MAX_LENGTH_ERROR)) throw new FormatError("column_value");
  return vector;
}

/** IEEE 754 binary16, which Node 20 has no name for. */
function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

// ── signatures ──────────────────────────────────────────────────────────────────────────────────────

export function isSignatureValid(owner: Uint8Array, preamble: Preamble, index: number, envelope: Envelope): boolean {
  return envelope.signature !== null && verify(owner, signed(preamble, index, envelope.unsigned), envelope.signature);
}

/** Return a signed content without columns, its meta stored raw. */
export function encodeSigned(
  seed: Uint8Array,
  preamble: Preamble,
  index: number,
  chain: Uint8Array,
  meta: ValueMap,
): Bytes {
  const encoded = encode(meta);
  const unsigned = concat(chain, Uint8Array.of(FLAG.signed), u32(encoded.length), encoded);
  return concat(unsigned, sign(seed, signed(preamble, index, unsigned)));
}

function signed(preamble: Preamble, index: number, unsigned: Uint8Array): Bytes {
  return concat(SIGN, preamble.bytes, u32(index), unsigned);
}
