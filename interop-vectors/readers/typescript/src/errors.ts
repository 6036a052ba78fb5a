/** The typed errors of the format; the code is the word of format-spec/errors.md. */

export const CODES = [
  "preamble_short",
  "preamble_magic",
  "preamble_damaged",
  "preamble_reserved",
  "version_unknown",
  "suite_unknown",
  "kind_mismatch",
  "vault_mismatch",
  "stream_mismatch",
  "epoch_mismatch",
  "record_torn",
  "record_header",
  "record_length",
  "record_order",
  "record_sealed",
  "record_padding",
  "record_flags",
  "record_content",
  "base_damaged",
  "base_unknown",
  "checkpoint_missing",
  "checkpoint_mismatch",
  "checkpoint_invalid",
  "media_mismatch",
  "bundle_invalid",
  "bundle_passphrase",
  "record_too_large",
  "chain_broken",
  "signature_invalid",
  "signature_absent",
  "zstd_limit",
  "zstd_invalid",
  "msgpack_invalid",
  "column_length",
  "column_value",
  "counter_limit",
  "counter_false",
  "stamp_invalid",
  "operation_invalid",
  "id_taken",
  "operation_unknown",
  "keyring_malformed",
  "keyring_chain",
  "keyring_first",
  "keyring_epoch",
  "keyring_devices",
  "keyring_kit",
  "keyring_epoch_needed",
  "keyring_floor",
  "keyring_sealed",
  "keyring_signature",
  "keyring_limit",
  "keyring_missing",
  "box_missing",
  "box_sealed",
  "epoch_key_mismatch",
  "slot_mismatch",
  "kdf_unknown",
  "kdf_floor",
  "kdf_ceiling",
  "passphrase_empty",
  "passphrase_wrong",
  "kit_malformed",
  "pairing_code_malformed",
  "pairing_code_wrong",
  "pairing_expired",
  "pairing_gone",
  "pairing_taken",
  "pairing_invalid",
  "pairing_unfinished",
  "kit_version",
  "recovery_code",
  "kit_or_passphrase",
  "device_file",
  "device_ended",
  "device_unknown",
  "device_name",
  "device_is_this",
  "device_unseen",
  "local_rollback",
  "vault_exists",
  "vault_missing",
  "vault_busy",
  "vault_closed",
  "vault_read_only",
  "memory_unknown",
  "memory_state",
  "memory_invalid",
  "vector_invalid",
  "filter_unknown",
  "disk",
  "disk_full",
  "embedder_unavailable",
  "embedder_answer",
  "embedder_files",
  "sanitizer_input",
  "sanitizer_missing",
  "sanitizer_model",
  "sanitizer_failed",
  "sanitizer_blocked",
  "import_row",
  "remote_unreachable",
  "remote_answer",
  "remote_unknown",
  "rolled_back",
  "withheld",
  "forked",
  "keyring_forked",
  "keyring_behind",
  "folder_keys",
  "vault_unknown",
  "registration_closed",
  "invitation_needed",
  "invitation_refused",
  "keyring_conflict",
  "segment_conflict",
  "segment_order",
  "segment_invalid",
  "stream_ended",
  "epoch_ended",
  "below_floor",
  "floor_unmet",
  "object_conflict",
  "object_invalid",
  "log_range",
  "signature_missing",
  "signature_replayed",
  "key_unknown",
  "key_ended",
  "key_forbidden",
  "clock",
  "content_digest",
  "server_identity",
  "too_large",
  "limit",
  "rate",
  "busy",
  "timeout",
  "request_invalid",
  "method_unknown",
  "route_unknown",
  "not_found",
  "server_error",
  "store_unavailable",
] as const;

export type Code = (typeof CODES)[number];

/** Bytes that break a rule, a wrong passphrase, …: `code` says which; no secret and no memory text is in it. */
export class FormatError extends Error {
  readonly code: Code;

  constructor(code: Code, message: string = code) {
    super(message);
    this.name = "FormatError";
    this.code = code;
  }
}

export function isCode(text: string): text is Code {
  return (CODES as readonly string[]).includes(text);
}

/** Something wrong that was noticed, named and listed, while the rest goes on. */
export interface Finding {
  readonly code: Code;
  readonly file: string;
  /** Indexes of the records concerned, empty where it is about the whole file. */
  readonly records: readonly number[];
  readonly detail?: string;
}

/** Return the code of an error of this format; anything else is a bug, and thrown on. */
export function codeOf(error: unknown): Code {
  if (error instanceof FormatError) return error.code;
  throw error;
}
