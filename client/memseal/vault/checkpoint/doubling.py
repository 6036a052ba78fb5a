"""Write memories again that lost their id to another: nothing that was written is lost (vault-format §10)."""

import secrets
from collections.abc import Iterable, Iterator
from typing import Any

from memseal.errors import Finding
from memseal.index.doubles import Double
from memseal.memory.operations import encode_operation, first_place
from memseal.vault.folder.batch import Batch
from memseal.vault.folder.opening import Opened

_RECORD_BYTES = 4 << 20
_OPERATIONS = 4096
_DETAIL = "it came again with other content, by a device's fault or malice: both are kept, the other under a new id"
_PASSES = 8
"""Who writes under the ids of these too can go on for ever; what is left then is written the next time."""


def keep_doubles(opened: Opened) -> list[Finding]:
    """Write under ids of their own what came under known ids with other content; lists and returns these ids."""
    state, logbook = opened.logbook.view.state, opened.logbook
    for _ in range(_PASSES):
        counter = logbook.next_counter()
        # Of one with a higher stamp the record is still to come: a checkpoint said it first.
        due = [double for double in state.doubles.due() if first_place(double.stamp)[0] < counter]
        if not due:
            break
        again = [each for each in due if not (each.again.id in state.erasures.ids or state.doubles.holds(each.again))]
        if again:
            logbook.write(list(_batches(again)), secrets.token_bytes(4))
        state.doubles.settle(due)
    taken, logbook.view.taken_ids = logbook.view.taken_ids, set[bytes]()
    named = taken_ids(taken - state.erasures.ids)
    opened.findings += named
    return named


def taken_ids(ids: Iterable[bytes]) -> list[Finding]:
    """Return a finding for each id that came again with other content."""
    return [Finding("id_taken", f"memories/{each.hex()}", _DETAIL) for each in sorted(ids)]


def _batches(doubles: Iterable[Double]) -> Iterator[Batch]:
    values, size = list[dict[str, Any]](), 0
    for each in doubles:
        values.append(encode_operation(each.again, each.stamp))
        size += len(each.again.draft.content)
        if size > _RECORD_BYTES or len(values) == _OPERATIONS:
            yield Batch(values=values)
            values, size = [], 0
    if values:
        yield Batch(values=values)
