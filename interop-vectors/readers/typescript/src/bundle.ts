/** Bundles: a full copy of the state in one file (vault-format, section 8d). */

import { type Bytes, concat, isZero, utf8 } from "./bytes.js";
import { type Code, codeOf, type Finding, FormatError } from "./errors.js";
import { BELOW_2_53, Fields } from "./fields.js";
import { decodeCost } from "./keyring.js";
import { decodeMap } from "./msgpack.js";
import { readPiece } from "./pieces.js";
import { decodePreamble, KIND, type Preamble, PREAMBLE_SIZE } from "./preamble.js";
import { checkCost, type Cost, costBytes, derive, isBlank, open, sealedLength, sha256, stretch } from "./primitives.js";
import { recordAt, type StoredRecord } from "./records.js";
import { buildState, type State } from "./state.js";
import type { Progress } from "./vault.js";

const INVALID: Code = "bundle_invalid";
const SLOT = utf8("memseal/v1/bundle-slot");

export interface OpenedBundle {
  readonly vaultId: Bytes;
  readonly state: State;
  readonly findings: readonly Finding[];
}

export async function openBundle(
  bytes: Uint8Array,
  passphrase: string,
  progress: Progress = () => {},
): Promise<OpenedBundle> {
  const preamble = decodePreamble(bytes, KIND.bundle);
  if (preamble.epoch !== 0 || !isZero(preamble.nonce)) throw new FormatError(INVALID);
  const first = recordAt(bytes, PREAMBLE_SIZE, 0);
  const slot = decodeSlot(first);
  const key = await openSlot(preamble, slot, passphrase);
  progress("bundle", 0, 1);
  const piece = await readPiece(bytes, {
    file: "bundle",
    preamble,
    key,
    start: first.end,
    first: 1,
    chain: sha256(sha256(preamble.bytes), first.stored),
    most: BELOW_2_53,
    invalid: INVALID,
  });
  return { vaultId: preamble.vaultId, state: buildState(piece.applied), findings: piece.findings };
}

interface Slot {
  readonly salt: Bytes;
  readonly cost: Cost;
  readonly sealed: Bytes;
}

function decodeSlot(record: StoredRecord): Slot {
  const fields = slotFields(record);
  const slot = {
    salt: fields.bytes("salt", 32),
    cost: decodeCost(fields.get("cost"), INVALID),
    sealed: fields.bytes("sealed", sealedLength(32)),
  };
  checkCost(slot.cost);
  return slot;
}

function slotFields(record: StoredRecord): Fields {
  try {
    return new Fields(decodeMap(record.body), INVALID);
  } catch (error) {
    codeOf(error);
    throw new FormatError(INVALID);
  }
}

async function openSlot(preamble: Preamble, slot: Slot, passphrase: string): Promise<Bytes> {
  if (isBlank(passphrase)) throw new FormatError("bundle_passphrase");
  const stretched = await stretch(passphrase, slot.salt, slot.cost);
  const key = derive(
    stretched,
    slot.salt,
    "memseal/v1/bundle",
    preamble.vaultId,
    preamble.streamId,
    costBytes(slot.cost),
  );
  const bundleKey = await open(key, concat(SLOT, preamble.bytes), slot.sealed, "bundle_passphrase");
  if (bundleKey.length !== 32) throw new FormatError(INVALID);
  return bundleKey;
}
