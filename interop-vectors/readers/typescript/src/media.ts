/** Media items (vault-format, section 8c). */

import { type Bytes, concat, equal, isZero } from "./bytes.js";
import { FormatError } from "./errors.js";
import type { MediaReference } from "./operations.js";
import { decodePreamble, KIND, PREAMBLE_SIZE } from "./preamble.js";
import { sha256 } from "./primitives.js";
import { openRecord, walk } from "./records.js";

const MAX_PIECE = 1_048_576;

/** Return the bytes of an item as a memory names it. */
export async function openMedia(
  bytes: Uint8Array,
  vaultId: Uint8Array,
  named: Pick<MediaReference, "id" | "key" | "bytes" | "digest">,
): Promise<Bytes> {
  const preamble = decodePreamble(bytes, KIND.media, vaultId);
  const isNamed = preamble.epoch === 0 && isZero(preamble.nonce) && equal(preamble.streamId, named.id);
  if (!isNamed) throw new FormatError("media_mismatch");
  const pieces: Bytes[] = [];
  for (const record of walk(bytes, PREAMBLE_SIZE)) {
    const piece = await openRecord(named.key, preamble, record);
    if (piece.length > MAX_PIECE) throw new FormatError("media_mismatch");
    pieces.push(piece);
  }
  const item = concat(...pieces);
  if (item.length !== named.bytes || !equal(sha256(item), named.digest)) throw new FormatError("media_mismatch");
  return item;
}
