/** Read the fields of a decoded map by their types, or throw the code of the place. */

import type { Bytes } from "./bytes.js";
import { type Code, FormatError } from "./errors.js";
import type { Value, ValueMap } from "./msgpack.js";

export const BELOW_2_32 = 2 ** 32 - 1;
export const BELOW_2_53 = 2 ** 53 - 1;

/** The highest counter that a record of an epoch may have (vault-format, section 9). */
export function mostCounter(epoch: number): number {
  return Math.min(epoch * 2 ** 32, BELOW_2_53);
}

export class Fields {
  constructor(
    readonly map: ValueMap,
    private readonly code: Code,
  ) {}

  static of(value: Value | undefined, code: Code): Fields {
    if (!(value instanceof Map)) throw new FormatError(code);
    return new Fields(value, code);
  }

  wrong(): FormatError {
    return new FormatError(this.code);
  }

  get(name: string): Value {
    const value = this.map.get(name);
    if (value === undefined) throw this.wrong();
    return value;
  }

  bytes(name: string, size?: number): Bytes {
    return asBytes(this.get(name), size, this.code);
  }

  integer(name: string, least = 0, most = BELOW_2_32): number {
    return asInteger(this.get(name), least, most, this.code);
  }

  text(name: string): string {
    const value = this.get(name);
    if (typeof value !== "string") throw this.wrong();
    return value;
  }

  array(name: string): Value[] {
    const value = this.get(name);
    if (!Array.isArray(value)) throw this.wrong();
    return value;
  }

  fields(name: string): Fields {
    return Fields.of(this.get(name), this.code);
  }

  optionalFields(name: string): Fields | null {
    return this.get(name) === null ? null : this.fields(name);
  }
}

export function asBytes(value: Value | undefined, size: number | undefined, code: Code): Bytes {
  if (!(value instanceof Uint8Array) || (size !== undefined && value.length !== size)) throw new FormatError(code);
  return value;
}

export function asInteger(value: Value | undefined, least: number, most: number, code: Code): number {
  if (typeof value !== "number" || value < least || value > most) throw new FormatError(code);
  return value;
}

export function asRow(value: Value, size: number, code: Code): Value[] {
  if (!Array.isArray(value) || value.length !== size) throw new FormatError(code);
  return value;
}
