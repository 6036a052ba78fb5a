"""The form of a keyring version (vault-format §7, rule K1), broken in one place at a time."""

from collections.abc import Callable
from typing import Any

import pytest

from memseal_server import keyring
from memseal_server.versions import Refused, read_version
from tests.server.building import (
    Draft,
    Fields,
    entry,
    first_version,
    pack,
    preamble,
    record,
)


def refusal_of_bytes(content: bytes, vault: bytes) -> str:
    with pytest.raises(Refused) as refused:
        read_version(content, vault)
    return refused.value.code


def test_stripped_version_is_read_and_keeps_its_digest() -> None:
    draft = first_version()
    stripped = read_version(draft.stripped(), draft.vault)
    assert stripped.digest == draft.digest() == read_version(draft.build(), draft.vault).digest
    assert stripped.sealed_found is None
    assert stripped.open_length == len(draft.stripped())
    keyring.accept(None, stripped)


PATHS_OF_TYPES: list[tuple[list[str | int], Any]] = [
    (["version"], True),
    (["version"], -1),
    (["previous"], bytes(31)),
    (["epoch"], 0),
    (["epoch_since"], "1"),
    (["epoch_key"], bytes(33)),
    (["devices"], {}),
    (["devices", 0], []),
    (["devices", 0, "id"], bytes(15)),
    (["devices", 0, "sign"], bytes(31)),
    (["devices", 0, "wrap"], bytes(1_215)),
    (["devices", 0, "since"], 0),
    (["devices", 0, "since"], 1.0),
    (["devices", 0, "ended"], False),
    (["devices", 0, "ended"], {"version": 1}),
    (["devices", 0, "ended"], {"version": 0, "streams": []}),
    (["devices", 0, "ended"], {"version": 1, "streams": [[bytes(16), 1, bytes(32)]]}),
    (["devices", 0, "ended"], {"version": 1, "streams": [[bytes(15), 1, bytes(32), 64]]}),
    (["devices", 0, "ended"], {"version": 1, "streams": [[bytes(16), -1, bytes(32), 64]]}),
    (["devices", 0, "ended"], {"version": 1, "streams": [[bytes(16), 1, bytes(31), 64]]}),
    (["devices", 0, "ended"], {"version": 1, "streams": [[bytes(16), 1, bytes(32), None]]}),
    (["devices", 0, "ended"], {"version": 1, "streams": [[bytes(16), 1, bytes(32), 64]] * 2}),
    (["devices", 0, "ended"], {"version": 1, "streams": [[bytes(16), 0, bytes(32), 63]]}),
    (["devices", 0, "ended"], {"version": 1, "streams": [[bytes(16), 0, bytes(32), 1 << 53]]}),
    (["devices", 0, "ended"], {"version": 1, "streams": [[bytes(16), 1 << 32, bytes(32), 64]]}),
    (["epoch_since"], 1 << 32),
    (["kit"], None),
    (["kit", "generation"], 0),
    (["kit", "since"], None),
    (["kit", "wrap"], bytes(1_217)),
    (["kit", "request"], "text"),
    (["kit", "cost"], None),
    (["kit", "cost", "name"], b"argon2id"),
    (["kit", "cost", "memory"], -1),
    (["kit", "cost", "passes"], None),
    (["kit", "cost", "lanes"], "4"),
    (["kit", "cost", "newer"], 1),
    (["recovery"], {}),
    (["passphrase_since"], 0),
]


def first_with(fields: Fields) -> bytes:
    """A version 1 whose public section has these fields, whatever they are; the rest is in order."""
    draft = first_version()
    head = preamble(1, 1, draft.vault, bytes(15) + b"\x01", bytes(12)) + record(0, pack(fields))
    return head + record(1, pack(draft.approval())) + draft.sealed_part


@pytest.mark.parametrize(
    ("path", "value"),
    PATHS_OF_TYPES,
    ids=[f"{number} {path}" for number, (path, _) in enumerate(PATHS_OF_TYPES)],
)
def test_field_of_a_wrong_type_is_refused(path: list[str | int], value: Any) -> None:
    draft = first_version()
    place: Any = draft.fields
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert refusal_of_bytes(first_with(draft.fields), draft.vault) == "keyring_malformed"


# The identity, a point of order 2, two of order 8, and y coordinates that are not below the field's order.
UNSOUND_KEYS = [
    b"\x01" + bytes(31),
    b"\xec" + b"\xff" * 30 + b"\x7f",
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa"),
    b"\xed" + b"\xff" * 30 + b"\x7f",
    b"\xff" * 32,
]


@pytest.mark.parametrize("path", [["epoch_key"], ["devices", 0, "sign"], ["kit", "request"]], ids=str)
@pytest.mark.parametrize("key", UNSOUND_KEYS, ids=bytes.hex)
def test_signing_key_that_is_not_sound_is_refused(path: list[str | int], key: bytes) -> None:
    draft = first_version()
    place: Any = draft.fields
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = key
    assert refusal_of_bytes(first_with(draft.fields), draft.vault) == "keyring_malformed"


@pytest.mark.parametrize("name", sorted(first_version().fields))
def test_version_without_a_field_is_refused(name: str) -> None:
    draft = first_version()
    del draft.fields[name]
    assert refusal_of_bytes(first_with(draft.fields), draft.vault) == "keyring_malformed"


@pytest.mark.parametrize(
    "overrides",
    [
        {"kind": 2},
        {"epoch": 2},
        {"stream": bytes(15) + b"\x02"},
        {"stream": b"\x01" + bytes(14) + b"\x01"},
        {"nonce": b"\x01" + bytes(11)},
        {"vault": bytes(16)},
    ],
    ids=repr,
)
def test_preamble_that_does_not_agree_is_refused(overrides: Fields) -> None:
    draft = first_version()
    draft.overrides = overrides
    assert refusal_of_bytes(draft.build(), draft.vault) == "keyring_malformed"


@pytest.mark.parametrize(
    "approval",
    [
        {},
        {"sealed": bytes(31), "signatures": []},
        {"sealed": bytes(32), "signatures": {}},
        {"sealed": bytes(32), "signatures": [[bytes(32)]]},
        {"sealed": bytes(32), "signatures": [[bytes(31), bytes(64)]]},
        {"sealed": bytes(32), "signatures": [[bytes(32), bytes(63)]]},
    ],
    ids=repr,
)
def test_approval_of_a_wrong_type_is_refused(approval: Fields) -> None:
    draft = first_version()
    content = draft.head() + record(1, pack(approval)) + draft.sealed_part
    assert refusal_of_bytes(content, draft.vault) == "keyring_malformed"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(lambda draft: b"", id="empty"),
        pytest.param(lambda draft: draft.build()[:-1], id="torn"),
        pytest.param(lambda draft: draft.build() + b"\x00", id="more bytes"),
        pytest.param(lambda draft: draft.build() + record(4, b""), id="a fifth record"),
        pytest.param(lambda draft: draft.head(), id="no approval"),
        pytest.param(lambda draft: draft.stripped() + record(2, b"x"), id="no secrets"),
        pytest.param(lambda draft: draft.stripped() + record(3, b"x"), id="a gap in the indices"),
        pytest.param(lambda draft: draft.head()[:64] + record(0, b"\xc1"), id="no msgpack"),
        pytest.param(lambda draft: draft.head()[:64] + record(0, b"\x90") + record(1, b"\x90"), id="no map"),
    ],
)
def test_broken_framing_is_refused(content: Callable[[Draft], bytes]) -> None:
    draft = first_version()
    assert refusal_of_bytes(content(draft), draft.vault) == "keyring_malformed"


@pytest.mark.parametrize("position", range(64))
def test_any_flipped_byte_of_the_preamble_is_refused(position: int) -> None:
    draft = first_version()
    content = bytearray(draft.build())
    content[position] ^= 1
    assert refusal_of_bytes(bytes(content), draft.vault) == "keyring_malformed"


@pytest.mark.parametrize("key", ["sign", "wrap"])
def test_key_that_stands_twice_is_refused(key: str) -> None:
    draft = first_version().next("alice").add("bob")
    draft.fields["devices"][1][key] = draft.fields["devices"][0][key]
    assert refusal_of_bytes(draft.build(), draft.vault) == "keyring_malformed"


def test_two_active_entries_of_one_id_are_refused() -> None:
    draft = first_version().next("alice").add("alice:2")
    assert refusal_of_bytes(draft.build(), draft.vault) == "keyring_malformed"


def test_more_than_1024_entries_are_refused() -> None:
    draft = first_version()
    draft.fields["devices"] += [entry(f"device {number}", 1) for number in range(1_024)]
    assert refusal_of_bytes(draft.build(), draft.vault) == "keyring_limit"


def test_more_than_4_mib_are_refused() -> None:
    draft = first_version()
    draft.fields["large"] = bytes(4 * 1024 * 1024)
    assert refusal_of_bytes(draft.build(), draft.vault) == "keyring_limit"
