"""The beginning of a bundle, changed in one place."""

from collections.abc import Callable
from typing import Any

import pytest

from memseal.errors import Finding
from memseal.format.bundle import WRITERS_COST, Beginning, begin_bundle, open_beginning
from memseal.format.content import Content, chain_next, chain_start
from memseal.format.keys import RecordKey, StretchedPassphrase
from memseal.format.part import read_run, seal_run
from memseal.format.preamble import Kind, Preamble
from memseal.format.primitives import STANDARD_COST, Cost, sha256, stretch
from memseal.format.records import HEADER_SIZE, frame
from memseal.format.values import decode_map, encode_value
from tests.format.building import seed
from tests.format.refusing import code_of

VAULT, BUNDLE, SALT = seed("vault", 16), seed("bundle", 16), seed("salt")
KEY = RecordKey(seed("bundle key"))


def quick(salt: bytes, cost: Cost) -> StretchedPassphrase:
    return StretchedPassphrase(sha256(b"passphrase", salt, cost.to_bytes()))


def other(salt: bytes, cost: Cost) -> StretchedPassphrase:
    return StretchedPassphrase(sha256(b"another", salt, cost.to_bytes()))


def beginning(cost: Cost = WRITERS_COST) -> Beginning:
    return begin_bundle(VAULT, BUNDLE, KEY, SALT, quick, cost)


def changed(change: Callable[[dict[str, Any]], object]) -> memoryview:
    stored = beginning().stored
    value = decode_map(stored[64 + HEADER_SIZE :])
    change(value)
    return memoryview(stored[:64] + frame(0, encode_value(value)))


def test_the_key_comes_back_and_records_follow_the_chain_of_record_0() -> None:
    begun = beginning()
    opened = open_beginning(memoryview(begun.stored), quick)
    assert opened == begun
    assert begun.start.chain == chain_next(chain_start(begun.preamble), begun.stored[64:])
    records = [({"operations": [], "n": number}, ()) for number in range(3)]
    content = begun.stored + b"".join(sealed.record for sealed in seal_run(KEY, begun.preamble, begun.start, records))
    read = list(read_run("bundle", opened.key, memoryview(content), opened.start))
    assert [(each.meta["n"], each.more) for each in read if isinstance(each, Content)] == [
        (0, True), (1, True), (2, False),
    ]  # fmt: skip
    assert not [each for each in read if isinstance(each, Finding)]


def test_writers_take_what_the_format_asks_of_them() -> None:
    assert Cost(262144, 3, 4) == WRITERS_COST


def test_a_bundle_opens_with_real_argon2id() -> None:
    def real(salt: bytes, cost: Cost) -> StretchedPassphrase:
        return stretch("passphrase", salt, cost)

    begun = begin_bundle(VAULT, BUNDLE, KEY, SALT, real, STANDARD_COST)
    assert open_beginning(memoryview(begun.stored), real).key == KEY


def test_another_passphrase_is_refused() -> None:
    assert code_of(lambda: open_beginning(memoryview(beginning().stored), other)) == "bundle_passphrase"


def test_a_slot_moved_to_another_bundle_is_refused() -> None:
    preamble = Preamble(Kind.BUNDLE, 0, VAULT, seed("moved", 16), bytes(12)).to_bytes()
    content = preamble + beginning().stored[64:]
    assert code_of(lambda: open_beginning(memoryview(content), quick)) == "bundle_passphrase"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("salt", b"short"),
        ("salt", None),
        ("sealed", bytes(103)),
        ("sealed", "text"),
        ("cost", None),
        ("cost", {"name": "argon2id", "memory": "much", "passes": 3, "lanes": 4}),
        ("cost", {"name": "argon2id", "memory": 262144, "passes": 3, "lanes": 4, "more": 1}),
    ],
)
def test_a_field_that_is_not_as_described_is_refused(field: str, value: object) -> None:
    assert code_of(lambda: open_beginning(changed(lambda slot: slot.update({field: value})), quick)) == "bundle_invalid"


@pytest.mark.parametrize(
    ("cost", "code"),
    [
        ({"name": "scrypt", "memory": 262144, "passes": 3, "lanes": 4}, "kdf_unknown"),
        ({"name": "argon2id", "memory": 65535, "passes": 3, "lanes": 4}, "kdf_floor"),
        ({"name": "argon2id", "memory": 1048577, "passes": 3, "lanes": 4}, "kdf_ceiling"),
    ],
)
def test_a_cost_out_of_bounds_is_refused_before_anything_is_derived(cost: dict[str, Any], code: str) -> None:
    def never(salt: bytes, cost: Cost) -> StretchedPassphrase:
        raise AssertionError

    assert code_of(lambda: open_beginning(changed(lambda slot: slot.update(cost=cost)), never)) == code


def test_a_field_of_newer_software_does_not_matter() -> None:
    assert open_beginning(changed(lambda slot: slot.update(hint="the usual")), quick).key == KEY


def test_a_first_record_that_is_no_map_is_refused() -> None:
    content = beginning().stored[:64] + frame(0, encode_value([1]))
    assert code_of(lambda: open_beginning(memoryview(content), quick)) == "bundle_invalid"


@pytest.mark.parametrize(("epoch", "nonce"), [(1, bytes(12)), (0, b"x" * 12)])
def test_a_preamble_with_an_epoch_or_a_nonce_is_refused(epoch: int, nonce: bytes) -> None:
    content = Preamble(Kind.BUNDLE, epoch, VAULT, BUNDLE, nonce).to_bytes() + beginning().stored[64:]
    assert code_of(lambda: open_beginning(memoryview(content), quick)) == "bundle_invalid"


@pytest.mark.parametrize(("size", "code"), [(63, "preamble_short"), (70, "record_torn"), (100, "record_torn")])
def test_a_beginning_that_is_cut_is_refused(size: int, code: str) -> None:
    assert code_of(lambda: open_beginning(memoryview(beginning().stored)[:size], quick)) == code


def test_another_container_is_refused() -> None:
    content = Preamble(Kind.LOG, 0, VAULT, BUNDLE, bytes(12)).to_bytes()
    assert code_of(lambda: open_beginning(memoryview(content), quick)) == "kind_mismatch"
