"""Keys show nothing, are not copied, and are equal only to their like."""

import base64
import copy
import json
import logging
import pickle
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memseal.format import keys
from memseal.format.keys import Key, KitSecret, RecordKey, StretchedPassphrase, VaultKey

KEY_TYPES = [
    Key,
    keys.VaultKey,
    keys.RecordKey,
    keys.SigningKey,
    keys.WrappingKey,
    keys.LocalKey,
    keys.CacheSecret,
    keys.SessionSecret,
    keys.ReceiptKey,
    keys.KitSecret,
    keys.RecoverySecret,
    keys.TypedSecret,
    keys.ScannedSecret,
    keys.PakeKey,
    keys.StretchedPassphrase,
]
every_type = pytest.mark.parametrize("key_type", KEY_TYPES)

# No two bytes are alike, and none is printed as itself.
MATERIAL = bytes(range(0x80, 0xA0))


def _key(key_type: type[Key]) -> Key:
    return key_type(MATERIAL[: key_type.SIZE])


def _shows(text: str) -> bool:
    """Whether the text holds four consecutive bytes of the material in any usual writing."""
    start = MATERIAL[:4]
    writings = [
        start.hex(),
        start.hex().upper(),
        repr(start)[2:-1],
        str(list(start))[1:-1],
        base64.b64encode(MATERIAL[:3]).decode(),
        start.decode("latin-1"),
    ]
    return any(writing in text for writing in writings)


@dataclass(frozen=True)
class _Holder:
    key: Key


def _as_dict(key: Key) -> object:
    return asdict(_Holder(key))


def _in_hexadecimal(key: Key) -> object:
    return f"{key:x}"


def _joined(key: Key) -> object:
    return b"".join([key])  # type: ignore[list-item]


def test_every_key_type_is_tested() -> None:
    assert {kind for kind in vars(keys).values() if isinstance(kind, type) and issubclass(kind, Key)} == set(KEY_TYPES)


def test_the_writings_that_are_looked_for_are_found() -> None:
    assert all(
        _shows(text)
        for text in (
            f"{MATERIAL!r}",
            MATERIAL.hex(),
            f"{list(MATERIAL)}",
            base64.b64encode(MATERIAL).decode(),
            MATERIAL.decode("latin-1"),
        )
    )


@every_type
def test_key_gives_its_material_only_to_reveal(key_type: type[Key]) -> None:
    assert _key(key_type).reveal() == MATERIAL[: key_type.SIZE]


@every_type
def test_key_shows_its_type_alone(key_type: type[Key]) -> None:
    key = _key(key_type)
    assert {repr(key), str(key), f"{key}", f"{key!a}", "%s" % key, repr(_Holder(key))[12:-1]} == {  # noqa: UP031
        f"<{key_type.__name__}>"
    }


@every_type
def test_containers_and_logs_show_no_material(key_type: type[Key], caplog: pytest.LogCaptureFixture) -> None:
    key = _key(key_type)
    logging.getLogger("keys").warning("%s %r", key, {"key": [key, (key,)]})
    assert key_type.__name__ in caplog.text
    assert not _shows(caplog.text)


@every_type
def test_traceback_with_its_variables_shows_no_material(key_type: type[Key]) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        _fail_beside(_key(key_type))
    text = "".join(traceback.TracebackException.from_exception(raised.value, capture_locals=True).format())
    assert f"held_key = <{key_type.__name__}>" in text
    assert not _shows(text)


def _fail_beside(held_key: Key) -> float:
    return 1 / (held_key == 0)


@every_type
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_key_is_not_pickled(key_type: type[Key], protocol: int) -> None:
    with pytest.raises(TypeError, match="keys are not copied"):
        pickle.dumps(_key(key_type), protocol)


@every_type
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, _as_dict])
def test_key_is_not_copied(key_type: type[Key], copied: Callable[[Key], object]) -> None:
    with pytest.raises(TypeError, match="keys are not copied"):
        copied(_key(key_type))


def test_key_gives_no_state_to_a_serialiser() -> None:
    with pytest.raises(TypeError):
        _key(VaultKey).__getstate__()


@every_type
@pytest.mark.parametrize("convert", [bytes, list, len, memoryview, json.dumps, _in_hexadecimal, _joined])
def test_key_does_not_pass_for_bytes(key_type: type[Key], convert: Callable[[Key], object]) -> None:
    with pytest.raises(TypeError) as refused:
        convert(_key(key_type))
    assert not _shows(str(refused.value))


@every_type
def test_key_is_equal_to_another_with_its_material(key_type: type[Key]) -> None:
    assert _key(key_type) == _key(key_type)
    assert not _key(key_type) != _key(key_type)  # noqa: SIM202


@every_type
def test_key_differs_from_one_with_another_byte(key_type: type[Key]) -> None:
    changed = MATERIAL[: key_type.SIZE - 1] + b"\x00"
    assert _key(key_type) != key_type(changed)


@every_type
def test_key_differs_from_its_own_bytes(key_type: type[Key]) -> None:
    assert _key(key_type) != MATERIAL[: key_type.SIZE]


@pytest.mark.parametrize(
    ("one", "other"), [(VaultKey, RecordKey), (Key, RecordKey), (RecordKey, Key), (VaultKey, StretchedPassphrase)]
)
def test_keys_of_two_types_are_never_equal(one: type[Key], other: type[Key]) -> None:
    assert one(MATERIAL) != other(MATERIAL)


@every_type
def test_key_is_no_member_of_a_set(key_type: type[Key]) -> None:
    with pytest.raises(TypeError, match="keys are not hashable"):
        hash(_key(key_type))


def test_keys_have_256_bits_but_for_what_a_person_carries_over() -> None:
    carried: dict[type[Key], int] = {KitSecret: 16, keys.ScannedSecret: 16, keys.TypedSecret: 9}
    assert {kind: kind.SIZE for kind in KEY_TYPES} == {kind: carried.get(kind, 32) for kind in KEY_TYPES}


@every_type
@given(data=st.data())
def test_material_of_another_size_is_refused_and_not_shown(key_type: type[Key], data: st.DataObject) -> None:
    size = data.draw(st.integers(0, 80).filter(lambda size: size != key_type.SIZE))
    with pytest.raises(ValueError, match=f"^{key_type.__name__} has {key_type.SIZE} bytes$") as refused:
        key_type((MATERIAL * 3)[:size])
    assert refused.value.__context__ is None
