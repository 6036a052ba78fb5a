"""What the floors of a keyring say of logs (vault-format §5a and §7)."""

from collections.abc import Mapping

from memseal.errors import FormatError
from memseal.format.base import Base
from memseal.format.floor import Floor, Row
from memseal.format.preamble import Kind, Preamble
from memseal.vault.folder.keychain import Keyring


def newest_rows(keyring: Keyring) -> Mapping[bytes, Row]:
    """Return the rows of the newest version's floor by stream id."""
    floor = keyring.public.floor
    return {} if floor is None else floor.rows


def floor_with(keyring: Keyring, checkpoint: bytes) -> Floor | None:
    """Return the floor, of whatever version, that names a checkpoint."""
    floors = [version.public.floor for version in keyring.versions]
    return next((floor for floor in floors if floor is not None and floor.checkpoint == checkpoint), None)


def check_base(keyring: Keyring, stream_id: bytes, base: Base) -> None:
    """Raise `FormatError` unless some version's floor has this base for the stream."""
    for version in keyring.versions:
        row = None if version.public.floor is None else version.public.floor.rows.get(stream_id)
        if row is not None and base_of(row) == base:
            return
    raise FormatError("base_unknown", "a log begins where no floor of this vault says: sync to get the log again")


def base_of(row: Row) -> Base:
    """Return the base of a log that was cut at a floor's row."""
    return Base(row.end, row.counter)


def preambles(vault_id: bytes, floor: Floor) -> dict[bytes, bytes]:
    """Return the preamble of each log that a floor lists."""
    return {stream_id: preamble_of(vault_id, stream_id, row) for stream_id, row in floor.rows.items()}


def preamble_of(vault_id: bytes, stream_id: bytes, row: Row) -> bytes:
    """Return the preamble of a log that a floor lists."""
    return Preamble(Kind.LOG, row.epoch, vault_id, stream_id, row.nonce).to_bytes()
