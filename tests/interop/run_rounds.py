"""The vectors' rounds of synchronisation, with a server that answers what a vector says."""

import json
from collections.abc import Mapping

from memseal.format.log import End
from memseal.format.segment import decode_segment
from memseal.sync.messages import (
    Absent,
    Answer,
    Content,
    GetHeads,
    GetKeyring,
    GetLog,
    GetObject,
    PutKeyring,
    PutObject,
    PutSegment,
    Refused,
    Request,
    Stored,
)
from memseal.sync.session import Seen, SyncSession
from memseal.transport.answers import read_heads
from memseal.vault.folder.opening import open_folder
from memseal.vault.remote.replica import VaultReplica
from memseal.vault.remote.status import all_findings
from tests.interop.manifest import octets
from tests.interop.outcome import Given, Gives, Outcome, memories_of, operation, stretcher, vault_of

# ── sync ────────────────────────────────────────────────────────────────────────────────────────────


@operation
def decode_segment_(content: Given) -> Outcome:
    segment = decode_segment(octets(content))
    return Outcome({"start": _end(segment.start), "length": len(segment.piece)})


def _end(end: End) -> Gives:
    return {"length": end.length, "records": end.records, "chain": end.chain.hex()}


class Remote:
    """A server that answers what a vector says, whoever asks."""

    def __init__(self, heads: list[Gives | None], objects: Mapping[str, Given], put: str | None) -> None:
        self._heads = heads
        self._objects = {path: octets(content) for path, content in objects.items()}
        self._put = put
        self.puts: set[str] = set()

    def answer(self, request: Request) -> Answer:
        match request:
            case GetHeads():
                return self._show(self._heads.pop(0) if len(self._heads) > 1 else self._heads[0])
            case GetKeyring(version):
                return self._give(f"keyring/{version}")
            case GetObject(shelf, object_id):
                return self._give(f"{shelf}/{object_id.hex()}")
            case GetLog(stream_id, start, limit):
                log = self._give(f"logs/{stream_id.hex()}")
                if isinstance(log, Content) and start > len(log.content):
                    return Refused("log_range", 416, "beyond its end")
                return Content(log.content[start : start + limit]) if isinstance(log, Content) else log
            case PutKeyring(version):
                return self._store(f"keyring/{version}")
            case PutSegment(stream_id, number):
                return self._store(f"logs/{stream_id.hex()}/{number}")
            case PutObject(shelf, object_id):
                return self._store(f"{shelf}/{object_id.hex()}")

    def _show(self, heads: Gives | None) -> Answer:
        return Absent() if heads is None else read_heads(json.dumps(heads).encode())

    def _give(self, path: str) -> Content | Refused:
        content = self._objects.get(path)
        return Refused("not_found", 404, "it is not there") if content is None else Content(content)

    def _store(self, path: str) -> Answer:
        if self._put is not None:
            return Refused(self._put, 409, "it is refused")
        self.puts.add(path)
        return Stored()


@operation
def sync(files: Mapping[str, Given], passphrase: str, seen: Gives | None, remote: Gives) -> Outcome:
    server = Remote(**remote)
    with vault_of(files) as folder:
        opened = open_folder(folder, stretcher(passphrase), read_only=False)
        try:
            session = SyncSession(VaultReplica(opened), _seen(seen))
            while (request := session.next_request()) is not None:
                session.receive(server.answer(request))
            findings = [*session.outcome().findings, *all_findings(opened)]
            codes = frozenset(finding.code for finding in findings)
            return Outcome({"memories": memories_of(opened.logbook.view), "puts": sorted(server.puts)}, codes)
        finally:
            opened.logbook.view.close()


def _seen(seen: Gives | None) -> Seen:
    if seen is None:
        return Seen()
    ends = {
        bytes.fromhex(stream): End(end["length"], end["records"], octets(end["chain"]))
        for stream, end in seen["logs"].items()
    }
    return Seen(seen["keyring"], ends)
