"""The JSON documents of the commands about time, proposals and secrets; `documents` lists them."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from memseal.surfaces.cli.documents import Document, of_memory
from memseal.vault.writes.auditing import Exposed
from memseal.vault.writes.capturing import Captured
from memseal.vault.writes.histories import Difference, History, Version
from memseal.vault.writes.proposing import Proposal


def of_versions(versions: Iterable[Version]) -> list[Document]:
    """Return versions with their windows; both ends are null of one beside the line."""
    return [
        {
            "memory": of_memory(version.memory),
            "valid_from": None if version.valid_from is None else version.valid_from.isoformat(),
            "valid_until": None if version.valid_until is None else version.valid_until.isoformat(),
            "on_line": version.on_line,
        }
        for version in versions
    ]


def of_history(history: History) -> Document:
    """Return all versions and changes."""
    changes = [{**asdict(change), "at": change.at.isoformat()} for change in history.changes]
    return {"versions": of_versions(history.versions), "changes": changes}


def of_difference(found: Difference) -> Document:
    """Return ids by what was done to them."""
    return {
        "since": found.since.isoformat(),
        "until": found.until.isoformat(),
        "written": list(found.written),
        "superseded": [{"memory": old, "by": new} for old, new in found.superseded],
        "retracted": list(found.retracted),
        "restored": list(found.restored),
        "erased": list(found.erased),
    }


def of_proposal(proposal: Proposal) -> Document:
    """Return a proposal; `memory` is null of one about two memories that are there."""
    return {
        "id": proposal.id,
        "kind": proposal.kind,
        "why": proposal.why,
        "at": None if proposal.at is None else proposal.at.isoformat(),
        "about": list(proposal.about),
        "memory": None if proposal.memory is None else of_memory(proposal.memory),
        "likeness": proposal.likeness,
    }


def of_captured(captured: Captured) -> Document:
    """Return what a capture did; no text is in it."""
    return {**asdict(captured), "proposed": list(captured.proposed)}


def of_exposed(found: Iterable[Exposed]) -> list[dict[str, Any]]:
    """Return ids with counts by rule, never values."""
    return [asdict(each) for each in found]
