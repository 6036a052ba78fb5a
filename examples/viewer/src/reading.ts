/** Open what was chosen, in a worker: nothing but bytes go in, and nothing but memories and findings come out. */

import { openBundle } from "../../../interop-vectors/readers/typescript/src/bundle.js";
import { type Finding, FormatError } from "../../../interop-vectors/readers/typescript/src/errors.js";
import { type Listed, listMemories } from "../../../interop-vectors/readers/typescript/src/listing.js";
import type { State } from "../../../interop-vectors/readers/typescript/src/state.js";
import { openVault, type Progress } from "../../../interop-vectors/readers/typescript/src/vault.js";

/** A bundle has one file; a vault's folder has several, by their path in it. */
export interface Chosen {
  readonly kind: "bundle" | "vault";
  readonly files: ReadonlyMap<string, Uint8Array>;
}

export interface Request {
  readonly chosen: Chosen;
  readonly passphrase: string;
}

export interface Read {
  readonly memories: readonly Listed[];
  readonly conflicts: ReadonlyMap<string, readonly string[]>;
  readonly media: ReadonlyMap<string, readonly string[]>;
  readonly erased: number;
  readonly findings: readonly Finding[];
}

export type Answer =
  | { readonly type: "progress"; readonly doing: string; readonly done: number; readonly total: number }
  | { readonly type: "read"; readonly read: Read }
  | { readonly type: "refused"; readonly code: string };

/** Answer one request, with progress on the way. */
export async function answer({ chosen, passphrase }: Request, send: (answer: Answer) => void): Promise<void> {
  const progress: Progress = (doing, done, total) => send({ type: "progress", doing, done, total });
  try {
    send({ type: "read", read: await read(chosen, passphrase, progress) });
  } catch (error) {
    // Whatever went wrong is said; an unknown error too, or the page would wait for ever.
    send({ type: "refused", code: error instanceof FormatError ? error.code : String(error) });
  }
}

async function read({ kind, files }: Chosen, passphrase: string, progress: Progress): Promise<Read> {
  progress("passphrase", 0, 1);
  const { state, findings } =
    kind === "bundle"
      ? await openBundle([...files.values()][0]!, passphrase, progress)
      : await openVault(files, passphrase, progress);
  return {
    memories: listMemories(state),
    conflicts: some(state, (memory) => memory.conflicts),
    media: some(state, (memory) =>
      memory.fields.media.map((one) => `${one.name ?? "unnamed"} (${one.type}, ${one.bytes} bytes)`),
    ),
    erased: state.erased.size,
    findings,
  };
}

type MemoryOf = State["memories"] extends ReadonlyMap<string, infer M> ? M : never;

function some(state: State, of: (memory: MemoryOf) => readonly string[]): Map<string, readonly string[]> {
  return new Map(
    [...state.memories].map(([id, memory]) => [id, of(memory)] as const).filter(([, items]) => items.length > 0),
  );
}
