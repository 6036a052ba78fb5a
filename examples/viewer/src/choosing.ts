/** Take in what the user drops or chooses: one bundle, or a vault's folder. */

import type { Chosen } from "./reading.js";

interface Named {
  readonly path: string;
  readonly file: File;
}

/** From a file input; a chosen folder's own name comes first in each path. */
export function fromInput(input: HTMLInputElement): Promise<Chosen | null> {
  const files = [...(input.files ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
  return chosen(files);
}

/** From a drop. What it holds must be asked for at once: after the first wait the browser has taken it away. */
export async function fromDrop(transfer: DataTransfer): Promise<Chosen | null> {
  const items = [...transfer.items].filter((item) => item.kind === "file");
  const handles = items.map((item) => ("getAsFileSystemHandle" in item ? handleOf(item) : Promise.resolve(null)));
  const entries = items.map((item) => item.webkitGetAsEntry());
  const files = [...transfer.files].map((file) => ({ path: file.name, file }));
  const isFolder = entries.some((entry) => entry?.isDirectory);
  if (!isFolder) return chosen(files);
  const byHandle = await Promise.all(handles.map((handle) => handle.catch(() => null)));
  const found = byHandle.some((handle) => handle !== null)
    ? await Promise.all(byHandle.map((handle) => (handle ? underHandle(handle, handle.name) : [])))
    : await Promise.all(entries.map((entry) => (entry ? underEntry(entry) : [])));
  return chosen(found.flat());
}

function handleOf(item: DataTransferItem): Promise<FileSystemHandle | null> {
  return (item as unknown as { getAsFileSystemHandle(): Promise<FileSystemHandle | null> }).getAsFileSystemHandle();
}

async function underHandle(handle: FileSystemHandle, path: string): Promise<Named[]> {
  if (handle.kind === "file") return [{ path, file: await (handle as FileSystemFileHandle).getFile() }];
  const found: Named[] = [];
  const folder = handle as unknown as { values(): AsyncIterable<FileSystemHandle> };
  for await (const inner of folder.values()) found.push(...(await underHandle(inner, `${path}/${inner.name}`)));
  return found;
}

async function underEntry(entry: FileSystemEntry): Promise<Named[]> {
  if (entry.isFile) return [{ path: entry.fullPath.slice(1), file: await fileOf(entry as FileSystemFileEntry) }];
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: Named[] = [];
  // It gives a hundred at a time, and none when there are no more.
  for (let batch = await entriesOf(reader); batch.length > 0; batch = await entriesOf(reader)) {
    found.push(...(await Promise.all(batch.map(underEntry))).flat());
  }
  return found;
}

function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

function entriesOf(reader: FileSystemDirectoryReader): Promise<FileSystemEntry[]> {
  return new Promise((resolve, reject) => reader.readEntries(resolve, reject));
}

/** A folder with device.mseal is a vault, a single file a bundle; anything else is neither. */
async function chosen(files: readonly Named[]): Promise<Chosen | null> {
  const root = files
    .find(({ path }) => path === "device.mseal" || path.endsWith("/device.mseal"))
    ?.path.slice(0, -"device.mseal".length);
  if (root !== undefined) return { kind: "vault", files: await contents(ofVault(files, root)) };
  return files.length === 1 ? { kind: "bundle", files: await contents(files) } : null;
}

function ofVault(files: readonly Named[], root: string): Named[] {
  const inside = files
    .filter(({ path }) => path.startsWith(root))
    .map(({ path, file }) => ({ path: path.slice(root.length), file }));
  return inside.filter(({ path }) => path.endsWith(".mseal") && !path.startsWith("cache/"));
}

async function contents(files: readonly Named[]): Promise<Map<string, Uint8Array>> {
  const read = files.map(async ({ path, file }) => [path, new Uint8Array(await file.arrayBuffer())] as const);
  return new Map(await Promise.all(read));
}
