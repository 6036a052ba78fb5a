/** A vault's folder on disk (Node). */

import { readdir, readFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";

import type { Files } from "./vault.js";

/** Read all files of the format; the cache and others are left alone. */
export async function readFolder(folder: string): Promise<Files> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = new Map<string, Uint8Array>();
  for (const entry of entries) {
    const path = join(entry.parentPath ?? entry.path, entry.name);
    const name = relative(folder, path).split(sep).join("/");
    if (entry.isFile() && name.endsWith(".mseal") && !name.startsWith("cache/")) files.set(name, await readFile(path));
  }
  return files;
}
