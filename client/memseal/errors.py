"""Every error memseal raises, in one tree, ordered by who can act.

The `code` of each is a row of `format-spec/errors.md`, where its meaning stands. No error carries a key, a passphrase
or a memory's text.
"""

from dataclasses import dataclass
from typing import ClassVar


class MemsealError(Exception):
    """Root of all errors; `code` is the word of `format-spec/errors.md`."""

    code: str = "memseal"


@dataclass(frozen=True)
class Finding:
    """Something wrong that was noticed while the rest went on: its code, the place, and what to do."""

    code: str
    where: str
    detail: str


# ── the caller ──────────────────────────────────────────────────────────────────────────────────────


class CallerError(MemsealError):
    """The program that uses memseal can act."""


class VaultExists(CallerError):
    """Something is already at the path of a new vault."""

    code = "vault_exists"


class VaultMissing(CallerError):
    """No vault is at the path."""

    code = "vault_missing"


class VaultClosed(CallerError):
    """The vault was closed."""

    code = "vault_closed"


class VaultReadOnly(CallerError):
    """The vault was opened read-only."""

    code = "vault_read_only"


class MemoryUnknown(CallerError):
    """No memory has this id."""

    code = "memory_unknown"


class MemoryState(CallerError):
    """The memory's state does not allow this."""

    code = "memory_state"


class MemoryInvalid(CallerError, ValueError):
    """A field of a memory cannot be stored."""

    code = "memory_invalid"


class SecretInMemory(CallerError, ValueError):
    """A text has a credential in it, and the caller did not say what to do with it."""

    code = "secret_in_memory"


class ProposalUnknown(CallerError):
    """No open proposal, and no conflict, has this id."""

    code = "proposal_unknown"


class CaptureOff(CallerError):
    """Capture was not switched on in this vault."""

    code = "capture_off"


class VectorInvalid(CallerError, ValueError):
    """A vector has the wrong shape or dimension, a value that is not finite, or no length."""

    code = "vector_invalid"


class FilterUnknown(CallerError, TypeError):
    """A filter that does not exist."""

    code = "filter_unknown"


class RecordTooLarge(CallerError, ValueError):
    """One memory or write is larger than a record can hold."""

    code = "record_too_large"


class RemoteUnknown(CallerError, ValueError):
    """The address is neither a server nor a folder."""

    code = "remote_unknown"


class DeviceUnknown(CallerError):
    """No device of the vault, or more than one, goes by this id or name."""

    code = "device_unknown"


class DeviceName(CallerError, ValueError):
    """The name cannot be a device's."""

    code = "device_name"


class TraceUnknown(CallerError):
    """No trace has this id, or it is older than traces are kept."""

    code = "trace_unknown"


class SqlRefused(CallerError, ValueError):
    """The statement is not one that only reads the documented tables."""

    code = "sql_refused"


class SqlLimit(CallerError):
    """The statement took longer, or a value is larger, than was allowed."""

    code = "sql_limit"


class SanitizerInput(CallerError, ValueError):
    """What is to be sanitized or restored is too long or of no shape that messages have."""

    code = "sanitizer_input"


# ── the user ────────────────────────────────────────────────────────────────────────────────────────


class UserError(MemsealError):
    """The person whose vault it is can act."""


class PassphraseEmpty(UserError, ValueError):
    """An empty passphrase, or one of only white space."""

    code = "passphrase_empty"


class PassphraseWrong(UserError):
    """The passphrase opens nothing in this vault."""

    code = "passphrase_wrong"


class KitMalformed(UserError, ValueError):
    """The emergency kit was mistyped or is not one."""

    code = "kit_malformed"


class RecoveryCodeWrong(UserError):
    """The recovery code does not open the vault."""

    code = "recovery_code"


class BundlePassphrase(UserError):
    """The passphrase does not open this bundle."""

    code = "bundle_passphrase"


class PairingCodeMalformed(UserError, ValueError):
    """The pairing code was mistyped."""

    code = "pairing_code_malformed"


class PairingCodeWrong(UserError):
    """The two devices do not have the same pairing code."""

    code = "pairing_code_wrong"


class PairingExpired(UserError):
    """The pairing code's time is over."""

    code = "pairing_expired"


class PairingGone(UserError):
    """No device shows this pairing code any more."""

    code = "pairing_gone"


class PairingTaken(UserError):
    """Somebody else answered this pairing code."""

    code = "pairing_taken"


class PairingUnfinished(UserError):
    """The pairing code was used, but the new device did not say that it joined."""

    code = "pairing_unfinished"


class KitVersion(UserError):
    """The emergency kit is of a newer format."""

    code = "kit_version"


class KitOrPassphrase(UserError):
    """Kit and passphrase together do not open the vault."""

    code = "kit_or_passphrase"


class DeviceFileDamaged(UserError):
    """The device file is missing or damaged."""

    code = "device_file"


class DeviceEnded(UserError):
    """This device was ended in the keyring."""

    code = "device_ended"


class DeviceIsThis(UserError):
    """A device does not remove itself."""

    code = "device_is_this"


class DeviceUnseen(UserError):
    """A device joined that the user has not seen; `devices` are the ids of all such."""

    code = "device_unseen"

    def __init__(self, detail: str, devices: tuple[str, ...]) -> None:
        """Take a sentence that names them, and their ids."""
        super().__init__(detail)
        self.devices = devices


class LocalRollback(UserError):
    """A file of this vault was put back to an older state."""

    code = "local_rollback"


class VaultBusy(UserError):
    """Another process has the vault open for writing."""

    code = "vault_busy"


class BoxMissing(UserError):
    """The newest keyring version has no box for this device."""

    code = "box_missing"


class FolderKeys(UserError):
    """Joining and changing keys need a server."""

    code = "folder_keys"


class ImportRowError(UserError):
    """A row of an import cannot be read; says which and why, never its text."""

    code = "import_row"

    def __init__(self, line: int, reason: str) -> None:
        """Name the line (counted from 1) and the reason."""
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


class ExtraMissing(UserError):
    """A package that this needs comes with an extra that is not installed."""

    code = "extra_missing"


class EmbedderFiles(UserError):
    """The embedding model's files are not the ones expected."""

    code = "embedder_files"


class SanitizerMissing(UserError):
    """A part that the sanitizer needs is not installed."""

    code = "sanitizer_missing"


class SanitizerModel(UserError):
    """The language model's files are not the ones expected."""

    code = "sanitizer_model"


class SanitizerFailed(UserError):
    """A recogniser failed, so nothing was let out."""

    code = "sanitizer_failed"


class SanitizerBlocked(UserError):
    """Something personal was left after replacing; `types` says of what kind, never what."""

    code = "sanitizer_blocked"

    def __init__(self, types: tuple[str, ...], place: str = "") -> None:
        """Take the types of what was left, and where it stood if a call's argument says that."""
        where = f" in {place}" if place else ""
        super().__init__(f"personal data was left{where} and nothing was let out: {', '.join(types)}")
        self.types = types


# ── the data ────────────────────────────────────────────────────────────────────────────────────────


class DataError(MemsealError):
    """Bytes are damaged, forged, or of a format this software does not know."""


class SessionLost(DataError):
    """A kept session of the sanitizer is damaged, or an erase ended it."""

    code = "session_lost"


class FormatError(DataError):
    """A rule of `format-spec/vault-format.md` is broken; `code` says which."""

    CODES: ClassVar[frozenset[str]] = frozenset(
        """
        preamble_short preamble_magic preamble_damaged preamble_reserved version_unknown suite_unknown
        kind_mismatch vault_mismatch stream_mismatch epoch_mismatch record_torn record_header record_length
        record_order record_sealed record_padding record_flags record_content chain_broken signature_invalid
        signature_absent zstd_limit zstd_invalid msgpack_invalid column_length column_value counter_limit
        counter_false stamp_invalid operation_invalid id_taken operation_unknown keyring_malformed keyring_chain
        keyring_first keyring_epoch keyring_devices keyring_kit keyring_epoch_needed keyring_floor
        keyring_sealed keyring_signature keyring_limit keyring_missing box_sealed epoch_key_mismatch
        slot_mismatch kdf_unknown kdf_floor kdf_ceiling keyring_behind forked segment_invalid base_damaged
        base_unknown checkpoint_missing checkpoint_mismatch checkpoint_invalid media_mismatch bundle_invalid
        trace_invalid
        """.split()
    )

    def __init__(self, code: str, detail: str) -> None:
        """Take a code of the format and a sentence for people."""
        if code not in self.CODES:
            raise ValueError(f"{code} is not a code of the format")
        super().__init__(detail)
        self.code = code


# ── the disk ────────────────────────────────────────────────────────────────────────────────────────


class DiskError(MemsealError):
    """The disk refused to read or write."""

    code = "disk"


class DiskFull(DiskError):
    """No space is left; nothing that was acknowledged is lost."""

    code = "disk_full"


# ── the network ─────────────────────────────────────────────────────────────────────────────────────


class NetworkError(MemsealError):
    """Trying again can help."""


class RemoteUnreachable(NetworkError):
    """The remote cannot be reached."""

    code = "remote_unreachable"


class EmbedderUnavailable(NetworkError):
    """The embedding service or model cannot be reached or loaded."""

    code = "embedder_unavailable"


class EmbedderAnswer(NetworkError):
    """The embedding service answered nonsense."""

    code = "embedder_answer"


# ── the server ──────────────────────────────────────────────────────────────────────────────────────


class ServerError(MemsealError):
    """Whoever runs the remote can act, or lies."""


class RemoteAnswer(ServerError):
    """The remote answered something the protocol does not know."""

    code = "remote_answer"


class PairingInvalid(ServerError):
    """A message of a pairing is not as it must be."""

    code = "pairing_invalid"


class RemoteRefused(ServerError):
    """The remote refused a request; `code` is the one of its problem document."""

    def __init__(self, code: str, status: int, detail: str, retry_after_seconds: float = 0.0) -> None:
        """Take the problem document's code, HTTP status and sentence, and how long the remote asks to wait."""
        super().__init__(detail)
        self.code = code
        self.status = status
        self.retry_after_seconds = retry_after_seconds


class RolledBack(ServerError):
    """The remote shows less than it showed this device before."""

    code = "rolled_back"


class KeyringForked(ServerError):
    """The server's keyring is on another branch than the one here."""

    code = "keyring_forked"
