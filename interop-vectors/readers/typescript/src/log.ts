/** Logs: where one belongs, its base, chain, signatures and writes (vault-format, sections 3, 5 and 5a). */

import { type Bytes, crc32, equal, readU32, readU64, utf8 } from "./bytes.js";
import { decodeEnvelope, decodeMeta, type Envelope, FLAG, isSignatureValid, type Meta } from "./content.js";
import { type Code, codeOf, type Finding, FormatError } from "./errors.js";
import { type End, type Entry, type Floor, type FloorRow, type Keyring, newest } from "./keyring.js";
import { decodePreamble, KIND, type Preamble, PREAMBLE_SIZE } from "./preamble.js";
import { derive, sha256 } from "./primitives.js";
import { type DamagedRange, openRecord, scan, type StoredRecord } from "./records.js";

// ── where a log belongs ─────────────────────────────────────────────────────────────────────────────

const STREAM = utf8("memseal/v1/stream");

export interface Place {
  readonly preamble: Preamble;
  readonly owner: Entry;
  readonly key: Bytes;
  /** Where the stream of an ended owner ends. */
  readonly limit: End | null;
}

export function streamId(vaultId: Uint8Array, owner: Uint8Array, nonce: Uint8Array): Bytes {
  return sha256(STREAM, vaultId, owner, nonce).slice(0, 16);
}

export function logKey(vaultKey: Uint8Array, preamble: Preamble): Bytes {
  return derive(vaultKey, new Uint8Array(0), "memseal/v1/log", preamble.vaultId, preamble.streamId);
}

/** Check a log's preamble against the keyring, in the order of section 3; `name` is its file's. */
export function placeLog(
  bytes: Uint8Array,
  name: Uint8Array,
  keyring: Keyring,
  vaultKeys: ReadonlyMap<number, Uint8Array>,
): Place {
  const preamble = decodePreamble(bytes, KIND.log, keyring.vaultId);
  if (preamble.epoch > newest(keyring).epoch) throw new FormatError("keyring_behind");
  const vaultKey = vaultKeys.get(preamble.epoch);
  const beginning = epochBeginning(keyring, preamble.epoch);
  if (!vaultKey || !beginning) throw new FormatError("epoch_mismatch");
  const owner = newest(keyring).devices.find((entry) =>
    equal(streamId(preamble.vaultId, entry.sign, preamble.nonce), preamble.streamId),
  );
  const isBegun = equal(preamble.nonce.subarray(0, 8), beginning.subarray(0, 8));
  if (!owner || !isBegun || !equal(preamble.streamId, name)) throw new FormatError("stream_mismatch");
  return {
    preamble,
    owner,
    key: logKey(vaultKey, preamble),
    limit: limitOf(owner, preamble.streamId, newest(keyring).floor),
  };
}

/** The digest of the version that began an epoch. */
export function epochBeginning(keyring: Keyring, epoch: number): Bytes | null {
  const version = keyring.versions.find((one) => one.epoch === epoch && one.epochSince === one.version);
  return version ? version.digest : null;
}

function limitOf(owner: Entry, stream: Uint8Array, floor: Floor | null): End | null {
  if (owner.ended === null) return null;
  const named = owner.ended.streams.find((one) => equal(one.stream, stream));
  const row = floor?.logs.find((one) => equal(one.stream, stream));
  if (row && row.length > (named?.length ?? 0)) {
    return { stream: row.stream, records: row.records, chain: row.chain, length: row.length };
  }
  // Every stream of an ended key is named, or covered; another was made by somebody who has the key.
  return named ?? { stream: stream as Bytes, records: 0, chain: new Uint8Array(0), length: 0 };
}

// ── base ────────────────────────────────────────────────────────────────────────────────────────────

const BASE_END = 124;
const BASE_MARK = 0xffffffff;

/** What stands in the place of a log's dropped beginning. */
export interface Base {
  readonly length: number;
  readonly records: number;
  readonly chain: Bytes;
  readonly counter: number;
}

/** How many bytes of the whole log the base stands for. */
export function droppedBytes(base: Base | null | undefined): number {
  return base ? base.length - BASE_END : 0;
}

export function hasBase(bytes: Uint8Array): boolean {
  return bytes.length >= PREAMBLE_SIZE + 4 && readU32(bytes, PREAMBLE_SIZE) === BASE_MARK;
}

/** Read the base and find it in the floor of some accepted version. */
export function openBase(bytes: Uint8Array, stream: Uint8Array, keyring: Keyring): Base {
  if (bytes.length < BASE_END || crc32(bytes, 64, 120) !== readU32(bytes, 120)) throw new FormatError("base_damaged");
  const [length, counter] = [Number(readU64(bytes, 68)), Number(readU64(bytes, 112))];
  const [records, chain] = [readU32(bytes, 76), bytes.slice(80, 112) as Bytes];
  const isKnown = keyring.versions.some((version) =>
    version.floor?.logs.some(
      (row) =>
        equal(row.stream, stream) &&
        row.length === length &&
        row.records === records &&
        row.counter === counter &&
        equal(row.chain, chain),
    ),
  );
  if (!isKnown) throw new FormatError("base_unknown");
  return { length, records, chain, counter };
}

/** Where in the whole log the records of a file begin: 0 where it has the log's beginning. */
export function beginningOf(bytes: Uint8Array): number {
  return hasBase(bytes) && bytes.length >= BASE_END ? Number(readU64(bytes, 68)) : 0;
}

/** Whether all that a log's file holds lies below its row in the floor. */
export function isBelowFloor(bytes: Uint8Array, row: FloorRow): boolean {
  const beginning = beginningOf(bytes);
  return (beginning > 0 ? beginning + bytes.length - BASE_END : bytes.length) <= row.length;
}

// ── reading ─────────────────────────────────────────────────────────────────────────────────────────

/** A record whose seal opened. */
export interface ReadRecord {
  readonly index: number;
  readonly start: number;
  readonly end: number;
  readonly envelope: Envelope;
  /** The chain after it, as its own content claims the chain before it. */
  readonly chainAfter: Bytes;
  readonly meta: Meta | null;
}

export interface LogReading {
  readonly records: readonly ReadRecord[];
  /** Indexes of the records that a valid signature covers; only these are believed. */
  readonly trusted: ReadonlySet<number>;
  /** Those at the end that wait for a signature. */
  readonly waiting: readonly number[];
  /** Those among the trusted whose write is whole. */
  readonly counted: ReadonlySet<number>;
  readonly end: { readonly length: number; readonly records: number; readonly chain: Bytes | null };
  readonly tornBytes: number;
  readonly isAppendable: boolean;
  readonly findings: readonly Finding[];
  /** Indexes that could not be read or trusted. */
  readonly quarantined: readonly number[];
}

export interface LogSource {
  readonly file: string;
  readonly preamble: Preamble;
  readonly key: Uint8Array;
  readonly owner: Uint8Array;
  readonly base?: Base;
  readonly limit?: End | null;
}

/** Read a log to its end, whatever is damaged in it. */
export async function readLog(bytes: Uint8Array, source: LogSource): Promise<LogReading> {
  const reader = new LogReader(bytes, source);
  await reader.read();
  return reader.reading();
}

class LogReader {
  private readonly findings: Finding[] = [];
  private readonly quarantined = new Set<number>();
  private readonly records: ReadRecord[] = [];
  private stored: readonly StoredRecord[] = [];
  private damaged: readonly DamagedRange[] = [];
  private lastChain: Uint8Array | null = null;

  private readonly bytes: Uint8Array;

  constructor(
    bytes: Uint8Array,
    private readonly source: LogSource,
  ) {
    this.bytes = this.withinLimit(bytes);
  }

  async read(): Promise<void> {
    const { base } = this.source;
    ({ records: this.stored, damaged: this.damaged } = scan(
      this.bytes,
      base ? BASE_END : PREAMBLE_SIZE,
      base?.records ?? 0,
    ));
    for (const range of this.damaged) this.note(range.code, indexesOf(range));
    for (const record of this.stored) await this.open(record);
  }

  /** The file without what lies beyond the end of an ended stream, which does not count. */
  private withinLimit(bytes: Uint8Array): Uint8Array {
    const { limit, base, file } = this.source;
    if (!limit) return bytes;
    const end = Math.max(PREAMBLE_SIZE, limit.length - droppedBytes(base));
    if (bytes.length > end) this.findings.push({ code: "stream_ended", file, records: [] });
    return bytes.subarray(0, end);
  }

  private async open(record: StoredRecord): Promise<void> {
    const { preamble, key } = this.source;
    try {
      const envelope = decodeEnvelope(await openRecord(key, preamble, record));
      const chainAfter = sha256(envelope.chain, record.stored);
      const meta = await this.meta(record.index, envelope);
      this.records.push({ index: record.index, start: record.start, end: record.end, envelope, chainAfter, meta });
    } catch (error) {
      this.note(codeOf(error), [record.index]);
    }
  }

  private async meta(index: number, envelope: Envelope): Promise<Meta | null> {
    try {
      return await decodeMeta(envelope);
    } catch (error) {
      this.note(codeOf(error), [index]);
      return null;
    }
  }

  private note(code: Code, records: readonly number[]): void {
    this.findings.push({ code, file: this.source.file, records });
    for (const index of records) this.quarantined.add(index);
  }

  reading(): LogReading {
    this.checkChain();
    const trusted = this.covered();
    const waiting = this.waitingAfter(trusted);
    for (const { index } of this.records) {
      if (!trusted.has(index) && !waiting.includes(index)) this.note("signature_absent", [index]);
    }
    return {
      records: this.records,
      trusted,
      waiting,
      counted: this.wholeWrites(trusted),
      ...this.endOfLog(),
      findings: this.findings,
      quarantined: [...this.quarantined].sort((a, b) => a - b),
    };
  }

  /**
   * Compare each record's chain with the computed one. Only behind a record that opened: else its own damage, or that it
   * was cut out, is named already.
   */
  private checkChain(): void {
    const opened = new Map(this.records.map((record) => [record.index, record]));
    let chain: Uint8Array | null = this.source.base?.chain ?? sha256(this.source.preamble.bytes);
    let next = this.source.base?.records ?? 0;
    let isBeforeRead = true;
    for (const record of this.stored) {
      const before: Uint8Array | null = record.index === next ? chain : null;
      const claimed = opened.get(record.index)?.envelope.chain;
      if (claimed && before && isBeforeRead && !equal(claimed, before)) {
        this.findings.push({ code: "chain_broken", file: this.source.file, records: [record.index] });
      }
      const from: Uint8Array | null = claimed ?? before;
      chain = from && sha256(from, record.stored);
      next = record.index + 1;
      isBeforeRead = claimed !== undefined;
    }
    this.lastChain = chain;
    if (isBeforeRead) this.checkLimit(chain, next);
  }

  private checkLimit(chain: Uint8Array | null, next: number): void {
    const { limit, file } = this.source;
    if (!limit || limit.records === 0 || limit.records !== next || !chain) return;
    if (!equal(chain, limit.chain)) this.findings.push({ code: "chain_broken", file, records: [next - 1] });
  }

  /** From the newest valid signature back along the chain to where it breaks, and again before that. */
  private covered(): Set<number> {
    const trusted = new Set<number>();
    let link: { readonly index: number; readonly chain: Uint8Array } | null = null;
    for (const record of [...this.records].reverse()) {
      const isLinked = link !== null && record.index === link.index - 1 && equal(record.chainAfter, link.chain);
      if (isLinked || this.isSigned(record)) {
        trusted.add(record.index);
        link = { index: record.index, chain: record.envelope.chain };
      } else {
        link = null;
      }
    }
    return trusted;
  }

  private isSigned({ index, envelope }: ReadRecord): boolean {
    if (!(envelope.flags & FLAG.signed)) return false;
    if (isSignatureValid(this.source.owner, this.source.preamble, index, envelope)) return true;
    this.note("signature_invalid", [index]);
    return false;
  }

  private waitingAfter(trusted: ReadonlySet<number>): number[] {
    const last = Math.max(-1, ...trusted);
    return this.records.filter(({ index }) => index > last).map(({ index }) => index);
  }

  private wholeWrites(trusted: ReadonlySet<number>): Set<number> {
    const ends = this.records.filter(({ index, envelope }) => trusted.has(index) && !(envelope.flags & FLAG.more));
    const lastEnd = ends.at(-1)?.index ?? -1;
    return new Set([...trusted].filter((index) => index <= lastEnd));
  }

  private endOfLog() {
    const last = this.stored.at(-1);
    const lastRange = this.damaged.at(-1);
    const tail = lastRange && lastRange.next === null ? lastRange : null;
    const end = last?.end ?? tail?.start ?? this.bytes.length;
    const isLastDamaged = last !== undefined && this.records.at(-1)?.index !== last.index;
    const tornBytes = tail?.code === "record_torn" ? this.bytes.length - tail.start : 0;
    return {
      end: {
        length: end + droppedBytes(this.source.base),
        records: last ? last.index + 1 : (this.source.base?.records ?? 0),
        chain: this.lastChain as Bytes | null,
      },
      tornBytes,
      isAppendable: !isLastDamaged && (!tail || tail.code === "record_torn"),
    };
  }
}

function indexesOf(range: DamagedRange): number[] {
  if (range.next === null) return [range.first];
  return Array.from({ length: range.next - range.first }, (_, i) => range.first + i);
}
