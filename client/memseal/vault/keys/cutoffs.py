"""Where a device's streams end, as the version that ends its keys names it (vault-format §7)."""

from collections.abc import Mapping

from memseal.format.log import End, LogReader
from memseal.format.preamble import stream_id_of
from memseal.vault.folder.floors import newest_rows
from memseal.vault.folder.log import Log, up_to
from memseal.vault.folder.opening import Opened


def ends_of(opened: Opened, signing_key: bytes) -> Mapping[bytes, End]:
    """Return the last accepted record of each stream of a signing key; a stream whose end is damaged is left out."""
    logs = {name: log for name, log in opened.logbook.logs.items() if log.stream.owner.sign == signing_key}
    return {**_covered(opened, signing_key), **{name: log.end for name, log in logs.items() if log.end.chain}}


def readable_ends_of(opened: Opened, signing_key: bytes) -> Mapping[bytes, End]:
    """Return the same of another device's key: of a damaged stream, where the last record that can be read ends.

    Nobody is going to write again what is left out.
    """
    logs = {name: log for name, log in opened.logbook.logs.items() if log.stream.owner.sign == signing_key}
    damaged = {name: _last_readable(opened, log) for name, log in logs.items() if not log.end.chain}
    return {**ends_of(opened, signing_key), **damaged}


def _covered(opened: Opened, signing_key: bytes) -> dict[bytes, End]:
    """Return the ends of streams of which only the floor tells."""
    vault_id, logs = opened.device.vault_id, opened.logbook.logs
    return {
        name: row.end
        for name, row in newest_rows(opened.keychain.keyring).items()
        if name not in logs and stream_id_of(vault_id, signing_key, row.nonce) == name
    }


def _last_readable(opened: Opened, log: Log) -> End:
    content = memoryview(opened.logbook.piece(log.stream.stream_id, log.start.length, log.end.length))
    reader = LogReader(log.name, log.stream.preamble, log.stream.key, log.stream.owner.sign)
    trusted = reader.read(content, log.start).trusted
    return up_to(trusted[-1], log.start, content) if trusted else log.start
