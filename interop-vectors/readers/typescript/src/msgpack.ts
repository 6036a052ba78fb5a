/**
 * Strict msgpack (vault-format, section 9).
 *
 * Our own, because @msgpack/msgpack takes a map with one key twice, mends invalid UTF-8 in short texts, gives no bound on
 * the number of values, and cannot tell the float 1.0 from the integer 1.
 */

import { type Bytes, concat, utf8, view } from "./bytes.js";
import { FormatError } from "./errors.js";

export type Value = null | boolean | number | bigint | string | Bytes | Float | Value[] | ValueMap;
export type ValueMap = Map<string, Value>;

/** A floating-point number; plain numbers are integers here. */
export class Float {
  constructor(readonly value: number) {}
}

const MAX_DEPTH = 32;
const MAX_VALUES = 2_097_152;

/** Decode exactly one value; integers beyond 2^53 become bigint. */
export function decode(bytes: Uint8Array): Value {
  const decoder = new Decoder(bytes);
  const value = decoder.value(0);
  if (decoder.offset !== bytes.length) throw invalid();
  return value;
}

export function decodeMap(bytes: Uint8Array): ValueMap {
  const value = decode(bytes);
  if (!(value instanceof Map)) throw invalid();
  return value;
}

function invalid(): FormatError {
  return new FormatError("msgpack_invalid");
}

class Decoder {
  offset = 0;
  private values = 0;
  private readonly view: DataView;
  // ignoreBOM keeps a leading U+FEFF as part of the text instead of dropping it.
  private readonly text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

  constructor(private readonly bytes: Uint8Array) {
    this.view = view(bytes);
  }

  value(depth: number): Value {
    this.count(1);
    const type = this.view.getUint8(this.take(1));
    if (type < 0x80) return type;
    if (type < 0x90) return this.map(type & 0x0f, depth + 1);
    if (type < 0xa0) return this.array(type & 0x0f, depth + 1);
    if (type < 0xc0) return this.string(type & 0x1f);
    if (type >= 0xe0) return type - 0x100;
    return this.typed(type, depth);
  }

  private typed(type: number, depth: number): Value {
    const { view } = this;
    switch (type) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xc4:
        return this.binary(view.getUint8(this.take(1)));
      case 0xc5:
        return this.binary(view.getUint16(this.take(2)));
      case 0xc6:
        return this.binary(view.getUint32(this.take(4)));
      case 0xca:
        return new Float(view.getFloat32(this.take(4)));
      case 0xcb:
        return new Float(view.getFloat64(this.take(8)));
      case 0xcc:
        return view.getUint8(this.take(1));
      case 0xcd:
        return view.getUint16(this.take(2));
      case 0xce:
        return view.getUint32(this.take(4));
      case 0xcf:
        return small(view.getBigUint64(this.take(8)));
      case 0xd0:
        return view.getInt8(this.take(1));
      case 0xd1:
        return view.getInt16(this.take(2));
      case 0xd2:
        return view.getInt32(this.take(4));
      case 0xd3:
        return small(view.getBigInt64(this.take(8)));
      case 0xd9:
        return this.string(view.getUint8(this.take(1)));
      case 0xda:
        return this.string(view.getUint16(this.take(2)));
      case 0xdb:
        return this.string(view.getUint32(this.take(4)));
      case 0xdc:
        return this.array(view.getUint16(this.take(2)), depth + 1);
      case 0xdd:
        return this.array(view.getUint32(this.take(4)), depth + 1);
      case 0xde:
        return this.map(view.getUint16(this.take(2)), depth + 1);
      case 0xdf:
        return this.map(view.getUint32(this.take(4)), depth + 1);
      default:
        throw invalid(); // extension types, and 0xc1 that stands for nothing
    }
  }

  private take(size: number): number {
    const start = this.offset;
    if (size > this.bytes.length - start) throw invalid();
    this.offset += size;
    return start;
  }

  private count(values: number): void {
    this.values += values;
    if (this.values > MAX_VALUES) throw invalid();
  }

  private binary(size: number): Bytes {
    const start = this.take(size);
    return this.bytes.slice(start, start + size) as Bytes;
  }

  private string(size: number): string {
    const start = this.take(size);
    try {
      return this.text.decode(this.bytes.subarray(start, start + size));
    } catch {
      throw invalid();
    }
  }

  private array(size: number, depth: number): Value[] {
    this.checkRoom(size, depth);
    const items: Value[] = [];
    for (let i = 0; i < size; i++) items.push(this.value(depth));
    return items;
  }

  private map(size: number, depth: number): ValueMap {
    this.checkRoom(2 * size, depth);
    const map: ValueMap = new Map();
    for (let i = 0; i < size; i++) {
      const key = this.value(depth);
      if (typeof key !== "string" || map.has(key)) throw invalid();
      map.set(key, this.value(depth));
    }
    return map;
  }

  // What is declared needs at least a byte each, and counts: found before any memory is taken for it.
  private checkRoom(values: number, depth: number): void {
    if (depth > MAX_DEPTH || values > this.bytes.length - this.offset) throw invalid();
    if (this.values + values > MAX_VALUES) throw invalid();
  }
}

function small(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

// ── encode ──────────────────────────────────────────────────────────────────────────────────────────

export function encode(value: Value): Bytes {
  const pieces: Uint8Array[] = [];
  write(value, pieces);
  return concat(...pieces);
}

function write(value: Value, out: Uint8Array[]): void {
  if (value === null) out.push(Uint8Array.of(0xc0));
  else if (typeof value === "boolean") out.push(Uint8Array.of(value ? 0xc3 : 0xc2));
  else if (typeof value === "number" || typeof value === "bigint") out.push(integer(BigInt(value)));
  else if (value instanceof Float) out.push(sized(0xcb, 8, (data) => data.setFloat64(1, value.value)));
  else if (typeof value === "string") writeText(value, out);
  else if (value instanceof Uint8Array) out.push(head(value.length, [0xc4, 0xc5, 0xc6]), value);
  else if (Array.isArray(value)) writeArray(value, out);
  else writeMap(value, out);
}

function writeText(value: string, out: Uint8Array[]): void {
  const text = utf8(value);
  out.push(text.length < 32 ? Uint8Array.of(0xa0 | text.length) : head(text.length, [0xd9, 0xda, 0xdb]), text);
}

function writeArray(value: readonly Value[], out: Uint8Array[]): void {
  out.push(value.length < 16 ? Uint8Array.of(0x90 | value.length) : head(value.length, [0xdc, 0xdc, 0xdd]));
  for (const item of value) write(item, out);
}

function writeMap(value: ValueMap, out: Uint8Array[]): void {
  out.push(value.size < 16 ? Uint8Array.of(0x80 | value.size) : head(value.size, [0xde, 0xde, 0xdf]));
  for (const [key, item] of value) {
    writeText(key, out);
    write(item, out);
  }
}

/** The type byte and length; `types` are those of 8, 16 and 32 bits, the first twice where there is none of 8. */
function head(size: number, types: readonly [number, number, number]): Uint8Array {
  if (size < 0x100 && types[0] !== types[1]) return Uint8Array.of(types[0], size);
  if (size < 0x10000) return sized(types[1], 2, (data) => data.setUint16(1, size));
  return sized(types[2], 4, (data) => data.setUint32(1, size));
}

function integer(value: bigint): Uint8Array {
  const number = Number(value);
  if (value >= 0n) {
    if (value < 0x80n) return Uint8Array.of(number);
    if (value < 0x100n) return Uint8Array.of(0xcc, number);
    if (value < 0x10000n) return sized(0xcd, 2, (data) => data.setUint16(1, number));
    if (value < 0x100000000n) return sized(0xce, 4, (data) => data.setUint32(1, number));
    if (value < 1n << 64n) return sized(0xcf, 8, (data) => data.setBigUint64(1, value));
  } else {
    if (value >= -0x20n) return Uint8Array.of(0x100 + number);
    if (value >= -0x80n) return sized(0xd0, 1, (data) => data.setInt8(1, number));
    if (value >= -0x8000n) return sized(0xd1, 2, (data) => data.setInt16(1, number));
    if (value >= -0x80000000n) return sized(0xd2, 4, (data) => data.setInt32(1, number));
    if (value >= -(1n << 63n)) return sized(0xd3, 8, (data) => data.setBigInt64(1, value));
  }
  throw new RangeError("an integer beyond 64 bits");
}

function sized(type: number, size: number, fill: (data: DataView) => void): Uint8Array {
  const bytes = new Uint8Array(1 + size);
  bytes[0] = type;
  fill(new DataView(bytes.buffer));
  return bytes;
}

/** Whether two values are the same, the order of a map's keys not counted. */
export function same(a: Value | undefined, b: Value | undefined): boolean {
  if (a instanceof Map && b instanceof Map)
    return a.size === b.size && [...a].every(([key, item]) => b.has(key) && same(item, b.get(key)));
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => same(item, b[i]));
  if (a instanceof Uint8Array && b instanceof Uint8Array)
    return a.length === b.length && a.every((byte, i) => byte === b[i]);
  if (a instanceof Float && b instanceof Float) return Object.is(a.value, b.value);
  return a === b;
}
