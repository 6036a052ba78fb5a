/** `cli.js read VAULT|BUNDLE`, `cli.js append VAULT` (operations as JSON on stdin), `cli.js vectors FOLDER`. */

import { open, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { stdin, stdout } from "node:process";

import { openBundle } from "./bundle.js";
import { FormatError } from "./errors.js";
import { readFolder } from "./folder.js";
import { listMemories } from "./listing.js";
import type { Value, ValueMap } from "./msgpack.js";
import { openVault } from "./vault.js";
import { runVectors } from "./vectors.js";
import { appendRecord } from "./writing.js";

const USAGE = `usage: node dist/cli.js read VAULT     print the memories of a vault's folder or a bundle as JSON
       node dist/cli.js append VAULT   append one record with the operations on standard input (a JSON array)
       node dist/cli.js vectors FOLDER run the vectors of FOLDER/manifest.json
The passphrase comes from MEMSEAL_PASSPHRASE, or for read from standard input.
`;

async function main([command, path, ...rest]: readonly string[]): Promise<number> {
  if (path === undefined || rest.length > 0) return usage();
  if (command === "read") return read(path);
  if (command === "append") return append(path);
  if (command === "vectors") return runVectors(path, (line) => stdout.write(`${line}\n`));
  return usage();
}

function usage(): number {
  process.stderr.write(USAGE);
  return 2;
}

async function read(path: string): Promise<number> {
  const passphrase = process.env["MEMSEAL_PASSPHRASE"] ?? (await readStdin()).replace(/\r?\n$/, "");
  const isFolder = (await stat(path)).isDirectory();
  const { state, findings } = isFolder
    ? await openVault(await readFolder(path), passphrase)
    : await openBundle(await readFile(path), passphrase);
  stdout.write(`${JSON.stringify({ memories: listMemories(state), findings }, null, 2)}\n`);
  return findings.length > 0 ? 1 : 0;
}

async function append(path: string): Promise<number> {
  const vault = await openVault(await readFolder(path), process.env["MEMSEAL_PASSPHRASE"] ?? "");
  const operations = (JSON.parse(await readStdin()) as unknown[]).map((item) => fromJson(item) as ValueMap);
  const { file, offset, bytes } = await appendRecord(vault, operations);
  const handle = await open(join(path, file), offset === 0 ? "wx" : "r+");
  try {
    await handle.truncate(offset);
    await handle.write(bytes, 0, bytes.length, offset);
    await handle.sync();
  } finally {
    await handle.close();
  }
  stdout.write(`${JSON.stringify({ file, offset, size: bytes.length })}\n`);
  return 0;
}

/** JSON as an operation; `{"hex": …}` is a byte string. */
function fromJson(value: unknown): Value {
  if (Array.isArray(value)) return value.map(fromJson);
  if (typeof value !== "object" || value === null) return value as Value;
  if ("hex" in value) return Uint8Array.from(Buffer.from(String(value.hex), "hex"));
  return new Map(Object.entries(value).map(([name, item]) => [name, fromJson(item)]));
}

async function readStdin(): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of stdin) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString("utf8");
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof FormatError)) throw error;
  stdout.write(`${JSON.stringify({ error: error.code })}\n`);
  process.exitCode = 5;
}
