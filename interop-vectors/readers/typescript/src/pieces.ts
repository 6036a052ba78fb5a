/** Sealed records outside logs: those of a checkpoint part or a bundle (vault-format, sections 8b and 8d). */

import { equal } from "./bytes.js";
import { decodeEnvelope, decodeMeta, type Envelope, FLAG } from "./content.js";
import { type Code, codeOf, type Finding, FormatError } from "./errors.js";
import { decodeOperations } from "./meta.js";
import type { Preamble } from "./preamble.js";
import { sha256 } from "./primitives.js";
import { openRecord, scan, type StoredRecord } from "./records.js";
import type { Applied } from "./state.js";

export interface Piece {
  readonly applied: readonly Applied[];
  readonly findings: readonly Finding[];
  /** Indexes of the records that opened, and how many stand there. */
  readonly records: readonly number[];
  readonly size: number;
  /** The chain after the last record, from what the last one that opened says of those before it. */
  readonly chain: Uint8Array;
}

export interface PieceSource {
  readonly file: string;
  readonly preamble: Preamble;
  readonly key: Uint8Array;
  readonly start: number;
  readonly first: number;
  readonly chain: Uint8Array;
  /** The greatest counter that a stamp may have. */
  readonly most: number;
  /** What a signed record, or an operation without a stamp, is called here. */
  readonly invalid: Code;
}

/** Read what can be read: damage costs what it hit, and is named. */
export async function readPiece(bytes: Uint8Array, source: PieceSource): Promise<Piece> {
  const { records, damaged } = scan(bytes, source.start, source.first);
  const findings: Finding[] = [];
  const note = (code: Code, index: number): void => void findings.push({ code, file: source.file, records: [index] });
  for (const range of damaged) note(range.code, range.first);
  const applied: Applied[] = [];
  const opened: number[] = [];
  let chain: Uint8Array | null = source.chain;
  let lastChain: Uint8Array = source.chain;
  let next = source.first;
  let isEnded = false;
  for (const record of records) {
    const envelope = await openEnvelope(source, record, note);
    // Behind a gap, or a record that did not open, there is nothing to compare with.
    if (envelope && chain && record.index === next && !equal(envelope.chain, chain)) note("chain_broken", record.index);
    chain = envelope && sha256(envelope.chain, record.stored);
    lastChain = sha256(envelope?.chain ?? lastChain, record.stored);
    next = record.index + 1;
    if (!envelope) continue;
    opened.push(record.index);
    isEnded = !(envelope.flags & FLAG.more);
    for (const one of await operationsOf(source, record, envelope, note)) applied.push(one);
  }
  if (!isEnded && !findings.some(({ code }) => code === "record_torn")) note("record_torn", next);
  return { applied, findings, records: opened, size: next - source.first, chain: lastChain };
}

type Note = (code: Code, index: number) => void;

async function openEnvelope(source: PieceSource, record: StoredRecord, note: Note): Promise<Envelope | null> {
  try {
    const envelope = decodeEnvelope(await openRecord(source.key, source.preamble, record));
    if (envelope.flags & FLAG.signed) throw new FormatError(source.invalid);
    return envelope;
  } catch (error) {
    note(codeOf(error), record.index);
    return null;
  }
}

async function operationsOf(
  source: PieceSource,
  record: StoredRecord,
  envelope: Envelope,
  note: Note,
): Promise<readonly Applied[]> {
  try {
    const { applied, faults } = decodeOperations(
      await decodeMeta(envelope),
      { counter: null, most: source.most },
      source.invalid,
    );
    for (const { code } of faults) note(code, record.index);
    return applied;
  } catch (error) {
    note(codeOf(error), record.index);
    return [];
  }
}
