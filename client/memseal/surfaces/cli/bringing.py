"""Bring the items of an import into a vault, in steps that can be broken off and repeated."""

import signal
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from types import FrameType

from memseal.errors import MemoryUnknown
from memseal.surfaces.importing.items import ImportItem
from memseal.vault.vault import Vault

STEP = 256
"""Items of one durable write: what a crash can cost at most."""


@dataclass
class Tally:
    """What became of the items: stored, known already, and known with another text (their origins)."""

    new: int = 0
    known: int = 0
    changed: list[str] = field(default_factory=list[str])
    interrupted: bool = False


def bring(vault: Vault, items: Iterable[ImportItem], advance: Callable[[int], None]) -> Tally:
    """Store what the vault does not know, by `origin`; `advance` is told how many items a step took.

    An interruption (Ctrl-C) takes effect between two steps; a second one at once.
    """
    tally, rest = Tally(), iter(items)
    with _interruptible() as is_interrupted:
        while step := list(islice(rest, STEP)):
            if is_interrupted():
                tally.interrupted = True
                break
            _bring_step(vault, step, tally)
            advance(len(step))
    return tally


def preview(
    vault: Vault, items: Iterable[ImportItem], advance: Callable[[int], None], most: int
) -> tuple[Tally, list[ImportItem]]:
    """Return what `bring` would do, and the first few items that would come; stores nothing.

    Items that say the same are counted each by itself here, and are one memory later.
    """
    tally, first, rest = Tally(), list[ImportItem](), iter(items)
    while step := list(islice(rest, STEP)):
        fresh = _fresh(vault, step, tally)
        tally.new += len(fresh)
        first += fresh[: most - len(first)]
        advance(len(step))
    return tally, first


def _fresh(vault: Vault, step: Iterable[ImportItem], tally: Tally) -> list[ImportItem]:
    """Return what the vault does not know, by its id where it has one, or else by origin; the rest is counted."""
    fresh: dict[bytes | str, ImportItem] = {}
    for item in step:
        own = _own_id(item)
        name = own or item["origin"]
        if name not in fresh and not (vault.has_origin(item["origin"]) if own is None else _has(vault, own)):
            fresh[name] = item
        elif own is None and _is_changed(vault, item, fresh.get(name)):
            tally.changed.append(item["origin"])
        else:
            tally.known += 1
    return list(fresh.values())


def _own_id(item: ImportItem) -> bytes | None:
    """Return the id that a memory has where it comes from; apps may give several memories one origin."""
    past = item.get("past")
    return None if past is None else past.id


def _has(vault: Vault, memory_id: bytes) -> bool:
    try:
        vault.get(memory_id.hex())
    except MemoryUnknown:
        return False
    return True


def _bring_step(vault: Vault, step: Iterable[ImportItem], tally: Tally) -> None:
    fresh = _fresh(vault, step, tally)
    before = vault.count(state="all")
    vault.adopt(fresh)
    # Two origins can bring one and the same memory, so what was stored is counted and not what was sent.
    stored = vault.count(state="all") - before
    tally.new += stored
    tally.known += len(fresh) - stored


def _is_changed(vault: Vault, item: ImportItem, twin: ImportItem | None) -> bool:
    if twin is not None:
        return twin["content"] != item["content"]
    there = vault.list(origin=item["origin"], state="all")
    return bool(there) and all(memory.content != item["content"] for memory in there)


@contextmanager
def _interruptible() -> Generator[Callable[[], bool]]:
    """Hold back the first Ctrl-C, so that it does not break into a write, and tell whether it came."""
    came = list[int]()

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(came)
    finally:
        signal.signal(signal.SIGINT, before)
