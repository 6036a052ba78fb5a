"""Each request of sync-protocol §2 and its answers."""

import asyncio
import hashlib
import itertools

import pytest

from memseal_server.limits import Limits
from tests.server.building import Draft, Log, first_version, opener, private_key, segment
from tests.server.calling import Answer, Caller

UNKNOWN = bytes(16).hex()


@pytest.fixture
def second(first: Draft) -> Draft:
    """Version 2: Bob is let in by Alice."""
    return first.next("alice").add("bob")


def version_path(draft: Draft, number: int | str) -> str:
    return f"/v1/vaults/{draft.vault.hex()}/keyring/{number}"


def log_path(log: Log) -> str:
    return f"/v1/vaults/{log.vault.hex()}/logs/{log.stream.hex()}"


async def get_version(caller: Caller, draft: Draft, number: int | str, query: str = "", key: str = "alice") -> Answer:
    return await caller.send("GET", version_path(draft, number), key, query=query)


# Keyring.


async def test_first_version_registers_the_vault(caller: Caller, first: Draft) -> None:
    assert (await caller.get_heads(first.vault)).outcome == (404, "vault_unknown")
    assert (await caller.put_version(first)).status == 201
    heads = await caller.get_heads(first.vault)
    assert heads.status == 200
    assert heads.headers["Content-Type"].startswith("application/json")
    assert heads.json == {
        "keyring": {"version": 1, "digest": first.digest().hex()},
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
    assert (await get_version(caller, first, 2)).body == second.build()


async def test_version_that_is_not_the_next_is_a_conflict(caller: Caller, first: Draft, second: Draft) -> None:
    await caller.register(first)
    third = second.next("alice")
    assert (await caller.put_version(third)).outcome == (409, "keyring_conflict")
    assert (await get_version(caller, first, 3)).outcome == (404, "not_found")


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
        whole = await get_version(caller, first, number)
        assert (whole.status, whole.body) == (200, draft.build())
        assert whole.headers["Content-Type"] == "application/octet-stream"
        assert (await get_version(caller, first, number, "part=public")).body == draft.stripped()


@pytest.mark.parametrize("number", [0, 3, 9_999_999_999])
async def test_version_that_is_not_there_is_not_found(caller: Caller, first: Draft, number: int) -> None:
    await caller.register(first)
    assert (await get_version(caller, first, number)).outcome == (404, "not_found")


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
        return Limits(registration_open=False)

    async def test_new_vault_is_refused(self, caller: Caller, first: Draft) -> None:
        assert (await caller.put_version(first)).outcome == (403, "registration_closed")
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


# What each key may do.


@pytest.mark.parametrize("key", ["alice", "bob", "epoch 1"])
async def test_device_and_epoch_key_may_read_everything(
    caller: Caller, first: Draft, second: Draft, log: Log, key: str
) -> None:
    await caller.register(first, second)
    await caller.put_segment(log, 0, log.segment(0, 3))
    assert (await caller.get_heads(first.vault, key)).status == 200
    assert (await caller.get_log(log, key=key)).status == 200
    assert (await get_version(caller, first, "latest", key=key)).status == 200


@pytest.mark.parametrize("key", ["kit 1", "recovery 1"])
async def test_kit_and_recovery_key_may_read_the_keyring_only(caller: Caller, first: Draft, log: Log, key: str) -> None:
    first.fields["recovery"] = opener("recovery", 1, 1)
    log = Log(first.vault, private_key("alice"), 1, first.digest()).append()
    await caller.register(first)
    await caller.put_segment(log, 0, log.segment(0, 1))
    assert (await get_version(caller, first, 1, "part=public", key)).status == 200
    assert (await get_version(caller, first, "latest", key=key)).body == first.build()
    assert (await caller.get_heads(first.vault, key)).outcome == (403, "key_forbidden")
    assert (await caller.get_log(log, key=key)).outcome == (403, "key_forbidden")
    assert (await caller.put_segment(log, 0, log.segment(0, 1), key)).outcome == (403, "key_forbidden")
    join = first.next().add("carol")
    assert (await caller.put_version(join, key)).outcome == (403, "key_forbidden")


async def test_epoch_key_may_put_a_join_version_and_nothing_else(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    assert (await caller.put_segment(log, 0, log.segment(0, 1), "epoch 1")).outcome == (403, "key_forbidden")
    by_alice = first.next("alice").add("carol").new_epoch()
    assert (await caller.put_version(by_alice, "epoch 1")).outcome == (403, "key_forbidden")
    join = first.next().add("carol")
    assert (await caller.put_version(join, "epoch 1")).status == 201
    assert (await caller.put_version(join, "epoch 1")).status == 200
    assert (await caller.get_heads(first.vault, "carol")).status == 200


async def test_key_that_the_keyring_does_not_list_is_unknown(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    for key in ("stranger", "epoch 2", "kit 2"):
        assert (await caller.get_heads(first.vault, key)).outcome == (401, "key_unknown")


async def test_keys_of_an_older_version_no_longer_count(caller: Caller, first: Draft, second: Draft) -> None:
    third = second.next("alice").new_epoch().new_kit().end(1)
    await caller.register(first, second, third)
    assert (await caller.get_heads(first.vault, "bob")).outcome == (401, "key_ended")
    for key in ("epoch 1", "kit 1"):
        assert (await get_version(caller, first, "latest", key=key)).outcome == (401, "key_unknown")
    for key in ("epoch 2", "kit 2"):
        assert (await get_version(caller, first, "latest", key=key)).status == 200


async def test_ended_device_may_write_nothing(caller: Caller, first: Draft, second: Draft) -> None:
    await caller.register(first, second)
    log = Log(first.vault, private_key("bob"), 1, first.digest()).append(2)
    assert (await caller.put_segment(log, 0, log.segment(0, 1), "bob")).status == 201
    third = second.next("alice").new_epoch().end(1, [log.stream_end(1)])
    await caller.register(third)
    assert (await caller.put_segment(log, 1, log.segment(1, 2), "bob")).outcome == (401, "key_ended")
    assert (await caller.put_version(third.next("bob"), "bob")).outcome == (401, "key_ended")


# Malformed requests.


@pytest.mark.parametrize(
    "target",
    [
        f"/v1/vaults/{'A' * 32}/heads",
        f"/v1/vaults/{'a' * 31}/heads",
        f"/v1/vaults/{UNKNOWN}/keyring/01",
        f"/v1/vaults/{UNKNOWN}/keyring/+1",
        f"/v1/vaults/{UNKNOWN}/keyring/newest",
        f"/v1/vaults/{UNKNOWN}/keyring/10000000000",
        f"/v1/vaults/{UNKNOWN}/keyring/{'9' * 40}",
        f"/v1/vaults/{UNKNOWN}/keyring/1?part=secret",
        f"/v1/vaults/{UNKNOWN}/logs/{'g' * 32}",
        f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}?from=-1",
        f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}?from=01",
        f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}?from=1&from=2",
        f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}?from={'9' * 40}",
        f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}?limit=0",
        f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}?limit=many",
    ],
)
async def test_malformed_path_or_query_is_refused(caller: Caller, target: str) -> None:
    assert (await caller.send_as_is("GET", target)).outcome == (400, "request_invalid")


@pytest.mark.parametrize("query", ["wait=61", "wait=-1", "wait=1.5", "wait="])
async def test_malformed_wait_is_refused(caller: Caller, first: Draft, query: str) -> None:
    await caller.register(first)
    assert (await caller.get_heads(first.vault, query=query)).outcome == (400, "request_invalid")


@pytest.mark.parametrize("target", ["seq 00", "refill=yes"])
async def test_malformed_segment_request_is_refused(caller: Caller, log: Log, target: str) -> None:
    seq, query = ("00", "") if target == "seq 00" else ("0", target)
    answer = await caller.send("PUT", f"{log_path(log)}/{seq}", body=b"x", query=query)
    assert answer.outcome == (400, "request_invalid")


@pytest.mark.parametrize(
    "target", ["/", "/v1", "/v2/vaults", "/v1/vaults//heads", f"/v1/vaults/{UNKNOWN}", "/favicon.ico"]
)
async def test_unknown_path_is_a_problem_document(caller: Caller, target: str) -> None:
    assert (await caller.send_as_is("GET", target)).outcome == (404, "route_unknown")


@pytest.mark.parametrize(
    ("method", "target", "allow"),
    [
        ("POST", f"/v1/vaults/{UNKNOWN}/heads", "GET"),
        ("DELETE", f"/v1/vaults/{UNKNOWN}/keyring/1", "GET,PUT"),
        ("PUT", f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}", "GET"),
        ("GET", f"/v1/vaults/{UNKNOWN}/logs/{UNKNOWN}/0", "PUT"),
        ("PATCH", "/metrics", "GET"),
    ],
)
async def test_unknown_method_is_a_problem_document(caller: Caller, method: str, target: str, allow: str) -> None:
    answer = await caller.send_as_is(method, target)
    assert answer.outcome == (405, "method_unknown")
    assert answer.headers["Allow"] == allow


# Operation.


async def test_health_and_readiness_need_no_signature(caller: Caller) -> None:
    for target in ("/healthz", "/readyz"):
        answer = await caller.send_as_is("GET", target)
        assert (answer.status, answer.body) == (200, b"ok")


async def test_metrics_count_requests_and_what_is_stored(caller: Caller, first: Draft, log: Log) -> None:
    await caller.register(first)
    content = log.segment(0, 3)
    await caller.put_segment(log, 0, content)
    await caller.send_as_is("GET", "/elsewhere")
    answer = await caller.send_as_is("GET", "/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    lines = answer.body.decode().splitlines()
    segments = 'method="PUT",route="/v1/vaults/{vault}/logs/{stream}/{seq}"'
    assert f'memseal_requests_total{{{segments},status="201"}} 1.0' in lines
    assert 'memseal_requests_total{method="GET",route="unmatched",status="404"} 1.0' in lines
    assert f"memseal_request_seconds_count{{{segments}}} 1.0" in lines
    assert "memseal_vaults 1.0" in lines
    assert "memseal_objects 2.0" in lines
    assert f"memseal_stored_bytes {float(len(first.build()) + len(content))}" in lines
    assert "memseal_waiters 0.0" in lines


async def test_answers_are_not_for_caches_and_name_no_software_version(caller: Caller, first: Draft) -> None:
    await caller.register(first)
    for answer in (await caller.get_heads(first.vault), await caller.send_as_is("GET", "/elsewhere")):
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Server"] == "memseal-server"


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
