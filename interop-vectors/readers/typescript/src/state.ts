/** The state: what all operations say together, in whatever order they came (vault-format, section 10). */

import { equal } from "./bytes.js";
import {
  compareClaims,
  compareStamps,
  type MemoryFields,
  type Operation,
  printOf,
  type Stamp,
  type Time,
} from "./operations.js";
import type { Value } from "./msgpack.js";

/** An operation with the vector of its row, where it has one that is sound. */
export interface Applied {
  readonly operation: Operation;
  readonly vector: Vector | null;
}

export interface Vector {
  readonly model: string | null;
  readonly values: Float32Array;
}

export interface Memory {
  readonly id: string;
  /** Ids of memories that are the same as this one. */
  readonly others: readonly string[];
  readonly fields: MemoryFields;
  readonly stamp: Stamp;
  readonly tags: readonly string[];
  readonly retracted: { readonly at: Time; readonly reason: string | null } | null;
  readonly supersedes: string | null;
  readonly reason: string | null;
  readonly supersededBy: string | null;
  /** The memories that superseded the same one and lost against `supersededBy`. */
  readonly conflicts: readonly string[];
  /** The memory that superseded the same one with a higher stamp. */
  readonly losesTo: string | null;
  readonly active: boolean;
  readonly vector: Vector | null;
}

export interface State {
  readonly memories: ReadonlyMap<string, Memory>;
  readonly erased: ReadonlySet<string>;
  /** Memories that supersede an erased one without being named by its erase. */
  readonly afterErased: readonly string[];
  readonly settings: ReadonlyMap<string, Value>;
  /** Ids that came again with other content. */
  readonly taken: readonly string[];
  /** Stream and record indexes that were given up. */
  readonly dismissed: ReadonlyMap<string, ReadonlySet<number>>;
  /** The id that counts for an id that was ever given. */
  readonly canonical: (id: string) => string;
}

type Born = Applied & { readonly operation: { readonly change: { readonly op: "remember" | "supersede" } } };

export function buildState(applied: readonly Applied[]): State {
  const erased = new Set(applied.flatMap(({ operation: { change } }) => (change.op === "erase" ? change.targets : [])));
  const births = bornMemories(applied, erased);
  const groups = sameMemories(births);
  const canonical = (id: string): string => groups.leads.get(id) ?? id;
  const settings = newestSettings(applied, erased);
  const said = gather(applied, erased, canonical, pinnedModel(settings));
  const memories = new Map<string, Memory>();
  for (const [id, births] of groups.members) memories.set(id, memory(id, births, said, canonical));
  return {
    memories: withConflicts(memories, said),
    erased,
    afterErased: [...memories.values()]
      .filter((one) => one.supersedes && erased.has(one.supersedes))
      .map((one) => one.id),
    settings,
    taken: takenIds(applied, births),
    dismissed: dismissals(applied),
    canonical,
  };
}

/** By id, the remember or supersede that counts. */
function bornMemories(applied: readonly Applied[], erased: ReadonlySet<string>): Map<string, Born> {
  const births = new Map<string, Born>();
  for (const one of applied) {
    if (!isBorn(one) || erased.has(one.operation.id)) continue;
    const known = births.get(one.operation.id);
    if (!known || compareClaims(one.operation, known.operation) < 0) births.set(one.operation.id, one);
  }
  return births;
}

function isBorn(one: Applied): one is Born {
  return one.operation.change.op === "remember" || one.operation.change.op === "supersede";
}

function isBefore(a: Applied, b: Applied): boolean {
  return compareStamps(a.operation.stamp, b.operation.stamp) < 0;
}

/** The ids that came with memories which differ in more than what makes them the same. */
function takenIds(applied: readonly Applied[], births: ReadonlyMap<string, Born>): string[] {
  const taken = new Set<string>();
  for (const one of applied) {
    const counts = births.get(one.operation.id);
    if (!isBorn(one) || !counts || one === counts) continue;
    const areBorn = one.operation.change.op === "remember" && counts.operation.change.op === "remember";
    const isSame = areBorn && identityOf(fieldsOf(one)) === identityOf(fieldsOf(counts));
    if (!isSame && !equal(printOf(one.operation), printOf(counts.operation))) taken.add(one.operation.id);
  }
  return [...taken].sort();
}

interface Groups {
  readonly members: ReadonlyMap<string, readonly Born[]>;
  readonly leads: ReadonlyMap<string, string>;
}

function sameMemories(births: ReadonlyMap<string, Born>): Groups {
  const byIdentity = new Map<string, Born[]>();
  for (const [id, birth] of births) {
    const identity = birth.operation.change.op === "remember" ? identityOf(fieldsOf(birth)) : id;
    const known = byIdentity.get(identity);
    if (known) known.push(birth);
    else byIdentity.set(identity, [birth]);
  }
  const members = new Map<string, Born[]>();
  const leads = new Map<string, string>();
  for (const group of byIdentity.values()) {
    group.sort((a, b) => compareStamps(a.operation.stamp, b.operation.stamp));
    members.set(group[0]!.operation.id, group);
    for (const birth of group) leads.set(birth.operation.id, group[0]!.operation.id);
  }
  return { members, leads };
}

function fieldsOf(birth: Born): MemoryFields {
  return (birth.operation.change as { memory: MemoryFields }).memory;
}

function identityOf(fields: MemoryFields): string {
  const { content, kind, author, thread, capturedAt } = fields;
  return JSON.stringify([content, kind, author, thread, capturedAt === null ? null : String(capturedAt)]);
}

/** What operations say of memories, under the ids that count. */
interface Said {
  readonly retraction: ReadonlyMap<string, Operation>;
  readonly tags: ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>;
  readonly removed: ReadonlyMap<string, ReadonlySet<string>>;
  readonly vectors: ReadonlyMap<string, Applied>;
  readonly superseders: ReadonlyMap<string, readonly Operation[]>;
}

function gather(
  applied: readonly Applied[],
  erased: ReadonlySet<string>,
  canonical: (id: string) => string,
  model: string | null,
): Said {
  const retraction = new Map<string, Operation>();
  const tags = new Map<string, Map<string, string[]>>();
  const removed = new Map<string, Set<string>>();
  const vectors = new Map<string, Applied>();
  const superseders = new Map<string, Operation[]>();
  const addTags = (id: string, added: readonly string[], adder: string): void => {
    const ofMemory = tags.get(id) ?? tags.set(id, new Map()).get(id)!;
    for (const tag of added) ofMemory.set(tag, [...(ofMemory.get(tag) ?? []), adder]);
  };
  const addVector = (id: string, one: Applied): void => {
    if (!one.vector || one.vector.model !== model) return;
    const known = vectors.get(id);
    if (!known || isBefore(known, one)) vectors.set(id, one);
  };
  for (const one of counted(applied, erased)) {
    const { operation } = one;
    const { change } = operation;
    if (change.op === "remember" || change.op === "supersede") {
      const id = canonical(operation.id);
      addTags(id, change.memory.tags, operation.id);
      addVector(id, one);
      if (change.op === "supersede")
        superseders.set(canonical(change.of), [...(superseders.get(canonical(change.of)) ?? []), operation]);
    } else if (change.op === "retract" || change.op === "restore") {
      const id = canonical(change.target);
      const known = retraction.get(id);
      if (!known || compareStamps(known.stamp, operation.stamp) < 0) retraction.set(id, operation);
    } else if (change.op === "tag") {
      const id = canonical(change.target);
      addTags(id, change.add, operation.id);
      const ofMemory = removed.get(id) ?? removed.set(id, new Set()).get(id)!;
      for (const [tag, adder] of change.remove) ofMemory.add(removalKey(tag, adder));
    } else if (change.op === "embed") {
      addVector(canonical(change.target), one);
    }
  }
  return { retraction, tags, removed, vectors, superseders };
}

/** Each operation once, without those on erased memories, and of those with one id the lowest stamp. */
function counted(applied: readonly Applied[], erased: ReadonlySet<string>): Applied[] {
  const byId = new Map<string, Applied>();
  for (const one of applied) {
    const { change, id } = one.operation;
    const target = "target" in change ? change.target : isBorn(one) ? id : null;
    if (target === null || erased.has(target)) continue;
    const known = byId.get(id);
    if (!known || compareClaims(one.operation, known.operation) < 0) byId.set(id, one);
  }
  return [...byId.values()];
}

function removalKey(tag: string, adder: string): string {
  return `${adder} ${tag}`;
}

function memory(id: string, births: readonly Born[], said: Said, canonical: (id: string) => string): Memory {
  const { change, stamp } = births[0]!.operation;
  const retraction = said.retraction.get(id)?.change;
  const superseders = [...(said.superseders.get(id) ?? [])].sort((a, b) => compareStamps(b.stamp, a.stamp));
  const [current, ...losers] = superseders.map((operation) => canonical(operation.id));
  const isRetracted = retraction?.op === "retract";
  return {
    id,
    others: births.slice(1).map((birth) => birth.operation.id),
    fields: fieldsOf(births[0]!),
    stamp,
    tags: tagsOf(id, said),
    retracted: isRetracted ? { at: retraction.at, reason: retraction.reason } : null,
    supersedes: change.op === "supersede" ? canonical((change as { of: string }).of) : null,
    reason: change.op === "supersede" ? (change as { reason: string | null }).reason : null,
    supersededBy: current ?? null,
    conflicts: losers,
    losesTo: null,
    active: !isRetracted && current === undefined,
    vector: said.vectors.get(id)?.vector ?? null,
  };
}

function tagsOf(id: string, said: Said): string[] {
  const removed = said.removed.get(id);
  const isOn = ([tag, adders]: [string, readonly string[]]): boolean =>
    adders.some((adder) => !removed?.has(removalKey(tag, adder)));
  return [...(said.tags.get(id) ?? [])]
    .filter(isOn)
    .map(([tag]) => tag)
    .sort();
}

function withConflicts(memories: Map<string, Memory>, said: Said): Map<string, Memory> {
  for (const [of, operations] of said.superseders) {
    // Those that supersede what is not here, for it was erased or cannot be read, are kept all of them.
    if (!memories.has(of)) continue;
    const [current, ...losers] = [...operations].sort((a, b) => compareStamps(b.stamp, a.stamp));
    for (const { id } of losers) {
      const loser = memories.get(id);
      if (loser) memories.set(id, { ...loser, losesTo: current!.id, active: false });
    }
  }
  return memories;
}

function newestSettings(applied: readonly Applied[], erased: ReadonlySet<string>): Map<string, Value> {
  const newest = new Map<string, Operation>();
  for (const { operation } of applied) {
    if (operation.change.op !== "setting") continue;
    const proposed = /^proposal\/([0-9a-f]{32})$/.exec(operation.change.name);
    if (proposed && erased.has(proposed[1]!)) continue;
    const known = newest.get(operation.change.name);
    if (!known || isNewer(operation, known)) newest.set(operation.change.name, operation);
  }
  return new Map([...newest].map(([name, { change }]) => [name, (change as { value: Value }).value]));
}

function isNewer(a: Operation, b: Operation): boolean {
  const order = compareStamps(b.stamp, a.stamp);
  return order < 0 || (order === 0 && compareClaims(a, b) < 0);
}

const MAX_DIMENSION = 65_536;

function pinnedModel(settings: ReadonlyMap<string, Value>): string | null {
  const setting = settings.get("embedding");
  if (!(setting instanceof Map)) return null;
  const [model, dimension] = [setting.get("model"), setting.get("dimension")];
  const isPinned =
    typeof model === "string" && typeof dimension === "number" && dimension > 0 && dimension <= MAX_DIMENSION;
  return isPinned ? model : null;
}

function dismissals(applied: readonly Applied[]): Map<string, Set<number>> {
  const dismissed = new Map<string, Set<number>>();
  for (const {
    operation: { change },
  } of applied) {
    if (change.op !== "dismiss") continue;
    const records = dismissed.get(change.stream) ?? dismissed.set(change.stream, new Set()).get(change.stream)!;
    for (const index of change.records) records.add(index);
  }
  return dismissed;
}
