"""Rules K5 and K6 of vault-format §7: device entries, kit, recovery code, passphrase."""

from typing import Any

import pytest

from memseal_server.versions import StreamEnd
from tests.server.building import Draft, Fields, Log, entry, first_version, kit, opener, private_key
from tests.server.judging import Change, accept_after, read, refusal, two_devices

# K5: devices.


def reversed_entries(draft: Draft) -> None:
    draft.fields["devices"].reverse()


def ended_again(draft: Draft) -> None:
    draft.new_epoch().fields["devices"][2]["ended"]["streams"] = [[bytes(16), 1, bytes(32), 64]]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda draft: draft.fields["devices"].pop(), id="an entry is gone"),
        pytest.param(reversed_entries, id="another order"),
        pytest.param(lambda draft: draft.fields["devices"].insert(0, entry("carol", 4)), id="added at the front"),
        pytest.param(lambda draft: draft.fields["devices"][1].update(id=bytes(16)), id="another id"),
        pytest.param(lambda draft: draft.fields["devices"][1].update(sign=entry("carol", 4)["sign"]), id="another key"),
        pytest.param(lambda draft: draft.fields["devices"][1].update(wrap=bytes(1_216)), id="another wrapping key"),
        pytest.param(lambda draft: draft.fields["devices"][1].update(since=1), id="another since"),
        pytest.param(lambda draft: draft.fields["devices"][1].update(unknown=1), id="an unknown field added"),
        pytest.param(
            lambda draft: draft.new_epoch().fields["devices"][1].update(ended={"version": 3, "streams": []}),
            id="ended in another version",
        ),
        pytest.param(
            lambda draft: draft.new_epoch().end(1).fields["devices"][1].update(wrap=bytes(1_216)),
            id="ended with another key",
        ),
        pytest.param(lambda draft: draft.fields["devices"][2].update(ended=None), id="an ended one is back"),
        pytest.param(ended_again, id="an ended one changed"),
        pytest.param(lambda draft: draft.fields["devices"].append(entry("carol", 3)), id="added with an older since"),
        pytest.param(
            lambda draft: draft.fields["devices"].append({**entry("carol", 4), "ended": {"version": 4, "streams": []}}),
            id="added as ended",
        ),
        pytest.param(lambda draft: draft.add("dave:2"), id="an ended device's id is taken"),
        pytest.param(lambda draft: draft.new_epoch().end(0).end(1), id="nobody is left"),
    ],
)
def test_entries_that_change_otherwise_are_refused(change: Change) -> None:
    before = two_devices()
    before.add("dave")
    previous = before.next("alice").new_epoch().end(2)
    accept_after(before, previous)
    candidate = previous.next("alice")
    change(candidate)
    assert refusal(previous, candidate) == "keyring_devices"


def test_ended_streams_are_read() -> None:
    first = first_version()
    log = Log(first.vault, private_key("alice"), 1, first.digest()).append(2)
    previous = first.next("alice").add("bob")
    candidate = previous.next("bob").new_epoch().end(0, [log.stream_end()])
    accept_after(previous, candidate)
    ended = read(candidate).entries[0].ended_streams
    assert ended == {log.stream: StreamEnd(2, log.chain(), len(log.content()))}


# K6: kit, recovery code, passphrase.


def kit_with(**fields: Any) -> Change:
    def change(draft: Draft) -> None:
        draft.new_epoch().new_kit()
        draft.fields["kit"].update(fields)

    return change


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(kit_with(generation=1), id="same generation"),
        pytest.param(kit_with(generation=3), id="a generation left out"),
        pytest.param(kit_with(since=2), id="older since"),
        pytest.param(kit_with(wrap=kit(1, 1)["wrap"]), id="same wrapping key"),
        pytest.param(kit_with(request=kit(1, 1)["request"]), id="same request key"),
        pytest.param(lambda draft: draft.fields["kit"].update(unknown=1), id="an unknown field added"),
        pytest.param(lambda draft: draft.fields["kit"]["cost"].update(memory=8), id="only the cost changed"),
        pytest.param(
            lambda draft: draft.new_epoch().fields.update(recovery=opener("recovery", 2, 3)),
            id="recovery appears as the second",
        ),
        pytest.param(
            lambda draft: draft.new_epoch().fields.update(recovery=opener("recovery", 1, 2)),
            id="recovery appears as an older one",
        ),
        pytest.param(lambda draft: draft.fields.update(passphrase_since=3), id="passphrase without a new kit"),
        pytest.param(
            lambda draft: draft.new_epoch().new_kit().fields.update(passphrase_since=2),
            id="passphrase since another version",
        ),
    ],
)
def test_kit_that_changes_otherwise_is_refused(change: Change) -> None:
    previous = two_devices()
    candidate = previous.next("alice")
    change(candidate)
    assert refusal(previous, candidate) == "keyring_kit"


@pytest.mark.parametrize(
    "recovery",
    [
        pytest.param(None, id="gone"),
        pytest.param(opener("recovery", 3, 3), id="a generation left out"),
        pytest.param({**opener("recovery", 2, 3), "since": 2}, id="older since"),
        pytest.param({**opener("recovery", 1, 3), "generation": 2}, id="same keys"),
    ],
)
def test_recovery_code_that_changes_otherwise_is_refused(recovery: Fields | None) -> None:
    previous = two_devices()
    previous.fields["recovery"] = opener("recovery", 1, 2)
    candidate = previous.next("alice").new_epoch()
    candidate.fields["recovery"] = recovery
    assert refusal(previous, candidate) == "keyring_kit"
