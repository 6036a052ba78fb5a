"""Where streams end that only a server has: read, since what its heads say proves nothing."""

from collections.abc import Mapping

from memseal.errors import FormatError
from memseal.format.log import End, LogReader, start_of
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.sync.messages import Content, GetLog, RemoteLog
from memseal.sync.session import HELD_MOST, PULL_LIMIT, expect
from memseal.transport import Transport
from memseal.vault.folder.floors import newest_rows, preamble_of
from memseal.vault.folder.keychain import Keychain, Stream
from memseal.vault.folder.log import up_to


def read_ends(
    transport: Transport, keychain: Keychain, logs: Mapping[bytes, RemoteLog]
) -> dict[bytes, dict[bytes, End]]:
    """Return by signing key where its streams end, as far as they can be read and are signed."""
    ends, rows = dict[bytes, dict[bytes, End]](), newest_rows(keychain.keyring)
    for stream_id in logs:
        row = rows.get(stream_id)
        if row is None:
            preamble = expect(transport.send(GetLog(stream_id, 0, PREAMBLE_SIZE)), Content).content
        else:
            preamble = preamble_of(keychain.vault_id, stream_id, row)
        try:
            stream = keychain.stream(preamble, stream_id)
        except FormatError:
            continue  # not a log of this branch
        end = _end_of(transport, stream, start_of(preamble) if row is None else row.end)
        if end.records:
            ends.setdefault(stream.owner.sign, {})[stream_id] = end
    return ends


def _end_of(transport: Transport, stream: Stream, start: End) -> End:
    """Return where the last whole write of a stream ends; one answer at a time is held, or one record."""
    reader, at, held = LogReader("", stream.preamble, stream.key, stream.owner.sign), start, b""
    while answer := expect(
        transport.send(GetLog(stream.stream_id, at.length + len(held), PULL_LIMIT)), Content
    ).content:
        held += answer
        if len(held) > HELD_MOST:
            break  # no record is so large
        whole = list(reader.read(memoryview(held), at).trusted)
        while whole and whole[-1].content.more:
            whole.pop()
        if whole:
            at, held = up_to(whole[-1], at, memoryview(held)), b""
    return at
