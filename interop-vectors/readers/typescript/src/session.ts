/** Kept sessions of the sanitizer (vault-format, section 8f). */

import { type Bytes, equal, isZero, utf8 } from "./bytes.js";
import { FormatError } from "./errors.js";
import { Fields } from "./fields.js";
import { decodeMap, type ValueMap } from "./msgpack.js";
import { decodePreamble, KIND, PREAMBLE_SIZE } from "./preamble.js";
import { derive } from "./primitives.js";
import { openRecord, recordAt } from "./records.js";

/** The device that kept it, and the secret in that device's marks. */
export interface SessionOwner {
  readonly secret: Uint8Array;
  readonly vaultId: Uint8Array;
  readonly deviceId: Uint8Array;
}

/** Return the id that names the file of a session. */
export function sessionId(owner: SessionOwner, name: string): Bytes {
  return derived(owner, "memseal/v1/session-id", utf8(name)).slice(0, 16);
}

/** Return name and content of the session in the file that `id` names; the content is an implementation's own. */
export async function openSession(
  bytes: Uint8Array,
  id: Uint8Array,
  owner: SessionOwner,
): Promise<{ name: string; session: ValueMap }> {
  const preamble = decodePreamble(bytes, KIND.session, owner.vaultId);
  const isNamed = preamble.epoch === 0 && isZero(preamble.nonce) && equal(preamble.streamId, id);
  if (!isNamed) throw new FormatError("stream_mismatch");
  const record = recordAt(bytes, PREAMBLE_SIZE, 0);
  if (record.end !== bytes.length) throw new FormatError("record_length");
  const content = await openRecord(derived(owner, "memseal/v1/session", id), preamble, record);
  const fields = Fields.of(decodeMap(content), "record_content");
  const [name, session] = [fields.text("name"), fields.fields("session").map];
  if (!equal(sessionId(owner, name), id)) throw new FormatError("stream_mismatch");
  return { name, session };
}

function derived(owner: SessionOwner, label: string, part: Uint8Array): Bytes {
  return derive(owner.secret, new Uint8Array(), label, owner.vaultId, owner.deviceId, part);
}
