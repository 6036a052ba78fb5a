/** Append a record to the device's own log (vault-format, sections 4, 5 and 9). */

import { type Bytes, concat, equal, fromHex, random, toHex } from "./bytes.js";
import { encodeSigned } from "./content.js";
import { FormatError } from "./errors.js";
import { mostCounter } from "./fields.js";
import { newest } from "./keyring.js";
import { droppedBytes, epochBeginning, logKey, streamId } from "./log.js";
import type { Head } from "./meta.js";
import type { Value, ValueMap } from "./msgpack.js";
import { decodeOperation } from "./operations.js";
import { encodePreamble, KIND, type Preamble } from "./preamble.js";
import { sha256 } from "./primitives.js";
import { sealRecord } from "./records.js";
import type { OpenedVault, VaultLog } from "./vault.js";

/** Bytes to put at `offset` of a file, which becomes that long: behind a torn write that is cut off. */
export interface Append {
  readonly file: string;
  readonly offset: number;
  readonly bytes: Bytes;
}

/** Return what makes `operations` one durable write; an operation without `id` gets one. */
export async function appendRecord(vault: OpenedVault, operations: readonly ValueMap[]): Promise<Append> {
  refuseNewer(vault);
  const log = ownLog(vault);
  const preamble = log?.place.preamble ?? newPreamble(vault);
  const end = log?.reading.end;
  const index = end?.records ?? 0;
  const chain = end?.chain ?? sha256(preamble.bytes);
  const previous = log ? lastCounter(log) : highestGiven(vault);
  const heads = movedHeads(vault, log, toHex(preamble.streamId));
  const counter = 1 + Math.max(previous, ...heads.map((head) => head.counter));
  if (counter > mostCounter(preamble.epoch)) throw new FormatError("counter_limit");
  const meta: ValueMap = new Map<string, Value>([
    ["previous", previous],
    ["heads", heads.map((head) => [head.stream, head.index, head.chain, head.counter])],
    ["operations", operations.map((operation, position) => complete(operation, counter, position))],
    ["columns", []],
  ]);
  const content = encodeSigned(vault.device.keys.sign, preamble, index, chain, meta);
  const record = await sealRecord(keyOf(vault, preamble), preamble, index, content);
  const file = `logs/${toHex(preamble.streamId)}.mseal`;
  return end
    ? { file, offset: fileOffset(log!), bytes: record }
    : { file, offset: 0, bytes: concat(preamble.bytes, record) };
}

/** Nothing is written to a vault that newer software has moved on. */
function refuseNewer(vault: OpenedVault): void {
  const isNewer = vault.findings.some(
    ({ code, file }) => file.startsWith("keyring/") && (code === "version_unknown" || code === "suite_unknown"),
  );
  if (isNewer) throw new FormatError("vault_read_only");
}

function ownLogs(vault: OpenedVault): VaultLog[] {
  return vault.logs.filter((log) => equal(log.place.owner.id, vault.device.id));
}

/** The log of this epoch and these keys that may be gone on with: of several the one with the highest counter. */
function ownLog(vault: OpenedVault): VaultLog | undefined {
  const { epoch } = newest(vault.keyring);
  const candidates = ownLogs(vault).filter(({ place, reading }) => {
    const isCurrent = place.preamble.epoch === epoch && equal(place.owner.sign, vault.device.entry.sign);
    return isCurrent && reading.isAppendable && reading.end.chain !== null && isWritten(reading);
  });
  return candidates.sort((a, b) => lastCounter(b) - lastCounter(a))[0];
}

/** Whether all that stands in it is believed, so that a write may come after it. */
function isWritten(reading: VaultLog["reading"]): boolean {
  return reading.waiting.length === 0 && reading.counted.size === reading.records.length;
}

function lastCounter(log: VaultLog): number {
  return highestCounter([log]);
}

function highestCounter(logs: readonly VaultLog[]): number {
  const counters = logs.flatMap((log) => [
    log.base?.counter ?? 0,
    ...[...log.clocks.values()].map((clock) => clock.counter),
  ]);
  return Math.max(0, ...counters);
}

/** The highest counter that this device has given in any stream, those that only the floor tells of included. */
function highestGiven(vault: OpenedVault): number {
  const version = newest(vault.keyring);
  const keys = version.devices.filter((entry) => equal(entry.id, vault.device.id)).map((entry) => entry.sign);
  const rows =
    version.floor?.logs.filter((row) =>
      keys.some((key) => equal(streamId(vault.keyring.vaultId, key, row.nonce), row.stream)),
    ) ?? [];
  return Math.max(highestCounter(ownLogs(vault)), ...rows.map((row) => row.counter));
}

function fileOffset({ base, reading }: VaultLog): number {
  return reading.end.length - droppedBytes(base);
}

/** The heads of the other logs, without those that this log has named last just as they are. */
function movedHeads(vault: OpenedVault, log: VaultLog | undefined, stream: string): Head[] {
  const named = new Map<string, Head>();
  for (const clock of log?.clocks.values() ?? []) for (const head of clock.heads) named.set(toHex(head.stream), head);
  const heads = [...currentHeads(vault)].filter(
    ([other, head]) => other !== stream && named.get(other)?.index !== head.index,
  );
  return heads.map(([, head]) => head);
}

/** Where each log ends, by its stream: as it is read here, or as the floor says. */
function currentHeads(vault: OpenedVault): Map<string, Head> {
  const heads = new Map<string, Head>();
  for (const row of newest(vault.keyring).floor?.logs ?? []) {
    if (row.records > 0)
      heads.set(toHex(row.stream), {
        stream: row.stream,
        index: row.records - 1,
        chain: row.chain,
        counter: row.counter,
      });
  }
  for (const log of vault.logs) {
    const head = headOf(log);
    if (head && head.index >= (heads.get(log.stream)?.index ?? 0)) heads.set(log.stream, head);
  }
  return heads;
}

function headOf({ stream, reading, clocks, base }: VaultLog): Head | null {
  const record = reading.records.filter(({ index }) => reading.counted.has(index) && clocks.has(index)).at(-1);
  if (record)
    return {
      stream: fromHex(stream),
      index: record.index,
      chain: record.chainAfter,
      counter: clocks.get(record.index)!.counter,
    };
  if (!base || base.records === 0) return null;
  return { stream: fromHex(stream), index: base.records - 1, chain: base.chain, counter: base.counter };
}

function newPreamble(vault: OpenedVault): Preamble {
  const { vaultId } = vault.keyring;
  const { epoch } = newest(vault.keyring);
  const nonce = concat(epochBeginning(vault.keyring, epoch)!.subarray(0, 8), random(4));
  const id = streamId(vaultId, vault.device.entry.sign, nonce);
  return encodePreamble({ kind: KIND.log, epoch, vaultId, streamId: id, nonce });
}

function keyOf(vault: OpenedVault, preamble: Preamble): Bytes {
  return logKey(vault.vaultKeys.get(preamble.epoch)!, preamble);
}

/** Give it an id, and refuse what a reader would refuse. */
function complete(operation: ValueMap, counter: number, position: number): ValueMap {
  const complete: ValueMap = operation.has("id")
    ? operation
    : new Map<string, Value>([["op", operation.get("op") ?? null], ["id", random(16)], ...operation]);
  decodeOperation(complete, { counter, position, most: counter - 1 });
  return complete;
}
