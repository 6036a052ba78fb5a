"""The vectors' operations on metas, operations and states."""

from memseal.errors import FormatError
from memseal.format.values import decode_map, decode_value
from memseal.index.view import View, decoded
from memseal.memory.operations import (
    Unknown,
    decode_meta,
    decode_operation,
    first_place,
)
from tests.interop.manifest import octets
from tests.interop.outcome import Given, Gives, Outcome, memories_of, operation, tagged

_LATE = 1 << 21
"""An epoch in which every counter below 2^53 may be."""

# ── operations and state ────────────────────────────────────────────────────────────────────────────


@operation
def decode_meta_(content: Given, epoch: int) -> Outcome:
    meta = decode_meta(decode_map(octets(content)), epoch)
    heads = [[tagged(head.stream_id), head.index, tagged(head.chain), head.counter] for head in meta.heads]
    return Outcome({"counter": meta.counter, "heads": heads, "operations": len(meta.operations)})


@operation
def decode_operation_(content: Given, counter: int, position: int) -> Outcome:
    value = decode_value(octets(content))
    found, stamp = decode_operation(value, counter, position)
    codes = {"operation_unknown"} if isinstance(found, Unknown) else set[str]()
    return Outcome({"op": value["op"], "id": found.id.hex(), "stamp": first_place(stamp)}, frozenset(codes))


@operation
def merge(records: list[Given]) -> Outcome:
    metas = [decode_map(octets(record)) for record in records]
    outcome = _merged(metas)
    if _merged(metas[::-1]) != outcome:
        raise AssertionError("the order of arrival makes a difference")
    return outcome


def _merged(metas: list[Gives]) -> Outcome:
    view, codes = View(), set[str]()
    try:
        for meta in metas:
            try:
                said, findings = decoded(decode_meta(meta, _LATE), (), "record")
                codes.update(finding.code for finding in [*findings, *view.apply_all([said])])
            except FormatError as error:
                codes.add(error.code)
        if view.taken_ids - view.state.erasures.ids:
            codes.add("id_taken")
        erased = sorted(each.hex() for each in view.state.erasures.ids)
        names = [row[0] for row in view.state.connection.execute("SELECT name FROM settings")]
        settings = {name: tagged(view.state.setting(name)) for name in names}
        return Outcome({"memories": memories_of(view), "erased": erased, "settings": settings}, frozenset(codes))
    finally:
        view.close()
