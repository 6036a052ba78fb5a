/** Plain text search: BM25 over words, the last word as a beginning; an empty query gives the newest first. */

import type { Listed } from "../../../interop-vectors/readers/typescript/src/listing.js";

export type StateFilter = Listed["state"] | "all";

interface Document {
  readonly memory: Listed;
  readonly counts: ReadonlyMap<string, number>;
  readonly length: number;
}

const SATURATION = 1.2;
const LENGTH_WEIGHT = 0.75;

export class Index {
  private readonly documents: readonly Document[];
  private readonly averageLength: number;
  private readonly frequencies = new Map<string, number>();

  /** `memories` are newest first, and stay so where scores are equal. */
  constructor(memories: readonly Listed[]) {
    this.documents = memories.map(document);
    const total = this.documents.reduce((sum, one) => sum + one.length, 0);
    this.averageLength = total / Math.max(1, this.documents.length);
    for (const { counts } of this.documents) {
      for (const word of counts.keys()) this.frequencies.set(word, (this.frequencies.get(word) ?? 0) + 1);
    }
  }

  search(query: string, state: StateFilter): Listed[] {
    const documents = this.documents.filter(({ memory }) => state === "all" || memory.state === state);
    const terms = this.terms(query);
    if (words(query).length === 0) return documents.map(({ memory }) => memory);
    const scored = documents.map((one) => ({ memory: one.memory, score: this.score(one, terms) }));
    return scored
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score)
      .map(({ memory }) => memory);
  }

  /** Each word of the query with the words of the memories that it stands for. */
  private terms(query: string): readonly (readonly string[])[] {
    const asked = words(query);
    return asked.map((word, i) => (i === asked.length - 1 ? this.beginningWith(word) : [word]));
  }

  private beginningWith(beginning: string): string[] {
    return [...this.frequencies.keys()].filter((word) => word.startsWith(beginning));
  }

  private score({ counts, length }: Document, terms: readonly (readonly string[])[]): number {
    const norm = SATURATION * (1 - LENGTH_WEIGHT + (LENGTH_WEIGHT * length) / this.averageLength);
    const scores = terms.map((variants) =>
      Math.max(
        0,
        ...variants.map((word) => {
          const count = counts.get(word) ?? 0;
          return (this.rarity(word) * count * (SATURATION + 1)) / (count + norm);
        }),
      ),
    );
    return scores.reduce((sum, score) => sum + score, 0);
  }

  private rarity(word: string): number {
    const frequency = this.frequencies.get(word) ?? 0;
    return Math.log(1 + (this.documents.length - frequency + 0.5) / (frequency + 0.5));
  }
}

function document(memory: Listed): Document {
  const text = [memory.content, ...memory.tags, memory.kind, memory.author ?? "", memory.thread ?? ""].join(" ");
  const counts = new Map<string, number>();
  const all = words(text);
  for (const word of all) counts.set(word, (counts.get(word) ?? 0) + 1);
  return { memory, counts, length: all.length };
}

/** Words without case and accents. */
export function words(text: string): string[] {
  return plain(text).match(/[\p{L}\p{N}]+/gu) ?? [];
}

function plain(text: string): string {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}

/** Cut a text where words of the query stand in it, for marking them. */
export function pieces(text: string, query: string): { readonly text: string; readonly isHit: boolean }[] {
  const asked = words(query);
  const cut = text.split(/([\p{L}\p{N}\p{M}]+)/u);
  return cut.filter((piece) => piece !== "").map((piece) => ({ text: piece, isHit: isAsked(words(piece), asked) }));
}

function isAsked(found: readonly string[], asked: readonly string[]): boolean {
  const last = asked.at(-1);
  return found.some((word) => asked.includes(word) || (last !== undefined && word.startsWith(last)));
}
