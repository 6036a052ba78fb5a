/** Opening a vault with its kit, or with its recovery code (vault-format, section 7). */

import { acceptAll } from "./acceptance.js";
import { type Bytes, concat, equal, u32, utf8 } from "./bytes.js";
import { openBox, type Slot, slotFor, wayRecipient } from "./boxes.js";
import { type Code, FormatError } from "./errors.js";
import { Fields } from "./fields.js";
import { decodeVersion, type Keyring, newest, type Version, type Way } from "./keyring.js";
import { type Kit, parseKit, parseRecovery } from "./kit.js";
import { decodeMap } from "./msgpack.js";
import { checkCost, costBytes, derive, isBlank, open, stretch } from "./primitives.js";

export interface Opened {
  readonly keyring: Keyring;
  readonly vaultKey: Bytes;
}

/** Open with kit and passphrase; `files` are all versions, the newest whole. */
export async function openWithKit(files: readonly Uint8Array[], text: string, passphrase: string): Promise<Opened> {
  const kit = parseKit(text);
  const version = newestOf(files, kit);
  const slot = slotFor(version, "kit");
  if (!slot?.salt) throw new FormatError("keyring_missing");
  if (slot.generation !== kit.generation) throw new FormatError("kit_or_passphrase");
  const { cost } = version.kit;
  checkCost(cost);
  if (isBlank(passphrase)) throw new FormatError("kit_or_passphrase");
  const ikm = concat(await stretch(passphrase, slot.salt, cost), kit.secret);
  const key = derive(ikm, slot.salt, "memseal/v1/kit-slot", kit.vaultId, u32(slot.generation), costBytes(cost));
  const seed = await openSlot(files, kit, slot, key, "memseal/v1/slot", "kit_or_passphrase");
  return openWay(files, kit, version.kit, seed);
}

export async function openWithRecovery(files: readonly Uint8Array[], text: string): Promise<Opened> {
  const code = parseRecovery(text);
  const version = newestOf(files, code);
  const slot = slotFor(version, "recovery");
  if (!version.recovery) throw new FormatError("recovery_code");
  if (!slot) throw new FormatError("keyring_missing");
  if (slot.generation !== code.generation) throw new FormatError("recovery_code");
  const label = "memseal/v1/recovery-slot";
  const key = derive(code.secret, new Uint8Array(0), label, code.vaultId, u32(slot.generation));
  const seed = await openSlot(files, code, slot, key, label, "recovery_code");
  return openWay(files, code, version.recovery, seed);
}

function newestOf(files: readonly Uint8Array[], kit: Kit): Version {
  const file = files.at(-1);
  if (!file) throw new FormatError("keyring_missing");
  return decodeVersion(file, kit.vaultId);
}

/** Return the seed in a slot, after seeing that the keyring shown is the one in which the slot was made. */
async function openSlot(
  files: readonly Uint8Array[],
  kit: Kit,
  slot: Slot,
  key: Bytes,
  label: string,
  code: Code,
): Promise<Bytes> {
  const context = concat(utf8(label), kit.vaultId, u32(slot.generation));
  const fields = new Fields(decodeMap(await open(key, context, slot.sealed, code)), "slot_mismatch");
  const made = files[fields.integer("version", 1) - 1];
  const isShown = made && equal(decodeVersion(made, kit.vaultId).publicHash, fields.bytes("public", 32));
  if (!isShown) throw new FormatError("slot_mismatch");
  return fields.bytes("seed", 32);
}

async function openWay(files: readonly Uint8Array[], kit: Kit, way: Way, seed: Bytes): Promise<Opened> {
  const keyring = acceptAll(files, kit.vaultId);
  return { keyring, vaultKey: await openBox(newest(keyring), wayRecipient(way.request, seed)) };
}
