/** Run the vectors of interop-vectors/manifest.json. */

import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { type Bytes, concat, fromHex, toHex, view } from "./bytes.js";
import { codeOf, isCode } from "./errors.js";
import { Float, type Value } from "./msgpack.js";
import { keepStretched } from "./primitives.js";
import { LEFT_OUT, OPERATIONS, type Outcome } from "./vector-operations.js";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

/** Run all; the last line is `N passed, N failed`, and what a runner may not pass over stops it. */
export async function runVectors(folder: string, print: (line: string) => void): Promise<number> {
  const manifest = object(JSON.parse(await readFile(join(folder, "manifest.json"), "utf8")) as Json, [
    "format",
    "cases",
  ]);
  const cases = manifest["cases"];
  if (manifest["format"] !== 1 || !Array.isArray(cases) || cases.length === 0) stop("no cases of format 1");
  const files = new InputFiles(folder);
  keepStretched();
  let [passed, failed, left] = [0, 0, 0];
  for (const item of cases) {
    const vector = object(item, ["id", "title", "rule", "operation", "input", "expect"]);
    if (LEFT_OUT.includes(String(vector["operation"]))) {
      left++;
      continue;
    }
    const difference = await run(vector, files);
    if (difference === null) passed++;
    else {
      failed++;
      print(`${String(vector["id"])}: ${difference}`);
    }
  }
  if (left > 0) print(`${left} left to syncing clients`);
  print(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

function stop(reason: string): never {
  throw new Error(`the vectors cannot be run: ${reason}`);
}

/** An object with just these members. */
function object(value: Json | undefined, names: readonly string[]): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) stop("an object is missing");
  const unlike = [
    ...names.filter((name) => !(name in value)),
    ...Object.keys(value).filter((name) => !names.includes(name)),
  ];
  if (unlike.length > 0) stop(`unknown or missing: ${unlike.join(", ")}`);
  return value;
}

async function run(vector: JsonObject, files: InputFiles): Promise<string | null> {
  const operation = OPERATIONS.get(String(vector["operation"]));
  if (!operation) stop(`unknown operation ${String(vector["operation"])}`);
  const input = object(vector["input"], operation.input);
  const expected = await expectation(vector["expect"], files);
  const actual = await outcome(() => operation.run(new Input(input, files)));
  const [wanted, got] = [canonical(expected), canonical(actual)];
  return wanted === got ? null : `expected ${shortened(wanted)}, got ${shortened(got)}`;
}

async function expectation(value: Json | undefined, files: InputFiles): Promise<Json> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) stop("expect is missing");
  if ("error" in value) {
    const { error } = object(value, ["error"]);
    if (typeof error !== "string" || !isCode(error)) stop(`unknown code ${String(error)}`);
    return { error };
  }
  const { ok, findings } = object(value, "findings" in value ? ["ok", "findings"] : ["ok"]);
  if (findings === undefined) return { ok: await files.resolved(ok!), findings: [] };
  const areCodes =
    Array.isArray(findings) &&
    findings.length > 0 &&
    findings.every((code) => typeof code === "string" && isCode(code));
  if (!areCodes) stop("findings with an unknown code, or none");
  return { ok: await files.resolved(ok!), findings };
}

async function outcome(run: () => Promise<Outcome> | Outcome): Promise<Json> {
  try {
    const { ok, findings } = await run();
    return { ok: plain(ok), findings: [...new Set(findings ?? [])].sort() };
  } catch (error) {
    return { error: codeOf(error) };
  }
}

/** Byte strings become hexadecimal. */
function plain(value: unknown): Json {
  if (value instanceof Uint8Array) return toHex(value);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, plain(item)]));
  }
  return value as Json;
}

function canonical(value: Json): string {
  return JSON.stringify(value, (_, item: Json) =>
    typeof item === "object" && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );
}

function shortened(text: string): string {
  return text.length > 600 ? `${text.slice(0, 600)}…` : text;
}

/** A msgpack value as the vectors write it. */
export function taggedValue(value: Value): Json {
  if (typeof value === "bigint") return { int: String(value) };
  if (value instanceof Float) return { float: toHex(float64(value.value)) };
  if (value instanceof Uint8Array) return { bytes: toHex(value) };
  if (Array.isArray(value)) return value.map(taggedValue);
  if (value instanceof Map)
    return { map: Object.fromEntries([...value].map(([name, item]) => [name, taggedValue(item)])) };
  return value;
}

function float64(value: number): Bytes {
  const bytes = new Uint8Array(8);
  view(bytes).setFloat64(0, value);
  return bytes;
}

// ── input ───────────────────────────────────────────────────────────────────────────────────────────

/** Byte strings of the vectors: hexadecimal, a file, several joined, one repeated. */
class InputFiles {
  private readonly cache = new Map<string, Bytes>();

  constructor(readonly folder: string) {}

  async bytes(value: Json | undefined): Promise<Bytes> {
    if (typeof value === "string") return fromHex(value);
    if (!isBytesObject(value)) stop("unknown kind of byte string");
    if ("file" in value) return this.file(String(object(value, ["file"])["file"]));
    if ("join" in value) {
      const pieces = object(value, ["join"])["join"] as Json[];
      return concat(...(await Promise.all(pieces.map((piece) => this.bytes(piece)))));
    }
    const { repeat, times } = object(value, ["repeat", "times"]);
    const piece = await this.bytes(repeat);
    const repeated = new Uint8Array(piece.length * Number(times));
    for (let i = 0; i < Number(times); i++) repeated.set(piece, i * piece.length);
    return repeated;
  }

  private async file(path: string): Promise<Bytes> {
    const known = this.cache.get(path);
    if (known) return known;
    const content = new Uint8Array(await readFile(join(this.folder, path)));
    this.cache.set(path, content);
    return content;
  }

  /** What is expected, with its byte strings as hexadecimal; values of msgpack stay as they are written. */
  async resolved(value: Json): Promise<Json> {
    if (isBytesObject(value)) return toHex(await this.bytes(value));
    if (Array.isArray(value)) return Promise.all(value.map((item) => this.resolved(item)));
    if (typeof value !== "object" || value === null || "map" in value) return value;
    const items = Object.entries(value as JsonObject).map(
      async ([name, item]) => [name, await this.resolved(item)] as const,
    );
    return Object.fromEntries(await Promise.all(items));
  }
}

function isBytesObject(value: Json | undefined): value is JsonObject {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    ("file" in value || "join" in value || "repeat" in value)
  );
}

/** The inputs of one case by their types. */
export class Input {
  constructor(
    private readonly values: JsonObject,
    private readonly files: InputFiles,
  ) {}

  bytes(name: string): Promise<Bytes> {
    return this.files.bytes(this.values[name]);
  }

  async optionalBytes(name: string): Promise<Bytes | null> {
    return this.values[name] === null ? null : this.bytes(name);
  }

  manyBytes(name: string): Promise<Bytes[]> {
    return Promise.all((this.values[name] as Json[]).map((item) => this.files.bytes(item)));
  }

  number(name: string): number {
    const value = this.values[name];
    return typeof value === "number" ? value : stop(`${name} is no number`);
  }

  text(name: string): string {
    const value = this.values[name];
    return typeof value === "string" ? value : stop(`${name} is no text`);
  }

  json(name: string): Json {
    return this.values[name]!;
  }

  value(name: string): Promise<Value> {
    return untagged(this.values[name]!, this.files);
  }

  /** Files by their names. */
  async namedBytes(name: string): Promise<Map<string, Bytes>> {
    const files = Object.entries(this.values[name] as JsonObject);
    return new Map(await Promise.all(files.map(async ([path, item]) => [path, await this.files.bytes(item)] as const)));
  }
}

async function untagged(json: Json, files: InputFiles): Promise<Value> {
  if (Array.isArray(json)) return Promise.all(json.map((item) => untagged(item, files)));
  if (typeof json !== "object" || json === null) return json;
  if ("int" in json) return BigInt(String(object(json, ["int"])["int"]));
  if ("bytes" in json) return files.bytes(object(json, ["bytes"])["bytes"]);
  if ("float" in json) return new Float(view(fromHex(String(object(json, ["float"])["float"]))).getFloat64(0));
  const entries = Object.entries(object(json, ["map"])["map"] as JsonObject);
  return new Map(await Promise.all(entries.map(async ([name, item]) => [name, await untagged(item, files)] as const)));
}
