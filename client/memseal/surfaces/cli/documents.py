"""The JSON documents of the commands: stable names, times in ISO 8601 UTC, ids in hex digits, texts verbatim.

What is listed here stays; a later version may add members. Errors are `error` with `code` and `message`.

| command | members |
|---|---|
| init | vault (path, id), emergency_kit (a secret) |
| join | vault (path, id), server, memories |
| kit, kit new | emergency_kit (a secret), files |
| recovery-code new | recovery_code (a secret, shown this once), files |
| rekey | epoch, keyring_version |
| recover | vault (path, id), server, memories, emergency_kit (a secret), devices_with_old_passphrase |
| devices, devices rename | devices (id, name, status: this, active, waiting or ended, this_device, since, … |
| | … ended or null, records, last_written_at or null) |
| devices revoke | removed (id, name, cut_offs: stream, records, length_bytes; emergency_kit, … |
| | … recovery_code or null: secrets) |
| pair | device (as of devices); before it, on standard error, one line with pairing_code (a secret) |
| passwd | emergency_kit (a secret), devices_with_old_passphrase |
| remember | memory (state `held`: it waits for a decision), new |
| believed | at, versions (memory, valid_from, valid_until or null, on_line) |
| history | versions (as of believed), changes (what, memory_id, at, reason, by) |
| diff | since, until, written, superseded (memory, by), retracted, restored, erased |
| revert, resolve, accept | memory |
| conflicts | conflicts (each an array of memories, the current one first) |
| proposals | proposals (id, kind, why, at or null, about, memory or null, likeness or null) |
| reject | rejected (the proposal's id) |
| hold | held_sources |
| capture | proposed (ids), known, refused (category: count), distiller_failed, trace_id; … |
| | … with --on or --off: capture (on, allow) |
| audit | exposed (id, sure and possible: rule: count) |
| forget | memories (nothing was changed) |
| show, supersede, retract, restore | memory |
| recall | query, status (ok or empty), reason (of empty), text (for a model), gap, … |
| | … hits (memory, score, why, truncated, masked), receipt (format-spec/recall.md) |
| list | memories, total, limit, offset |
| import | format, rows, new, known, changed, changed_origins, refused, refused_rows (line, reason), … |
| | … unknown_fields (name: count), interrupted; with --dry-run also dry_run, first (the fields of memories) |
| import of a bundle | format (bundle), new, operations, findings (code, where, detail), dry_run |
| export | path, memories, left_out; the lines it writes are memories with the member `memseal` |
| sync | remote, new_memories, pulled_bytes, pushed_bytes, findings (code, where, detail), … |
| | … joined (emergency_kit, recovery_code: secrets, shown this once, or null; null: there were no two branches) |
| status | the fields of `memseal.Status` |
| verify | ok, findings (code, where, detail) |
| repair | plan (damage, files, memories, server, remotes), repaired (path, memories, same_state, findings), … |
| | … each null where there is none |
| compact | compacted (parts_made, parts_kept, size_before, size_after, held_back; null: nothing to do) |
| erase | erasure (id, erased, survivors, at, reason, done, places: name, progress, detail) |
| erasures | erasures (as of erase) |
| quarantine | records (record, code, detail, dismissed) |
| dismiss | dismissed (the record's name) |
| reindex | embedded |
| consolidate | plan, run (32 hex digits or null), made (id, rule, key, tier, type, seen, since, until, … |
| | … derived_from, replaces, content) |
| consolidate --undo | run, taken_back |
| trace | traces (id, at, surface, turn, about, query, engine, considered, served: ids, erased: ids); … |
| | … with ID trace (what a trace holds, text, is_exact, candidates with content, states and scores) |
| trace --days, --megabytes | kept (days, megabytes) |
| sql | columns, rows (arrays; byte strings as hex digits), truncated |
| sanitize | text, counts (type: number), repaired, missing, items (type, source, start, end) |
| demo | ok, claims (text, holds), totals |
"""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from memseal.errors import Finding
from memseal.format.trace import Trace
from memseal.memory.memory import Memory, from_microseconds
from memseal.memory.traits import ATOM
from memseal.recall.packet import Packet, Recalled
from memseal.surfaces.importing.items import ImportItem
from memseal.surfaces.importing.jsonl import EXPORT_MARK, EXPORT_VERSION, TRAITS
from memseal.vault.answers.sql import Rows
from memseal.vault.checkpoint.covering import Quarantined
from memseal.vault.compaction.erasing import Erasure
from memseal.vault.copies.bundle_import import BundleReport
from memseal.vault.copies.repairing import Repair
from memseal.vault.copies.surveying import RepairPlan
from memseal.vault.remote.standing import SyncState
from memseal.vault.remote.status import Status
from memseal.vault.remote.syncing import SyncReport
from memseal.vault.writes.consolidating import Planned

Document = dict[str, Any]


def of_trace(trace: Trace) -> Document:
    """Return what a list says of a trace."""
    return {
        "id": trace.id,
        "at": _time(from_microseconds(trace.at)),
        "surface": trace.surface,
        "turn": trace.turn,
        "about": trace.about,
        "query": trace.query,
        "engine": trace.engine,
        "considered": trace.considered,
        "served": [each.memory for each in trace.served],
        "erased": list(trace.erased),
    }


def of_rows(rows: Rows) -> Document:
    """Return the answer of a statement."""
    cells = [[cell.hex() if isinstance(cell, bytes) else cell for cell in row] for row in rows.rows]
    return {"columns": list(rows.columns), "rows": cells, "truncated": rows.truncated}


def of_memory(memory: Memory) -> Document:
    """Return a memory with all its fields."""
    return {
        "id": memory.id,
        "content": memory.content,
        "kind": memory.kind,
        "source": memory.source,
        "author": memory.author,
        "thread": memory.thread,
        "position": memory.position,
        "tags": list(memory.tags),
        "captured_at": _time(memory.captured_at),
        "written_at": _time(memory.written_at),
        "origin": memory.origin,
        "state": memory.state.name.lower(),
        "reason": memory.reason,
        "supersedes": memory.supersedes,
        "superseded_by": memory.superseded_by,
        "type": memory.type,
        "tier": memory.tier,
        "owner": memory.owner,
        "policy": dict(memory.policy),
        "location": None if memory.location is None else asdict(memory.location),
        "derived_from": list(memory.derived_from),
        "derivation": None if memory.derivation is None else asdict(memory.derivation),
    }


def of_packet(query: str, packet: Packet) -> Document:
    """Return what was recalled; `status` is `ok` or `empty`, scores compare within one answer only."""
    return {
        "query": query,
        "status": packet.status,
        "reason": packet.reason,
        "text": packet.text,
        "gap": packet.gap,
        "hits": [_of_recalled(hit) for hit in packet.hits],
        "receipt": packet.receipt.to_value(),
    }


def _of_recalled(hit: Recalled) -> Document:
    why = asdict(hit.why)
    why["terms"] = list(hit.why.terms)
    return {
        "memory": of_memory(hit.memory),
        "score": hit.score,
        "why": why,
        "truncated": hit.truncated,
        "masked": hit.masked,
    }


def of_export(memory: Memory) -> Document:
    """Return a memory as a line that `import` reads; links, reason and rarer fields only where it has them."""
    document = {EXPORT_MARK: EXPORT_VERSION, **of_memory(memory)}
    # What rules say now must not come back as what the writer said.
    document |= {"type": memory.traits.type, "policy": memory.traits.stated_policy and dict(memory.policy)}
    document["tier"] = None if memory.tier == ATOM else memory.tier
    for name in ("reason", "supersedes", "superseded_by", *TRAITS):
        if not document[name]:
            del document[name]
    return document


def of_items(items: Iterable[ImportItem]) -> list[Document]:
    """Return memories that an import would bring."""
    return [
        {**{name: value for name, value in item.items() if name != "past"}, "captured_at": _time(item["captured_at"])}
        for item in items
    ]


def of_bundle_report(report: BundleReport, *, dry_run: bool) -> Document:
    """Return what the import of a bundle did, or would do."""
    return {
        "format": "bundle",
        "new": report.new_memories,
        "operations": report.new_operations,
        "findings": of_findings(report.findings),
        "dry_run": dry_run,
    }


def of_findings(findings: Iterable[Finding]) -> list[Document]:
    """Return findings: code, place, and a sentence that says what to do."""
    return [{"code": finding.code, "where": finding.where, "detail": finding.detail} for finding in findings]


def of_plan(plan: RepairPlan) -> Document:
    """Return what a repair is going to do; `lost` is null where nobody can say how many records are."""
    return {
        "damage": of_findings(plan.damage),
        "files": [asdict(each) for each in plan.files],
        "memories": plan.memories,
        "server": plan.server or None,
        "remotes": list(plan.remotes),
    }


def of_repair(repair: Repair) -> Document:
    """Return what a repair has made."""
    return {
        "path": repair.path,
        "memories": repair.memories,
        "same_state": repair.same_state,
        "findings": of_findings(repair.findings),
    }


def of_planned(planned: Planned) -> Document:
    """Return a memory that a consolidation made, or would make."""
    row = asdict(planned) | {"since": _time(planned.since), "until": _time(planned.until)}
    return row | {"derived_from": list(planned.derived_from)}


def of_erasure(erasure: Erasure) -> Document:
    """Return the receipt of an erase; it names no memory's text."""
    return {**asdict(erasure), "at": _time(erasure.at), "done": erasure.done}


def of_quarantined(record: Quarantined) -> Document:
    """Return a record of the quarantine; `record` is the name to dismiss it by."""
    finding = record.finding
    return {
        "record": record.name,
        "code": finding.code,
        "detail": finding.detail,
        "dismissed": record.dismissed,
    }


def of_sync(report: SyncReport) -> Document:
    """Return what one synchronisation did."""
    return {
        "remote": report.remote,
        "new_memories": report.new_memories,
        "pulled_bytes": report.pulled_bytes,
        "pushed_bytes": report.pushed_bytes,
        "findings": of_findings(report.findings),
        "joined": None if report.joined is None else asdict(report.joined),
    }


def of_sync_state(state: SyncState) -> Document:
    """Return how a vault that follows a remote and that remote stand to each other."""
    error = state.error
    return {
        "state": state.phase,
        "remote": state.remote,
        "error": None if error is None else {"code": error.code, "message": str(error)},
        "next_try_at": _time(state.next_try_at),
        "advice": state.advice or None,
        "synced_at": _time(state.synced_at),
        "report": None if state.report is None else of_sync(state.report),
    }


def of_status(status: Status) -> Document:
    """Return what a vault says of itself; `server` is null where there is none."""
    document = asdict(status)
    document["devices"] = [asdict(device) for device in status.devices]
    document["findings"] = of_findings(status.findings)
    document["server"] = status.server or None
    return document


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
