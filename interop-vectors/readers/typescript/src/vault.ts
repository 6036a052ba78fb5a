/** Open a whole vault folder: everything is checked, damage is a finding, the rest is served. */

import { accept } from "./acceptance.js";
import { type Bytes, equal, fromHex, toHex } from "./bytes.js";
import { isEpochKey, openBox, openSecrets, type Secrets } from "./boxes.js";
import { type Manifest, manifestFile, openManifest, openPart, partFile } from "./checkpoint.js";
import { decodeDevice, type Device, listedDevice, openKeySets } from "./device.js";
import { type Code, codeOf, type Finding, FormatError } from "./errors.js";
import { decodeVersion, type Floor, type Keyring, newest, type Version } from "./keyring.js";
import {
  type Base,
  beginningOf,
  hasBase,
  isBelowFloor,
  type LogReading,
  openBase,
  type Place,
  placeLog,
  readLog,
  type ReadRecord,
} from "./log.js";
import { type Clock, decodeClock, decodeOperations, type Head } from "./meta.js";
import { decodePreamble, KIND, PREAMBLE_SIZE } from "./preamble.js";
import { type Applied, buildState, type State } from "./state.js";

export type Files = ReadonlyMap<string, Uint8Array>;

/** A record's clock, by its index in its log. */
export type Clocks = ReadonlyMap<number, Clock>;

export interface VaultLog {
  readonly file: string;
  readonly stream: string;
  readonly place: Place;
  readonly base: Base | null;
  readonly reading: LogReading;
  readonly clocks: Clocks;
}

export interface OpenedVault {
  readonly device: Device;
  readonly keyring: Keyring;
  readonly secrets: Secrets;
  readonly vaultKeys: ReadonlyMap<number, Bytes>;
  readonly logs: readonly VaultLog[];
  readonly state: State;
  readonly findings: readonly Finding[];
}

/** Told what is being read, for whoever shows progress. */
export type Progress = (doing: string, done: number, total: number) => void;

/** `files` are those of the folder by their path in it, with `/`. */
export async function openVault(files: Files, passphrase: string, progress: Progress = () => {}): Promise<OpenedVault> {
  const reader = new VaultReader(files, progress);
  return reader.open(passphrase);
}

class VaultReader {
  private readonly findings: Finding[] = [];
  private readonly applied: Applied[] = [];

  constructor(
    private readonly files: Files,
    private readonly progress: Progress,
  ) {}

  async open(passphrase: string): Promise<OpenedVault> {
    const file = decodeDevice(this.deviceFile());
    const keyring = this.keyring(file.preamble.vaultId);
    this.progress("passphrase", 0, 1);
    const device = listedDevice(file, await openKeySets(file, passphrase), newest(keyring));
    const { vaultKeys, secrets } = await this.keys(keyring, device);
    await this.checkpoint(keyring, vaultKeys);
    const logs = await this.logs(keyring, vaultKeys, device);
    checkHeads(logs, newest(keyring), (finding) => this.findings.push(finding));
    const state = buildState(this.applied);
    for (const id of state.taken) this.note("id_taken", `memories/${id}`);
    return {
      device,
      keyring,
      secrets,
      vaultKeys,
      logs,
      state,
      findings: this.findings.filter((one) => !isDismissed(one, state)),
    };
  }

  private deviceFile(): Uint8Array {
    const bytes = this.files.get("device.mseal");
    if (bytes) return bytes;
    throw new FormatError(this.named("keyring").length === 0 ? "vault_missing" : "device_file");
  }

  /** Accept the versions in their order; one of a newer format ends them, and is named. */
  private keyring(vaultId: Bytes): Keyring {
    const versions: Version[] = [];
    for (const file of this.named("keyring")) {
      if (numberOf(file) !== versions.length + 1) throw new FormatError("keyring_missing");
      try {
        const version = decodeVersion(this.files.get(file)!, vaultId);
        accept(version, versions.at(-1) ?? null, vaultId);
        versions.push(version);
      } catch (error) {
        const code = codeOf(error);
        if (versions.length === 0 || (code !== "version_unknown" && code !== "suite_unknown")) throw error;
        this.note(code, file);
        break;
      }
    }
    if (versions.length === 0) throw new FormatError("keyring_missing");
    return { vaultId, versions };
  }

  /** The files of a folder that have the names they must have, in their order; others are left alone. */
  private named(folder: string): string[] {
    const pattern =
      folder === "keyring" ? /^keyring\/[0-9]{8}\.mseal$/ : new RegExp(`^${folder}/[0-9a-f]{32}\\.mseal$`);
    return [...this.files.keys()].filter((file) => pattern.test(file)).sort();
  }

  private async keys(keyring: Keyring, device: Device) {
    const recipient = { id: device.id, sign: device.entry.sign, seed: device.keys.wrap };
    const version = newest(keyring);
    if (!version.sealedPart) throw new FormatError("keyring_missing");
    const vaultKey = await openBox(version, recipient);
    const secrets = await openSecrets(version, vaultKey);
    const vaultKeys = new Map<number, Bytes>([[version.epoch, vaultKey]]);
    const take = (known: ReadonlyMap<number, Bytes>): void => {
      for (const [epoch, key] of known)
        if (!vaultKeys.has(epoch) && this.isListed(keyring, epoch, key)) vaultKeys.set(epoch, key);
    };
    take(secrets.history);
    // Older versions that are still whole may have keys that the newest has dropped (section 7, "Older keys").
    for (const older of keyring.versions.slice(0, -1).reverse()) {
      if (!older.sealedPart) continue;
      const key = vaultKeys.get(older.epoch) ?? (await this.attempt(older, () => openBox(older, recipient)));
      if (!key) continue;
      take(new Map([[older.epoch, key]]));
      take((await this.attempt(older, () => openSecrets(older, key)))?.history ?? new Map());
    }
    return { vaultKeys, secrets };
  }

  private isListed(keyring: Keyring, epoch: number, key: Bytes): boolean {
    const version = keyring.versions.find((one) => one.epoch === epoch);
    const isRight = version !== undefined && isEpochKey(key, version);
    if (!isRight) this.note("epoch_key_mismatch", "keyring");
    return isRight;
  }

  private async attempt<T>(version: Version, read: () => Promise<T>): Promise<T | null> {
    try {
      return await read();
    } catch (error) {
      const code = codeOf(error);
      // A device that joined later, or changed its keys, has no box in the versions before.
      if (code !== "box_missing") this.note(code, `keyring/${String(version.version).padStart(8, "0")}.mseal`);
      return null;
    }
  }

  private note(code: Code, file: string, records: readonly number[] = []): void {
    this.findings.push({ code, file, records });
  }

  // ── checkpoint ────────────────────────────────────────────────────────────────────────────────────

  /**
   * Load the newest floor's checkpoint. Where it is not there yet, an older floor's serves, with the logs from there on;
   * it is missed only where these do not hold what it had.
   */
  private async checkpoint(keyring: Keyring, vaultKeys: ReadonlyMap<number, Bytes>): Promise<void> {
    const floors = keyring.versions.flatMap(({ floor }) => (floor ? [floor] : [])).reverse();
    const missing: string[] = [];
    for (const floor of floors) {
      const absent = await this.load(floor, keyring, vaultKeys);
      if (absent === null) {
        if (!this.isBridged(floors[0]!, floor)) this.noteMissing(missing);
        return;
      }
      missing.push(absent);
    }
    if (floors[0] && !this.isBridged(floors[0], null)) this.noteMissing(missing);
  }

  private noteMissing(missing: readonly string[]): void {
    if (missing[0] !== undefined) this.note("checkpoint_missing", missing[0]);
  }

  /** Return the first file of it that is not there, or null when all are, be they sound or not. */
  private async load(floor: Floor, keyring: Keyring, vaultKeys: ReadonlyMap<number, Bytes>): Promise<string | null> {
    const file = manifestFile(floor.checkpoint);
    const bytes = this.files.get(file);
    if (!bytes) return file;
    const manifest = await this.noting(file, () => openManifest(bytes, floor, keyring, vaultKeys));
    return manifest && this.parts(keyring, manifest);
  }

  private async parts(keyring: Keyring, manifest: Manifest): Promise<string | null> {
    let absent: string | null = null;
    for (const [i, row] of manifest.parts.entries()) {
      this.progress("checkpoint", i, manifest.parts.length);
      const file = partFile(row.id);
      const bytes = this.files.get(file);
      if (!bytes) {
        absent ??= file;
        continue;
      }
      const piece = await this.noting(file, () => openPart(bytes, keyring.vaultId, row, manifest.counter));
      if (!piece) continue;
      this.findings.push(...piece.findings);
      for (const one of piece.applied) this.applied.push(one);
    }
    return absent;
  }

  /** Whether the logs go on from where a loaded checkpoint ends, or from their beginning, to the newest floor. */
  private isBridged(floor: Floor, loaded: Floor | null): boolean {
    if (floor === loaded) return true;
    return floor.logs.every((row) => {
      const known = loaded?.logs.find((one) => equal(one.stream, row.stream))?.length ?? 0;
      const bytes = this.files.get(`logs/${toHex(row.stream)}.mseal`);
      return known >= row.length || (bytes !== undefined && beginningOf(bytes) <= known);
    });
  }

  private async noting<T>(file: string, read: () => Promise<T>): Promise<T | null> {
    try {
      return await read();
    } catch (error) {
      this.note(codeOf(error), file);
      return null;
    }
  }

  // ── logs ──────────────────────────────────────────────────────────────────────────────────────────

  private async logs(keyring: Keyring, vaultKeys: ReadonlyMap<number, Bytes>, device: Device): Promise<VaultLog[]> {
    const names = this.named("logs");
    const logs: VaultLog[] = [];
    for (const [i, file] of names.entries()) {
      this.progress("logs", i, names.length);
      const log = await this.noting(file, () => this.log(file, keyring, vaultKeys, device));
      if (log) logs.push(log);
    }
    return logs;
  }

  private async log(
    file: string,
    keyring: Keyring,
    vaultKeys: ReadonlyMap<number, Bytes>,
    device: Device,
  ): Promise<VaultLog | null> {
    const bytes = this.files.get(file)!;
    const stream = file.slice("logs/".length, -".mseal".length);
    // Not even begun: a torn write, of which nothing was acknowledged.
    if (bytes.length < PREAMBLE_SIZE) throw new FormatError("record_torn");
    const row = newest(keyring).floor?.logs.find((one) => toHex(one.stream) === stream);
    const { epoch, streamId } = decodePreamble(bytes, KIND.log, keyring.vaultId);
    // The keyring drops keys that nothing needs any more; what the checkpoint holds needs none.
    const needsNoKey = row !== undefined && row.epoch === epoch && !vaultKeys.has(epoch);
    const place = needsNoKey ? null : placeLog(bytes, fromHex(stream), keyring, vaultKeys);
    const base = hasBase(bytes) ? openBase(bytes, streamId, keyring) : null;
    if (!place && isBelowFloor(bytes, row!)) return null;
    if (!place) throw new FormatError("epoch_mismatch");
    const { preamble, key, owner, limit } = place;
    const reading = await readLog(bytes, { file, preamble, key, owner: owner.sign, limit, ...(base ? { base } : {}) });
    const isOwn = equal(owner.sign, device.entry.sign);
    this.findings.push(...reading.findings);
    if (isOwn && reading.trusted.size > reading.counted.size) this.noteIncomplete(file, reading);
    return { file, stream, place, base, reading, clocks: this.apply(file, reading, preamble.epoch, base) };
  }

  private noteIncomplete(file: string, reading: LogReading): void {
    this.note(
      "record_torn",
      file,
      [...reading.trusted].filter((index) => !reading.counted.has(index)),
    );
  }

  private apply(file: string, reading: LogReading, epoch: number, base: Base | null): Clocks {
    const clocks = new Map<number, Clock>();
    for (const record of reading.records) {
      if (!reading.trusted.has(record.index) || !record.meta) continue;
      try {
        this.applyRecord(file, record, reading, epoch, base, clocks);
      } catch (error) {
        this.note(codeOf(error), file, [record.index]);
      }
    }
    return clocks;
  }

  private applyRecord(
    file: string,
    record: ReadRecord,
    reading: LogReading,
    epoch: number,
    base: Base | null,
    clocks: Map<number, Clock>,
  ): void {
    const { index } = record;
    const clock = decodeClock(record.meta!.map, epoch);
    clocks.set(index, clock);
    const before = base && index === base.records ? base.counter : clocks.get(index - 1)?.counter;
    if (before !== undefined && clock.previous !== before) this.note("counter_false", file, [index]);
    if (!reading.counted.has(index)) return;
    const { applied, faults } = decodeOperations(record.meta!, { counter: clock.counter, most: clock.counter - 1 });
    for (const { code } of faults) this.note(code, file, [index]);
    for (const one of applied) this.applied.push(one);
  }
}

function numberOf(file: string): number {
  return Number(file.slice("keyring/".length, "keyring/".length + 8));
}

function isDismissed(finding: Finding, state: State): boolean {
  const stream = /^logs\/([0-9a-f]{32})\.mseal$/.exec(finding.file)?.[1];
  const dismissed = stream && state.dismissed.get(stream);
  return (
    Boolean(dismissed) &&
    finding.records.length > 0 &&
    finding.records.every((index) => (dismissed as ReadonlySet<number>).has(index))
  );
}

/** What records say of the other logs must be what stands there. */
function checkHeads(logs: readonly VaultLog[], { floor }: Version, report: (finding: Finding) => void): void {
  const byStream = new Map(logs.map((log) => [log.stream, log]));
  const covered = new Map(floor?.logs.map((row) => [toHex(row.stream), row.records]));
  const withheld = new Set<string>();
  for (const log of logs) {
    for (const [index, clock] of log.clocks) {
      for (const head of clock.heads) {
        const stream = toHex(head.stream);
        const code = headFault(byStream.get(stream), head, covered.get(stream) ?? 0);
        if (code === "withheld") withheld.add(stream);
        else if (code) report({ code, file: log.file, records: [index] });
      }
    }
  }
  for (const stream of withheld) report({ code: "withheld", file: `logs/${stream}.mseal`, records: [] });
}

function headFault(named: VaultLog | undefined, head: Head, covered: number): Code | null {
  // Another device has seen more of it than is here.
  if (head.index >= Math.max(covered, named?.reading.end.records ?? 0)) return "withheld";
  const record = named?.reading.records.find((one) => one.index === head.index);
  if (record && !equal(record.chainAfter, head.chain)) return "forked";
  const counter = named?.clocks.get(head.index)?.counter;
  return counter !== undefined && counter !== head.counter ? "counter_false" : null;
}
