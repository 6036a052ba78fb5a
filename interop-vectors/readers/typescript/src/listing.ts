/** Memories as plain JSON. */

import type { Memory, State } from "./state.js";
import type { Time } from "./operations.js";

export interface Listed {
  readonly id: string;
  readonly content: string;
  readonly kind: string;
  readonly source: string;
  readonly author: string | null;
  readonly thread: string | null;
  readonly position: number | string | null;
  readonly tags: readonly string[];
  readonly captured_at: string | null;
  readonly written_at: string;
  readonly origin: string | null;
  readonly state: "active" | "superseded" | "retracted";
  readonly reason: string | null;
  readonly supersedes: string | null;
  readonly superseded_by: string | null;
}

/** All memories but the erased, newest first. */
export function listMemories(state: State): Listed[] {
  const sorted = [...state.memories.values()].sort(
    (a, b) => compareTimes(timeOf(b), timeOf(a)) || (a.id < b.id ? -1 : 1),
  );
  return sorted.map((memory) => listed(memory, state));
}

export function timeOf(memory: Memory): Time {
  return memory.fields.capturedAt ?? memory.fields.writtenAt;
}

function compareTimes(a: Time, b: Time): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function listed(memory: Memory, state: State): Listed {
  const { fields } = memory;
  return {
    id: memory.id,
    content: fields.content,
    kind: fields.kind,
    source: fields.source,
    author: fields.author,
    thread: fields.thread,
    position: typeof fields.position === "bigint" ? String(fields.position) : fields.position,
    tags: memory.tags,
    captured_at: fields.capturedAt === null ? null : isoTime(fields.capturedAt),
    written_at: isoTime(fields.writtenAt),
    origin: fields.origin,
    state: stateOf(memory),
    reason: reasonOf(memory, state),
    supersedes: memory.supersedes,
    superseded_by: memory.supersededBy ?? memory.losesTo,
  };
}

/** Why it was taken out of recall. */
export function reasonOf(memory: Memory, state: State): string | null {
  if (memory.retracted) return memory.retracted.reason;
  const by = memory.supersededBy ?? memory.losesTo;
  return (by !== null && state.memories.get(by)?.reason) || null;
}

export function stateOf(memory: Memory): Listed["state"] {
  if (memory.retracted) return "retracted";
  return memory.active ? "active" : "superseded";
}

/** ISO 8601 with microseconds where there are any; beyond what a date can say, the number. */
export function isoTime(time: Time): string {
  const micros = BigInt(time);
  const millis = micros >= 0n ? micros / 1000n : -((999n - micros) / 1000n);
  const date = new Date(Number(millis));
  if (Number.isNaN(date.getTime())) return String(time);
  const seconds = date.toISOString().slice(0, -5);
  const fraction = String(((micros % 1_000_000n) + 1_000_000n) % 1_000_000n).padStart(6, "0");
  return `${seconds}${fraction === "000000" ? "" : `.${fraction}`}+00:00`;
}
