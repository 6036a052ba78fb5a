"""Decide whether a file has the form of a checkpoint's manifest or part (sync-protocol §4)."""

from enum import Enum

from memseal_server import container

# A record's greatest body, and room for preamble and header.
MAX_FILE_BYTES = 64 * 1024 * 1024 + 4 * 1024


class Kind(Enum):
    """What a file of a checkpoint is, by the folder it lies in."""

    MANIFEST = "checkpoints"
    PART = "parts"


class ObjectInvalid(ValueError):
    """A manifest or part that breaks the format; the message is a sentence without ids."""


def check(content: bytes, vault: bytes, kind: Kind, name: bytes) -> None:
    """Refuse with `ObjectInvalid` a file that is not of this kind, or not of the vault and id it is stored under."""
    try:
        preamble = container.read_preamble(content, kind=container.KIND_CHECKPOINT, vault=vault)
        # Without the smallest body there could be five million records in 64 MiB.
        walked = container.walk(
            content, start=container.PREAMBLE_SIZE, first_index=0, min_body=container.MIN_SEALED_BODY
        )
        count = sum(1 for _ in walked)
    except container.Broken as broken:
        raise ObjectInvalid(f"The file's container is broken: {broken.code}.") from None
    if preamble.stream != name:
        raise ObjectInvalid("The preamble names another id.")
    # Both are of one kind of container: the epoch tells them apart (vault-format §3).
    if (preamble.epoch > 0) != (kind is Kind.MANIFEST):
        raise ObjectInvalid("A manifest has an epoch, a part has none.")
    if count == 0 or (kind is Kind.MANIFEST and count > 1):
        raise ObjectInvalid("A manifest has one record, a part at least one.")
