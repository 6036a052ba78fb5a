/** The 64 readable bytes at the start of a container (vault-format, section 3). */

import { type Bytes, concat, crc32, equal, readU32, u32 } from "./bytes.js";
import { FormatError } from "./errors.js";

export const MAGIC = Uint8Array.of(0x89, 0x4d, 0x53, 0x45, 0x41, 0x4c, 0x0d, 0x0a);
export const PREAMBLE_SIZE = 64;
const VERSION = 1;
const SUITE = 1;

export const KIND = {
  keyring: 1,
  log: 2,
  checkpoint: 3,
  media: 4,
  trace: 5,
  bundle: 6,
  device: 7,
  cache: 8,
  session: 9,
} as const;
export type Kind = (typeof KIND)[keyof typeof KIND];

export interface Preamble {
  readonly kind: Kind;
  readonly epoch: number;
  readonly vaultId: Bytes;
  readonly streamId: Bytes;
  readonly nonce: Bytes;
  readonly bytes: Bytes;
}

/** Check in the order of section 3, up to the vault id; without one, any vault's will do. */
export function decodePreamble(container: Uint8Array, kind: Kind, vaultId?: Uint8Array): Preamble {
  if (container.length < PREAMBLE_SIZE) throw new FormatError("preamble_short");
  const bytes = container.slice(0, PREAMBLE_SIZE) as Bytes;
  if (!equal(bytes.subarray(0, 8), MAGIC)) throw new FormatError("preamble_magic");
  if (crc32(bytes, 0, 60) !== readU32(bytes, 60)) throw new FormatError("preamble_damaged");
  if (bytes[8] !== VERSION) throw new FormatError("version_unknown");
  if (bytes[9] !== SUITE) throw new FormatError("suite_unknown");
  if (bytes[10] !== kind) throw new FormatError("kind_mismatch");
  if (bytes[11] !== 0) throw new FormatError("preamble_reserved");
  if (vaultId && !equal(bytes.subarray(16, 32), vaultId)) throw new FormatError("vault_mismatch");
  return {
    kind,
    epoch: readU32(bytes, 12),
    vaultId: bytes.slice(16, 32),
    streamId: bytes.slice(32, 48),
    nonce: bytes.slice(48, 60),
    bytes,
  };
}

export function encodePreamble(fields: Omit<Preamble, "bytes">): Preamble {
  const head = concat(
    MAGIC,
    Uint8Array.of(VERSION, SUITE, fields.kind, 0),
    u32(fields.epoch),
    fields.vaultId,
    fields.streamId,
    fields.nonce,
  );
  return { ...fields, bytes: concat(head, u32(crc32(head))) };
}
