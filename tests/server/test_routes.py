"""Each request of sync-protocol §2 and its answers."""

import asyncio
import hashlib
import itertools

import pytest

from memseal_server.limits import Limits
from tests.server.building import Draft, Log, first_version, private_key, segment
from tests.server.calling import Caller

UNKNOWN = bytes(16).hex()


def version_path(draft: Draft, number: int | str) -> str:
    return f"/v1/vaults/{draft.vault.hex()}/keyring/{number}"


# Keyring.


async def test_first_version_registers_the_vault(caller: Caller, first: Draft) -> None:
    assert (await caller.get_heads(first.vault)).outcome == (404, "vault_unknown")
    assert (await caller.put_version(first)).status == 201
    heads = await caller.get_heads(first.vault)
    assert heads.status == 200
    assert heads.headers["Content-Type"].startswith("application/json")
    assert heads.json == {
        "keyring": {"version": 1, "digest": first.digest().hex(), "whole": True},
        "floor": None,
        "logs": {},
    }


async def test_same_version_again_is_there_already(caller: Caller, first: Draft, second: Draft) -> None:
    await caller.register(first, second)
    for draft in (first, second):
        answer = await caller.put_version(draft)
        assert (answer.status, answer.body) == (200, b"")


async def test_another_version_of_a_number_is_a_conflict(caller: Caller, first: Draft, second: Draft) -> None:
    await caller.register(first, second)
    assert (await caller.put_version(first.next("alice"))).outcome == (409, "keyring_conflict")
    assert (await caller.get_version(first, 2)).body == second.build()


async def test_version_that_is_not_the_next_is_a_conflict(caller: Caller, first: Draft, second: Draft) -> None:
    await caller.register(first)
    third = second.next("alice")
    assert (await caller.put_version(third)).outcome == (409, "keyring_conflict")
    assert (await caller.get_version(first, 3)).outcome == (404, "not_found")


async def test_version_that_breaks_a_rule_is_refused_with_its_code(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    without_epoch = first.next("alice").add("bob").new_kit()
    assert (await caller.put_version(without_epoch)).outcome == (422, "keyring_epoch_needed")
    stranger = first.next("alice")
    stranger.signers.append(private_key("stranger"))
    assert (await caller.put_version(stranger)).outcome == (422, "keyring_signature")
    assert (await caller.get_heads(first.vault)).json["keyring"]["version"] == 1


async def test_first_version_that_breaks_a_rule_registers_nothing(caller: Caller, first: Draft) -> None:
    first.signers.pop()
    assert (await caller.put_version(first)).outcome == (422, "keyring_signature")
    assert (await caller.get_heads(first.vault)).outcome == (404, "vault_unknown")


async def test_stripped_version_is_refused(caller: Caller, first: Draft) -> None:
    assert (await caller.put_version(first.stripped())).outcome == (422, "keyring_sealed")


async def test_version_of_another_vault_is_refused(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    other = first_version("mallory").build()
    answer = await caller.send("PUT", version_path(first, 2), "alice", other)
    assert answer.outcome == (422, "keyring_malformed")


async def test_versions_are_given_whole_or_stripped(caller: Caller, first: Draft, second: Draft) -> None:
    await caller.register(first, second)
    expected: dict[int | str, Draft] = {1: first, 2: second, "latest": second}
    for number, draft in expected.items():
        whole = await caller.get_version(first, number)
        assert (whole.status, whole.body) == (200, draft.build())
        assert whole.headers["Content-Type"] == "application/octet-stream"
        assert (await caller.get_version(first, number, "part=public")).body == draft.stripped()


@pytest.mark.parametrize("number", [0, 3, 9_999_999_999])
async def test_version_that_is_not_there_is_not_found(caller: Caller, first: Draft, number: int) -> None:
    await caller.register(first)
    assert (await caller.get_version(first, number)).outcome == (404, "not_found")


async def test_one_of_two_racing_registrations_wins(caller: Caller, first: Draft) -> None:
    other = Draft(first.vault, {**first.fields, "note": "another"}, first.signers)
    answers = await asyncio.gather(caller.put_version(first), caller.put_version(other))
    assert sorted(answer.outcome for answer in answers) == [(201, ""), (409, "keyring_conflict")]


async def test_racing_puts_of_the_same_version_all_succeed(caller: Caller, first: Draft) -> None:
    answers = await asyncio.gather(*(caller.put_version(first) for _ in range(8)))
    assert sorted(answer.status for answer in answers) == [200] * 7 + [201]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"/v1/vaults/{UNKNOWN}/heads"),
        ("GET", f"/v1/vaults/{UNKNOWN}/keyring/1"),
        ("GET", f"/v1/vaults/{UNKNOWN}/keyring/latest"),
        ("PUT", f"/v1/vaults/{UNKNOWN}/keyring/2"),
        ("GET", f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}"),
        ("PUT", f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}/0"),
    ],
)
async def test_vault_that_is_not_there_is_unknown(caller: Caller, method: str, path: str) -> None:
    body = b"x" if method == "PUT" else None
    assert (await caller.send(method, path, body=body)).outcome == (404, "vault_unknown")


async def test_vault_is_registered_by_the_key_it_is_named_for(caller: Caller, first: Draft) -> None:
    assert (await caller.put_version(first, "bob")).outcome == (401, "key_unknown")
    assert (await caller.put_version(first, "epoch 1")).outcome == (401, "key_unknown")


class TestClosedRegistration:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(registration="closed")

    async def test_new_vault_is_refused(self, caller: Caller, first: Draft) -> None:
        for query in ("", "refill=true"):
            assert (await caller.put_version(first, query=query)).outcome == (403, "registration_closed")
        assert (await caller.get_heads(first.vault)).outcome == (404, "vault_unknown")


# Logs.


async def test_log_is_given_as_it_was_put(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    for seq in range(3):
        assert (await caller.put_segment(log, seq, log.segment(seq, seq + 1))).status == 201
    answer = await caller.get_log(log)
    assert (answer.status, answer.body) == (200, log.content())
    assert answer.headers["Memseal-Log-Length"] == str(len(log.content()))
    assert answer.headers["Content-Type"] == "application/octet-stream"
    heads = await caller.get_heads(first.vault)
    assert heads.json["logs"] == {log.stream.hex(): log.end(next_seq=3)}


async def test_any_range_of_a_log_is_that_range(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    log.append(6)
    bounds = [0, 1, 2, 4, 5, 9]
    for seq, (start, stop) in enumerate(itertools.pairwise(bounds)):
        await caller.put_segment(log, seq, log.segment(start, stop))
    content = log.content()
    edges = sorted({0, 1, 63, 64, *(len(log.content(stop)) + near for stop in bounds for near in (-1, 0, 1))})
    for start in [edge for edge in edges if edge <= len(content)]:
        for limit in (1, 1_107, 1_109, 4_000, 10**9):
            answer = await caller.get_log(log, f"from={start}&limit={limit}")
            assert (answer.status, answer.body) == (200, content[start : start + limit])
            assert answer.headers["Memseal-Log-Length"] == str(len(content))


async def test_nothing_follows_the_end_of_a_log(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    await caller.put_segment(log, 0, log.segment(0, 3))
    length = len(log.content())
    at_end = await caller.get_log(log, f"from={length}")
    assert (at_end.status, at_end.body) == (200, b"")
    assert at_end.headers["Memseal-Log-Length"] == str(length)
    assert (await caller.get_log(log, f"from={length + 1}")).outcome == (416, "log_range")
    assert (await caller.get_log(log, f"from={10**18}")).outcome == (416, "log_range")


async def test_log_that_is_not_there_is_not_found(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    assert (await caller.get_log(log)).outcome == (404, "not_found")


async def test_one_answer_carries_8_mib_at_most(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    log = Log(first.vault, private_key("alice"), 1, first.digest()).append(3, size=3 * 1024 * 1024)
    for seq in range(3):
        assert (await caller.put_segment(log, seq, log.segment(seq, seq + 1))).status == 201
    answer = await caller.get_log(log, f"limit={9 * 1024 * 1024}")
    assert answer.body == log.content()[: 8 * 1024 * 1024]
    rest = await caller.get_log(log, f"from={8 * 1024 * 1024}")
    assert answer.body + rest.body == log.content()


async def test_same_segment_again_is_there_already(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    for seq in range(3):
        await caller.put_segment(log, seq, log.segment(seq, seq + 1))
    for seq in range(3):
        assert (await caller.put_segment(log, seq, log.segment(seq, seq + 1))).status == 200


async def test_other_bytes_under_a_number_are_a_conflict(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    await caller.put_segment(log, 0, log.segment(0, 1))
    await caller.put_segment(log, 1, log.segment(1, 2))
    answer = await caller.put_segment(log, 1, log.segment(1, 3))
    assert answer.outcome == (409, "segment_conflict")
    piece = log.segment(1, 2)[52:]
    assert answer.json["length"] == len(piece)
    assert answer.json["digest"] == hashlib.sha256(piece).hexdigest()
    assert (await caller.get_log(log)).body == log.content(2)


async def test_segment_that_leaves_a_gap_is_told_the_end(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    answer = await caller.put_segment(log, 1, log.segment(1, 2))
    assert answer.outcome == (409, "segment_order")
    assert answer.json["end"] == {"length": 0, "records": 0, "chain": bytes(32).hex(), "next": 0}
    await caller.put_segment(log, 0, log.segment(0, 1))
    answer = await caller.put_segment(log, 2, log.segment(2, 3))
    assert answer.outcome == (409, "segment_order")
    assert answer.json["end"] == log.end(1, next_seq=1)


@pytest.mark.parametrize("broken", ["start", "index", "chain"])
async def test_segment_that_does_not_continue_is_told_the_end(
    caller: Caller, first: Draft, log: Log, broken: str
) -> None:
    await caller.register(first)
    await caller.put_segment(log, 0, log.segment(0, 1))
    twin = Log(log.vault, log.owner, 1, first.digest()).append(3)
    twin.pieces[0] = twin.pieces[0][:-1] + b"\x00"
    pieces = {
        "start": segment(len(log.content(1)) + 1, 1, log.chain(1), log.pieces[1]),
        "index": segment(len(log.content(1)), 2, log.chain(1), log.pieces[2]),
        "chain": twin.segment(1, 2),  # a twin's branch has equal lengths
    }
    answer = await caller.put_segment(log, 1, pieces[broken])
    assert answer.outcome == (409, "segment_order")
    assert answer.json["end"] == log.end(1, next_seq=1)


async def test_one_of_two_racing_segments_wins(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    answers = await asyncio.gather(*(caller.put_segment(log, 0, log.segment(0, 1 + number % 2)) for number in range(8)))
    outcomes = sorted(answer.outcome for answer in answers)
    assert outcomes == [(200, "")] * 3 + [(201, "")] + [(409, "segment_conflict")] * 4


async def test_log_can_be_read_after_the_server_forgot_all_it_knew(
    caller: Caller, first: Draft, log: Log, other_caller: Caller
) -> None:
    await caller.register(first)
    for seq in range(2):
        await caller.put_segment(log, seq, log.segment(seq, seq + 1))
    assert (await other_caller.get_heads(first.vault)).json == (await caller.get_heads(first.vault)).json
    assert (await other_caller.put_segment(log, 2, log.segment(2, 3))).status == 201
    assert (await caller.get_log(log)).body == log.content()
    assert (await caller.get_heads(first.vault)).json["logs"][log.stream.hex()] == log.end(next_seq=3)


# Heads.


async def test_heads_that_are_known_are_not_sent_again(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    heads = await caller.get_heads(first.vault)
    tag = heads.headers["ETag"]
    known = {"If-None-Match": tag}
    same = await caller.get_heads(first.vault, more_headers=known)
    assert (same.status, same.body, same.headers["ETag"]) == (304, b"", tag)
    await caller.put_segment(log, 0, log.segment(0, 1))
    changed = await caller.get_heads(first.vault, more_headers=known)
    assert changed.status == 200
    assert changed.headers["ETag"] != tag


async def test_heads_name_every_log(caller: Caller, first: Draft, second: Draft) -> None:
    await caller.register(first, second)
    expected = {}
    for number in range(5):
        owner = ("alice", "bob")[number % 2]
        log = Log(first.vault, private_key(owner), 1, first.digest(), b"%04d" % number).append(number + 1)
        assert (await caller.put_segment(log, 0, log.segment(0, number + 1), owner)).status == 201
        expected[log.stream.hex()] = log.end(next_seq=1)
    assert (await caller.get_heads(first.vault)).json["logs"] == expected


class TestFullVault:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(max_vault_bytes=10_000)

    async def test_segment_beyond_the_limit_is_refused_and_the_rest_goes_on(
        self, caller: Caller, first: Draft, log: Log
    ) -> None:
        await caller.register(first)
        await caller.put_segment(log, 0, log.segment(0, 2))
        log.append(5)
        answer = await caller.put_segment(log, 1, log.segment(2, 8))
        assert answer.outcome == (507, "limit")
        assert answer.json["limit"] == 10_000
        assert (await caller.put_segment(log, 0, log.segment(0, 2))).status == 200
        assert (await caller.get_log(log)).body == log.content(2)
        assert (await caller.put_segment(log, 1, log.segment(2, 3))).status == 201

    async def test_full_vault_can_still_change_its_keyring(self, caller: Caller, first: Draft, log: Log) -> None:
        await caller.register(first)
        await caller.put_segment(log, 0, log.segment(0, 3))
        previous = first
        for number in range(4):
            previous = previous.next("alice").add(f"device {number}")
            assert (await caller.put_version(previous)).status == 201


class TestFewStreams:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(max_streams=2)

    async def test_stream_beyond_the_limit_is_refused_and_the_others_go_on(self, caller: Caller, first: Draft) -> None:
        await caller.register(first)
        logs = [
            Log(first.vault, private_key("alice"), 1, first.digest(), salt).append(2)
            for salt in (b"1111", b"2222", b"3333")
        ]
        outcomes = [(await caller.put_segment(log, 0, log.segment(0, 1))).outcome for log in logs]
        assert outcomes == [(201, ""), (201, ""), (507, "limit")]
        assert (await caller.put_segment(logs[1], 1, logs[1].segment(1, 2))).status == 201
