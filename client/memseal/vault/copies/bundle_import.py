"""Take what a bundle holds into a vault: the one that it came from, or another (vault-format §8d)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain

from memseal.errors import Finding
from memseal.index.dump import Entry
from memseal.index.state import VaultState
from memseal.index.view import View
from memseal.memory.operations import (
    Dismiss,
    Embed,
    Erase,
    Remember,
    Retraction,
    Setting,
    Tagging,
    encode_operation,
    first_place,
)
from memseal.memory.proposals import proposed_id
from memseal.memory.texts import ID_SIZE
from memseal.vault.copies.bundles import Bundle, Progress, dump, in_records, with_rows
from memseal.vault.folder.batch import Batch
from memseal.vault.folder.opening import Opened, clean_traces, drop_stale_cache
from memseal.vault.writes.capturing import CAPTURE


@dataclass(frozen=True)
class BundleReport:
    """What an import did: memories and operations (these among them) that were new, and what of the bundle is lost."""

    new_memories: int
    new_operations: int
    findings: tuple[Finding, ...]


def import_bundle(
    reach: Callable[[], AbstractContextManager[Opened]],
    write: Callable[[Sequence[Batch]], None],
    bundle: Bundle,
    progress: Progress | None = None,
) -> BundleReport:
    """Write what is missing, step by step, each step durable: broken off and begun again, nothing comes twice.

    With a `write` that does nothing, it says what would come.
    """
    entries, memories, operations, done = dump(bundle.view), 0, 0, 0
    total = entries.count()
    for some in in_records(chain(entries.settings(), entries.others())):
        with reach() as opened:
            missing = list(_missing(opened, bundle, some))
            if missing:
                write([_batch(opened, bundle, missing)])
                if any(isinstance(entry.operation, Erase) for entry in missing):
                    drop_stale_cache(opened)
                    clean_traces(opened)
        memories += sum(isinstance(entry.operation, Remember) for entry in missing)
        operations += len(missing)
        done += len(some)
        if progress is not None:
            progress(min(done, total), total)
    if progress is not None:
        progress(total, total)
    return BundleReport(memories, operations, bundle.findings)


def _missing(opened: Opened, bundle: Bundle, entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield what would change the vault's state, vectors of another model than the vault's left out."""
    view, same_vault = opened.logbook.view, _is_same_vault(opened, bundle)
    usable = view.pinned in (None, bundle.view.pinned)
    for entry in entries:
        operation = entry.operation
        if isinstance(operation, Embed) and not usable:
            continue
        if _is_missing(view, entry, same_vault):
            yield entry if usable or entry.code is None else Entry(operation, entry.stamp)


def _is_missing(view: View, entry: Entry, same_vault: bool) -> bool:
    state, erased = view.state, view.state.erasures.ids
    match entry.operation:
        case Remember(memory_id):
            return memory_id not in erased and not _has(state, "memories WHERE id = ?", memory_id)
        case Retraction(operation_id, target):
            return target not in erased and not _has(state, "retractions WHERE id = ?", operation_id)
        case Embed(_, target):
            return target not in erased and _is_newer(
                state, entry, same_vault, "vector FROM memories WHERE id = ?", target
            )
        case Setting(_, name) if proposed_id(name) in erased or (name == CAPTURE and not same_vault):
            return False  # and what comes from elsewhere switches no capture on
        case Setting(_, name):
            return _is_newer(state, entry, same_vault, "stamp FROM settings WHERE name = ?", name)
        case Tagging(operation_id, target, _, added, removed):
            here = "WHERE (target, tag, added_by) = (?, ?, ?)"
            return target not in erased and not (
                all(_has(state, f"tags {here}", target, tag, operation_id) for tag in added)
                and all(_has(state, f"tags_removed {here}", target, tag, added_by) for tag, added_by in removed)
            )
        case Erase(operation_id):
            return not _has(state, "erasures WHERE id = ?", operation_id)
        case Dismiss(_, stream, records):
            # Elsewhere there is no such log.
            here = "dismissed WHERE (stream, record) = (?, ?)"
            return same_vault and not all(_has(state, here, stream, record) for record in records)
        case _:
            return False


def _is_newer(state: VaultState, entry: Entry, same_vault: bool, where: str, value: object) -> bool:
    """Return whether what counts has no stamp, or in the vault that both are of a lower one than the entry's."""
    row = state.connection.execute(f"SELECT {where}", (value,)).fetchone()
    if row is None or row[0] is None:
        return True
    since: bytes = row[0]
    # One that was brought by an earlier import has its id, and may have got a lower stamp.
    return same_vault and since < entry.stamp and since[-ID_SIZE:] != entry.operation.id


def _has(state: VaultState, where: str, *values: object) -> bool:
    query = f"SELECT 1 FROM {where}"  # noqa: S608 - our own text
    return state.connection.execute(query, values).fetchone() is not None


def _batch(opened: Opened, bundle: Bundle, entries: Sequence[Entry]) -> Batch:
    """Return what one record will carry: first stamps only in the vault that gave them, and only below the record's."""
    operations, columns = with_rows(bundle.view, entries)
    if not _is_same_vault(opened, bundle):
        return Batch(operations, columns)
    counter = opened.logbook.next_counter()
    stamped = list[dict[str, object]]()
    for operation, entry in zip(operations, entries, strict=True):
        # What is newer than all that is here would be refused with its first stamp, and keeps its order without.
        is_older = first_place(entry.stamp)[0] < counter
        stamped.append(encode_operation(operation, entry.stamp if is_older else None))
    return Batch((), columns, stamped)


def _is_same_vault(opened: Opened, bundle: Bundle) -> bool:
    return opened.keychain.vault_id == bundle.vault_id
