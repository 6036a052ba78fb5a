/** Operations and their stamps (vault-format, section 9). */

import { type Bytes, compareBytes, toHex, utf8 } from "./bytes.js";
import { type Code, FormatError } from "./errors.js";
import { asBytes, asInteger, asRow, BELOW_2_32, BELOW_2_53, Fields } from "./fields.js";
import { encode, type Value, type ValueMap } from "./msgpack.js";
import { sha256 } from "./primitives.js";

/** Counter, position and id: the order of operations. */
export interface Stamp {
  readonly counter: number;
  readonly position: number;
  readonly id: Bytes;
}

export function compareStamps(a: Stamp, b: Stamp): number {
  return a.counter - b.counter || a.position - b.position || compareBytes(a.id, b.id);
}

export interface MediaReference {
  readonly id: Bytes;
  readonly key: Bytes;
  readonly bytes: number;
  readonly digest: Bytes;
  readonly type: string;
  readonly name: string | null;
}

/** Microseconds since 1970 UTC; bigint where 53 bits do not hold them. */
export type Time = number | bigint;

/** Integers of 10^-7 degrees, both or neither. */
export interface Location {
  readonly lat: number | null;
  readonly lon: number | null;
  readonly place: string | null;
}

/** Which job made a memory, of what, in which run, from how many others. */
export interface Derivation {
  readonly rule: string;
  readonly key: string;
  readonly run: string;
  readonly count: number;
}

/** The rarer fields of a memory; null where it does not have them. */
export interface Traits {
  readonly type: string | null;
  readonly tier: string | null;
  readonly owner: string | null;
  readonly policy: ValueMap | null;
  readonly location: Location | null;
  readonly derivedFrom: readonly string[];
  readonly derivation: Derivation | null;
}

export interface MemoryFields extends Traits {
  readonly content: string;
  readonly kind: string;
  readonly source: string;
  readonly writtenAt: Time;
  readonly capturedAt: Time | null;
  readonly tags: readonly string[];
  readonly author: string | null;
  readonly thread: string | null;
  readonly position: number | bigint | null;
  readonly origin: string | null;
  readonly embedding: number | null;
  readonly media: readonly MediaReference[];
}

interface Targeted {
  readonly target: string;
  readonly at: Time;
}

/** What an operation says; ids are hexadecimal here, for they are compared and looked up. */
export type Change =
  | { readonly op: "remember"; readonly memory: MemoryFields }
  | { readonly op: "supersede"; readonly memory: MemoryFields; readonly of: string; readonly reason: string | null }
  | ({ readonly op: "retract" | "restore"; readonly reason: string | null } & Targeted)
  | ({
      readonly op: "tag";
      readonly add: readonly string[];
      readonly remove: readonly (readonly [string, string])[];
    } & Targeted)
  | { readonly op: "embed"; readonly target: string; readonly embedding: number }
  | { readonly op: "setting"; readonly name: string; readonly value: Value; readonly at: Time }
  | { readonly op: "erase"; readonly targets: readonly string[]; readonly at: Time; readonly reason: string | null }
  | { readonly op: "dismiss"; readonly stream: string; readonly records: readonly number[]; readonly at: Time }
  /** An operation of newer software: kept, without effect. */
  | { readonly op: null };

export interface Operation {
  readonly id: string;
  readonly stamp: Stamp;
  readonly change: Change;
  /** All of its fields, as they were decoded. */
  readonly map: ValueMap;
}

/** Where an operation stands: its stamp if it has none of its own, and the bound of one that it has. */
export interface Place {
  /** null in a checkpoint part or bundle, where every operation has a stamp. */
  readonly counter: number | null;
  readonly position: number;
  /** The greatest counter that a stamp in the operation may have. */
  readonly most: number;
}

const INVALID: Code = "operation_invalid";

/** Decode one operation, or throw `operation_invalid`, `stamp_invalid` or the code for no stamp. */
export function decodeOperation(value: Value, place: Place, withoutStamp: Code = INVALID): Operation {
  const fields = Fields.of(value, INVALID);
  const decoder = DECODERS.get(fields.text("op")) ?? (() => ({ op: null }));
  const id = fields.bytes("id", 16);
  const stamp = decodeStamp(fields, id, place, withoutStamp);
  return { id: toHex(id), stamp, change: decoder(fields), map: fields.map };
}

function decodeStamp(fields: Fields, id: Bytes, place: Place, withoutStamp: Code): Stamp {
  const value = fields.map.get("stamp") ?? null;
  if (value === null) {
    if (place.counter === null) throw new FormatError(withoutStamp);
    return { counter: place.counter, position: place.position, id };
  }
  const [counter, position] = asRow(value, 2, "stamp_invalid");
  return {
    counter: asInteger(counter, 0, place.most, "stamp_invalid"),
    position: asInteger(position, 0, BELOW_2_32, "stamp_invalid"),
    id,
  };
}

const NOT_PRINTED = new Set(["id", "stamp", "written_at", "tags", "embedding"]);
const PRINTED = new Map([
  ["retract", ["op", "target", "at", "reason"]],
  ["restore", ["op", "target", "at", "reason"]],
  ["erase", ["op", "targets", "at", "reason"]],
  ["setting", ["op", "name", "value", "at"]],
]);

/** What tells an operation from another with its id (section 10). */
export function printOf({ change, map }: Operation): Bytes {
  const named = PRINTED.get(change.op ?? "");
  const hasMore = change.op === "supersede";
  const isPrinted = (name: string): boolean =>
    named ? named.includes(name) : !NOT_PRINTED.has(name) && (hasMore || (name !== "of" && name !== "reason"));
  return sha256(encode(ordered(new Map([...map].filter(([name, value]) => isPrinted(name) && value !== null)))));
}

/** A value with the keys of its maps in the order of their UTF-8. */
function ordered(value: Value): Value {
  if (Array.isArray(value)) return value.map(ordered);
  if (!(value instanceof Map)) return value;
  const sorted = [...value].sort(([a], [b]) => compareBytes(utf8(a), utf8(b)));
  return new Map(sorted.map(([name, item]) => [name, ordered(item)]));
}

/** Which of two operations with one id counts: the one that comes first. */
export function compareClaims(a: Operation, b: Operation): number {
  return compareStamps(a.stamp, b.stamp) || compareBytes(printOf(a), printOf(b)) || compareMemories(a, b);
}

function compareMemories(a: Operation, b: Operation): number {
  if (!("memory" in a.change) || !("memory" in b.change)) return 0;
  const tagsOf = ({ tags }: MemoryFields): Bytes => encode([...new Set(tags)].sort(compareTexts));
  const [one, other] = [a.change.memory, b.change.memory];
  const byTags = compareBytes(tagsOf(one), tagsOf(other));
  return byTags || (one.writtenAt < other.writtenAt ? -1 : one.writtenAt > other.writtenAt ? 1 : 0);
}

function compareTexts(a: string, b: string): number {
  return compareBytes(utf8(a), utf8(b));
}

const DECODERS = new Map<string, (fields: Fields) => Change>([
  ["remember", (fields) => ({ op: "remember", memory: memoryFields(fields) })],
  [
    "supersede",
    (fields) => ({
      op: "supersede",
      memory: memoryFields(fields),
      of: id(fields, "of"),
      reason: optionalText(fields, "reason"),
    }),
  ],
  ["retract", (fields) => ({ op: "retract", ...targeted(fields), reason: optionalText(fields, "reason") })],
  ["restore", (fields) => ({ op: "restore", ...targeted(fields), reason: optionalText(fields, "reason") })],
  [
    "tag",
    (fields) => ({
      op: "tag",
      ...targeted(fields),
      add: texts(fields.array("add")),
      remove: fields.array("remove").map(removal),
    }),
  ],
  ["embed", (fields) => ({ op: "embed", target: id(fields, "target"), embedding: fields.integer("embedding") })],
  [
    "setting",
    (fields) => ({ op: "setting", name: fields.text("name"), value: fields.get("value"), at: time(fields.get("at")) }),
  ],
  [
    "erase",
    (fields) => ({
      op: "erase",
      targets: filled(fields, "targets").map((item) => toHex(asBytes(item, 16, INVALID))),
      at: time(fields.get("at")),
      reason: optionalText(fields, "reason"),
    }),
  ],
  [
    "dismiss",
    (fields) => ({
      op: "dismiss",
      stream: id(fields, "stream"),
      records: filled(fields, "records").map((item) => asInteger(item, 0, BELOW_2_32, INVALID)),
      at: time(fields.get("at")),
    }),
  ],
]);

function memoryFields(fields: Fields): MemoryFields {
  const { map } = fields;
  return {
    content: filledText(fields.get("content")),
    kind: filledText(fields.get("kind")),
    source: filledText(fields.get("source")),
    writtenAt: time(fields.get("written_at")),
    capturedAt: optional(map, "captured_at", time),
    tags: optional(map, "tags", (value) => texts(asArray(value))) ?? [],
    author: optionalText(fields, "author"),
    thread: optionalText(fields, "thread"),
    position: optional(map, "position", time),
    origin: optionalText(fields, "origin"),
    embedding: optional(map, "embedding", (value) => asInteger(value, 0, BELOW_2_32, INVALID)),
    media: optional(map, "media", (value) => asArray(value).map(mediaReference)) ?? [],
    ...traits(fields),
  };
}

const MOST_SOURCES = 1_024;
const MOST_POLICY_FIELDS = 32;
const MOST_LATITUDE = 900_000_000;
const MOST_LONGITUDE = 1_800_000_000;

function traits({ map }: Fields): Traits {
  return {
    type: optional(map, "type", filledText),
    tier: optional(map, "tier", filledText),
    owner: optional(map, "owner", filledText),
    policy: optional(map, "policy", policy),
    location: optional(map, "location", location),
    derivedFrom: optional(map, "derived_from", sources) ?? [],
    derivation: optional(map, "derivation", derivation),
  };
}

function policy(value: Value): ValueMap {
  const fields = Fields.of(value, INVALID);
  if (fields.map.size > MOST_POLICY_FIELDS) throw fields.wrong();
  filledText(fields.get("access"));
  return fields.map;
}

function location(value: Value): Location {
  const fields = Fields.of(value, INVALID);
  const lat = optional(fields.map, "lat", (degrees) => asInteger(degrees, -MOST_LATITUDE, MOST_LATITUDE, INVALID));
  const lon = optional(fields.map, "lon", (degrees) => asInteger(degrees, -MOST_LONGITUDE, MOST_LONGITUDE, INVALID));
  const place = optional(fields.map, "place", filledText);
  if ((lat === null) !== (lon === null) || (lat === null && place === null)) throw fields.wrong();
  return { lat, lon, place };
}

function sources(value: Value): string[] {
  const ids = asArray(value);
  if (ids.length === 0 || ids.length > MOST_SOURCES) throw new FormatError(INVALID);
  return ids.map((item) => toHex(asBytes(item, 16, INVALID)));
}

function derivation(value: Value): Derivation {
  const fields = Fields.of(value, INVALID);
  return {
    rule: filledText(fields.get("rule")),
    key: filledText(fields.get("key")),
    run: id(fields, "run"),
    count: fields.integer("count", 1),
  };
}

function mediaReference(value: Value): MediaReference {
  const fields = Fields.of(value, INVALID);
  return {
    id: fields.bytes("id", 16),
    key: fields.bytes("key", 32),
    bytes: fields.integer("bytes", 0, BELOW_2_53),
    digest: fields.bytes("digest", 32),
    type: fields.text("type"),
    name: optionalText(fields, "name"),
  };
}

function targeted(fields: Fields): Targeted {
  return { target: id(fields, "target"), at: time(fields.get("at")) };
}

function id(fields: Fields, name: string): string {
  return toHex(fields.bytes(name, 16));
}

function removal(value: Value): [string, string] {
  const [tag, adder] = asRow(value, 2, INVALID);
  return [filledText(tag!), toHex(asBytes(adder, 16, INVALID))];
}

const MIN_INT64 = -(2n ** 63n);
const MAX_INT64 = 2n ** 63n - 1n;

function time(value: Value): Time {
  const isInteger =
    typeof value === "number" || (typeof value === "bigint" && value >= MIN_INT64 && value <= MAX_INT64);
  if (!isInteger) throw new FormatError(INVALID);
  return value;
}

function optional<T>(map: ValueMap, name: string, read: (value: Value) => T): T | null {
  const value = map.get(name) ?? null;
  return value === null ? null : read(value);
}

function optionalText(fields: Fields, name: string): string | null {
  return optional(fields.map, name, asText);
}

function asText(value: Value): string {
  if (typeof value !== "string") throw new FormatError(INVALID);
  return value;
}

function filledText(value: Value): string {
  const text = asText(value);
  if (text === "") throw new FormatError(INVALID);
  return text;
}

function texts(values: readonly Value[]): string[] {
  return values.map(filledText);
}

function asArray(value: Value): Value[] {
  if (!Array.isArray(value)) throw new FormatError(INVALID);
  return value;
}

function filled(fields: Fields, name: string): Value[] {
  const items = fields.array(name);
  if (items.length === 0) throw new FormatError(INVALID);
  return items;
}
