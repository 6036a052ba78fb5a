"""The device file keeps private keys behind the passphrase, and marks behind the local key (vault-format §8)."""

import zlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.errors import FormatError, MemsealError
from memseal.format.derivation import device_slot_key, marks_key
from memseal.format.device_file import (
    DeviceFile,
    DeviceSlot,
    decode_device_file,
    device_preamble,
    open_key_set,
    open_marks,
    seal_key_set,
    seal_marks,
)
from memseal.format.keys import LocalKey, StretchedPassphrase
from memseal.format.preamble import PREAMBLE_SIZE, Kind, Preamble
from memseal.format.primitives import STANDARD_COST, Cost, sha256
from memseal.format.records import HEADER_SIZE, frame, places, seal_record
from memseal.format.values import encode_value
from tests.format.broken import flipped
from tests.format.building import ANN, BEN, VAULT, seed
from tests.format.refusing import code_of, outcome

IDS = (VAULT, ANN.id)
KEYS = ANN.keys
MARKS = {"keyring": 1, "logs": {}}
COST_MAP = {"name": "argon2id", "memory": 65536, "passes": 3, "lanes": 4}


def behind(passphrase: str) -> Any:
    """Derivation without its cost: what it depends on is all that matters here."""

    def stretch(salt: bytes, cost: Cost) -> StretchedPassphrase:
        return StretchedPassphrase(sha256(passphrase.encode(), salt, cost.to_bytes()))

    return stretch


CORRECT = behind("correct horse")


def made(*states: str) -> DeviceFile:
    slots = tuple(
        seal_key_set(
            IDS, state, seed(f"salt {state}"), STANDARD_COST, KEYS if state == "current" else BEN.keys, CORRECT
        )
        for state in states
    )
    return DeviceFile(*IDS, slots, seal_marks(IDS, slots, KEYS.local, MARKS))


FILE = made("current")
BOTH = made("current", "pending")
STORED = FILE.to_bytes()


def _open(content: bytes) -> tuple[object, object]:
    file = decode_device_file(content)
    keys = open_key_set(file, file.slots[0], CORRECT)
    if keys is None:
        raise FormatError("record_sealed", "the passphrase opens nothing")
    return keys, open_marks(file, keys.local)


# ── what opens ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("file", [FILE, BOTH], ids=["one slot", "two slots"])
def test_what_is_sealed_opens(file: DeviceFile) -> None:
    decoded = decode_device_file(file.to_bytes())
    assert decoded == file
    assert _open(file.to_bytes()) == (KEYS, MARKS)


def test_pending_keys_open_beside_the_current_ones() -> None:
    assert open_key_set(BOTH, BOTH.slots[1], CORRECT) == BEN.keys


def test_local_key_from_before_is_kept() -> None:
    keys = replace(KEYS, local_before=LocalKey(bytes(32)))
    slot = seal_key_set(IDS, "current", bytes(32), STANDARD_COST, keys, CORRECT)
    assert open_key_set(FILE, slot, CORRECT) == keys


def test_wrong_passphrase_opens_nothing() -> None:
    assert open_key_set(FILE, FILE.slots[0], behind("correct horsf")) is None


@pytest.mark.parametrize(
    "slot",
    [
        replace(FILE.slots[0], salt=bytes(32)),
        replace(FILE.slots[0], cost=Cost(65537, 3, 4)),
        replace(FILE.slots[0], state="pending"),
        replace(FILE.slots[0], body=BOTH.slots[1].body),
    ],
    ids=["salt", "cost", "state", "another slot's body"],
)
def test_slot_is_bound_to_salt_cost_and_place(slot: DeviceSlot) -> None:
    assert open_key_set(FILE, slot, CORRECT) is None


@pytest.mark.parametrize("ids", [(bytes(16), ANN.id), (VAULT, BEN.id)], ids=["vault", "device"])
def test_key_set_is_bound_to_vault_and_device(ids: tuple[bytes, bytes]) -> None:
    file = DeviceFile(*ids, FILE.slots, FILE.marks)
    assert open_key_set(file, file.slots[0], CORRECT) is None
    assert code_of(lambda: open_marks(file, KEYS.local)) == "record_sealed"


def test_marks_are_bound_to_the_local_key_and_their_place() -> None:
    assert code_of(lambda: open_marks(FILE, BEN.keys.local)) == "record_sealed"
    assert code_of(lambda: open_marks(replace(BOTH, marks=FILE.marks), KEYS.local)) == "record_sealed"


# ── what is refused ─────────────────────────────────────────────────────────────────────────────────


def test_each_flipped_byte_is_refused() -> None:
    codes = {code_of(lambda: _open(flipped(STORED, 8 * n + n % 8))) for n in range(len(STORED))}  # noqa: B023
    assert codes <= {"device_file", "record_sealed", "kdf_unknown", "kdf_floor", "kdf_ceiling"}
    assert {"device_file", "record_sealed"} <= codes


@given(end=st.integers(0, len(STORED) - 1))
def test_file_that_is_cut_is_refused(end: int) -> None:
    assert code_of(lambda: decode_device_file(STORED[:end])) == "device_file"


@given(more=st.binary(min_size=1, max_size=40))
def test_bytes_after_the_marks_are_refused(more: bytes) -> None:
    assert code_of(lambda: decode_device_file(STORED + more)) == "device_file"


def _rebuilt(head: object, records: int = 2) -> bytes:
    bodies = [encode_value(head), *(FILE.slots[0].body for _ in range(records - 1)), FILE.marks]
    return STORED[:PREAMBLE_SIZE] + b"".join(frame(index, body) for index, body in enumerate(bodies))


def _slot(**changes: Any) -> dict[str, Any]:
    return {"state": "current", "salt": bytes(32), "cost": COST_MAP, **changes}


def test_file_made_by_hand_decodes() -> None:
    assert decode_device_file(_rebuilt({"slots": [_slot()]})).slots[0].cost == STANDARD_COST


@pytest.mark.parametrize(
    ("head", "records"),
    [
        ([], 2),
        ({}, 2),
        ({"slots": []}, 1),
        ({"slots": []}, 2),
        ({"slots": [_slot(state="pending")]}, 2),
        ({"slots": [_slot(), _slot()]}, 3),
        ({"slots": [_slot(state="pending"), _slot()]}, 3),
        ({"slots": [_slot(), _slot(state="pending"), _slot(state="pending")]}, 4),
        ({"slots": [_slot(state="newer")]}, 2),
        ({"slots": [_slot(salt=bytes(31))]}, 2),
        ({"slots": [_slot(cost=None)]}, 2),
        ({"slots": [_slot(cost={**COST_MAP, "memory": "65536"})]}, 2),
        ({"slots": [_slot(cost={**COST_MAP, "newer": 1})]}, 2),
        ({"slots": [7]}, 2),
        ({"slots": [_slot()]}, 3),
        ({"slots": [_slot()]}, 1),
    ],
)
def test_file_whose_first_record_is_wrong_is_refused(head: object, records: int) -> None:
    assert code_of(lambda: decode_device_file(_rebuilt(head, records))) == "device_file"


@pytest.mark.parametrize(
    ("cost", "code"),
    [
        ({"name": "argon2d"}, "kdf_unknown"),
        ({"memory": 65535}, "kdf_floor"),
        ({"passes": 2}, "kdf_floor"),
        ({"lanes": 0}, "kdf_floor"),
        ({"memory": 1048577}, "kdf_ceiling"),
        ({"passes": 11}, "kdf_ceiling"),
        ({"lanes": 17}, "kdf_ceiling"),
    ],
)
def test_cost_outside_the_bounds_is_refused_before_anything_is_derived(cost: dict[str, Any], code: str) -> None:
    head = {"slots": [_slot(cost={**COST_MAP, **cost})]}
    assert code_of(lambda: decode_device_file(_rebuilt(head))) == code


@pytest.mark.parametrize(
    "preamble",
    [
        Preamble(Kind.DEVICE, 1, VAULT, ANN.id, bytes(12)),
        Preamble(Kind.DEVICE, 0, VAULT, ANN.id, b"\1" + bytes(11)),
        Preamble(Kind.CACHE, 0, VAULT, ANN.id, bytes(12)),
    ],
    ids=["epoch", "nonce", "kind"],
)
def test_other_preamble_is_refused(preamble: Preamble) -> None:
    assert code_of(lambda: decode_device_file(preamble.to_bytes() + STORED[PREAMBLE_SIZE:])) == "device_file"


@pytest.mark.parametrize(("offset", "code"), [(8, "version_unknown"), (9, "suite_unknown")])
def test_newer_file_asks_for_an_update(offset: int, code: str) -> None:
    head = STORED[:offset] + b"\2" + STORED[offset + 1 : 60]
    newer = head + zlib.crc32(head).to_bytes(4, "big") + STORED[PREAMBLE_SIZE:]
    assert code_of(lambda: decode_device_file(newer)) == code


@pytest.mark.parametrize("value", [[], {}, {"sign": bytes(31), "wrap": bytes(32), "local": bytes(32)}, 7])
def test_key_set_that_is_none_is_damage(value: object) -> None:
    slot = FILE.slots[0]
    key = device_slot_key(CORRECT(slot.salt, slot.cost), slot.salt, *IDS, slot.cost)
    body = seal_record(key, device_preamble(*IDS), 1, encode_value(value))[HEADER_SIZE:]
    assert code_of(lambda: open_key_set(FILE, replace(slot, body=body), CORRECT)) == "device_file"


def test_marks_that_are_no_map_are_refused() -> None:
    body = seal_record(marks_key(KEYS.local, *IDS), device_preamble(*IDS), 2, encode_value([1]))[HEADER_SIZE:]
    assert code_of(lambda: open_marks(replace(FILE, marks=body), KEYS.local)) == "msgpack_invalid"


@given(content=st.binary(max_size=200).map(lambda more: STORED[:PREAMBLE_SIZE] + more) | st.binary(max_size=100))
def test_any_bytes_are_a_device_file_or_refused_with_our_code(content: bytes) -> None:
    assert outcome(lambda: decode_device_file(content)) == "device_file"


@given(data=st.data())
def test_any_change_of_the_first_record_is_refused_with_our_code(data: st.DataObject) -> None:
    first = places(memoryview(STORED))[0]
    head = bytearray(STORED[first.offset + HEADER_SIZE : first.end])
    for _ in range(data.draw(st.integers(1, 4))):
        head[data.draw(st.integers(0, len(head) - 1))] = data.draw(st.integers(0, 255))
    changed = STORED[:PREAMBLE_SIZE] + frame(0, bytes(head)) + STORED[first.end :]
    codes = {"accepted", "device_file", "record_sealed", "kdf_unknown", "kdf_floor", "kdf_ceiling"}
    assert outcome(lambda: _open(changed)) in codes


def test_no_key_shows_in_what_a_file_or_its_errors_print() -> None:
    with pytest.raises(MemsealError) as refused:
        open_marks(FILE, BEN.keys.local)
    printed = repr(FILE) + repr(KEYS) + repr(refused.value)
    assert all(key.reveal().hex() not in printed for key in (KEYS.sign, KEYS.wrap, KEYS.local))
