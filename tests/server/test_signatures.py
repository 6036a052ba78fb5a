"""Each check of sync-protocol §3, in its order."""

import base64
import time
from typing import Any

import pytest

from memseal_server import auth
from memseal_server.problems import Problem
from tests.server.building import Draft, Fields, Log, Signing, content_digest, new_nonce, private_key, public
from tests.server.calling import Caller

MISSING = (401, "signature_missing")


def heads_path(draft: Draft) -> str:
    return f"/v1/vaults/{draft.vault.hex()}/heads"


async def send_headers(caller: Caller, draft: Draft, headers: dict[str, str]) -> tuple[int, str]:
    return (await caller.send_as_is("GET", heads_path(draft), headers)).outcome


def signed(caller: Caller, draft: Draft, **signing: Any) -> dict[str, str]:
    key = signing.pop("key", private_key("alice"))
    return Signing(key, caller.origin, "GET", heads_path(draft), **signing).headers()


@pytest.fixture(autouse=True)
async def vault(caller: Caller, first: Draft) -> None:
    await caller.register(first)


# Signature there, components and parameters as they have to be.


async def test_signed_request_is_answered(caller: Caller, first: Draft) -> None:
    assert await send_headers(caller, first, signed(caller, first)) == (200, "")


@pytest.mark.parametrize("name", ["Signature", "Signature-Input", "Memseal-Server"])
async def test_request_without_a_part_of_its_signature_is_refused(caller: Caller, first: Draft, name: str) -> None:
    headers = signed(caller, first)
    del headers[name]
    assert await send_headers(caller, first, headers) == MISSING


@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_unsigned_request_is_refused(caller: Caller, first: Draft, method: str) -> None:
    path = f"/v1/vaults/{first.vault.hex()}/keyring/1"
    assert (await caller.send_as_is(method, path)).outcome == MISSING


@pytest.mark.parametrize("left_out", ["@method", "@path", "@query", "memseal-server"])
async def test_request_that_does_not_cover_a_component_is_refused(caller: Caller, first: Draft, left_out: str) -> None:
    components = [name for name in ("@method", "@path", "@query", "memseal-server") if name != left_out]
    assert await send_headers(caller, first, signed(caller, first, components=components)) == MISSING


async def test_body_whose_digest_is_not_covered_is_refused(caller: Caller, first: Draft, log: Log) -> None:
    answer = await caller.put_segment(
        log, 0, log.segment(0, 1), components=["@method", "@path", "@query", "memseal-server"]
    )
    assert answer.outcome == MISSING


async def test_body_without_a_digest_is_refused(caller: Caller, first: Draft, log: Log) -> None:
    path = f"/v1/vaults/{log.vault.hex()}/logs/{log.stream.hex()}/0"
    headers = Signing(private_key("alice"), caller.origin, "PUT", path).headers()
    assert (await caller.send_as_is("PUT", path, headers, log.segment(0, 1))).outcome == MISSING


@pytest.mark.parametrize(
    "parameters",
    [
        {"created": None},
        {"nonce": None},
        {"keyid": None},
        {"alg": None},
        {"tag": None},
        {"created": "1"},
        {"nonce": base64.b64encode(bytes(15)).decode()},
        {"nonce": base64.b64encode(bytes(17)).decode()},
        {"nonce": "!" * 24},
        {"nonce": ""},
        {"keyid": "alice"},
        {"keyid": public(private_key("alice")).hex().upper()},
        {"keyid": public(private_key("alice")).hex()[:-2]},
        {"alg": "rsa-pss-sha512"},
        {"alg": "hmac-sha256"},
        {"tag": "memseal/2"},
        {"expires": 2_000_000_000},
        {"unknown": "x"},
    ],
    ids=lambda parameters: " ".join(f"{name}={value}" for name, value in parameters.items())[:40],
)
async def test_request_with_other_parameters_is_refused(caller: Caller, first: Draft, parameters: Fields) -> None:
    assert await send_headers(caller, first, signed(caller, first, parameters=parameters)) == MISSING


@pytest.mark.parametrize("name", ["Signature", "Signature-Input"])
@pytest.mark.parametrize("value", ["", "memseal", "memseal=1", "memseal=()", "memseal=:AA:", "=", "memseal=:AA"])
async def test_garbled_signature_header_is_refused(caller: Caller, first: Draft, name: str, value: str) -> None:
    headers = {**signed(caller, first), name: value}
    # A short signature is well formed, and then false.
    expected = (401, "signature_invalid") if (name, value) == ("Signature", "memseal=:AA:") else MISSING
    assert await send_headers(caller, first, headers) == expected


async def test_signature_under_another_label_is_refused(caller: Caller, first: Draft) -> None:
    assert await send_headers(caller, first, signed(caller, first, label="sig1")) == MISSING


async def test_label_that_stands_twice_is_refused(caller: Caller, first: Draft) -> None:
    one, two = signed(caller, first), signed(caller, first, key=private_key("mallory"))
    for name in ("Signature", "Signature-Input"):
        headers = {**one, name: f"{two[name]}, {one[name]}"}
        assert await send_headers(caller, first, headers) == MISSING
    both = {name: f"{two[name]}, {one[name]}" for name in ("Signature", "Signature-Input")}
    assert await send_headers(caller, first, {**one, **both}) == MISSING


async def test_signature_of_a_proxy_beside_it_is_ignored(caller: Caller, first: Draft) -> None:
    one, two = signed(caller, first), signed(caller, first, key=private_key("proxy"), label="proxy")
    both = {name: f"{two[name]}, {one[name]}" for name in ("Signature", "Signature-Input")}
    assert await send_headers(caller, first, {**one, **both}) == (200, "")


async def test_component_with_a_parameter_is_refused(caller: Caller, first: Draft) -> None:
    headers = signed(caller, first)
    headers["Signature-Input"] = headers["Signature-Input"].replace('"memseal-server"', '"memseal-server";sf')
    assert await send_headers(caller, first, headers) == MISSING


async def test_body_where_something_is_only_read_is_refused(caller: Caller, first: Draft) -> None:
    answer = await caller.send("GET", heads_path(first), body=b"x")
    assert answer.outcome == (400, "request_invalid")


# Server identity.


async def test_request_for_another_server_is_refused_and_told_the_identities(caller: Caller, first: Draft) -> None:
    answer = await caller.get_heads(first.vault, identity="https://elsewhere.example")
    assert answer.outcome == (421, "server_identity")
    assert answer.json["identities"] == [caller.origin]


async def test_identity_is_the_signed_one_and_not_the_host(caller: Caller, first: Draft) -> None:
    headers = {**signed(caller, first), "Host": "elsewhere.example"}
    assert await send_headers(caller, first, headers) == (200, "")


# What was signed is what was sent.


async def test_signature_of_another_key_is_refused(caller: Caller, first: Draft) -> None:
    alice = public(private_key("alice")).hex()
    headers = signed(caller, first, key=private_key("mallory"), parameters={"keyid": alice})
    assert await send_headers(caller, first, headers) == (401, "signature_invalid")


async def test_signature_of_another_path_method_or_query_is_refused(caller: Caller, first: Draft) -> None:
    path = heads_path(first)
    others = [
        Signing(private_key("alice"), caller.origin, "GET", path.replace("heads", "keyring/1")),
        Signing(private_key("alice"), caller.origin, "PUT", path),
        Signing(private_key("alice"), caller.origin, "GET", path, "wait=1"),
    ]
    for other in others:
        assert await send_headers(caller, first, other.headers()) == (401, "signature_invalid")


async def test_signature_for_another_identity_is_refused(caller: Caller, first: Draft) -> None:
    headers = Signing(private_key("alice"), "https://elsewhere.example", "GET", heads_path(first)).headers()
    headers["Memseal-Server"] = caller.origin
    assert await send_headers(caller, first, headers) == (401, "signature_invalid")


async def test_any_changed_parameter_breaks_the_signature(caller: Caller, first: Draft) -> None:
    now = int(time.time())
    headers = signed(caller, first, created=now)
    headers["Signature-Input"] = headers["Signature-Input"].replace(f"created={now}", f"created={now + 1}")
    assert await send_headers(caller, first, headers) == (401, "signature_invalid")


async def test_body_that_was_not_signed_is_refused_and_not_stored(caller: Caller, first: Draft, log: Log) -> None:
    content = log.segment(0, 1)
    changed = content[:-1] + bytes([content[-1] ^ 1])
    answer = await caller.put_segment(log, 0, content, sent_body=changed)
    assert answer.outcome == (400, "content_digest")
    assert (await caller.get_log(log)).outcome == (404, "not_found")


async def test_digest_of_another_body_is_not_what_was_signed(caller: Caller, first: Draft, log: Log) -> None:
    changed = log.segment(0, 2)
    answer = await caller.put_segment(
        log, 0, log.segment(0, 1), sent_body=changed, more_headers={"Content-Digest": content_digest(changed)}
    )
    assert answer.outcome == (401, "signature_invalid")


# Time and replay.


@pytest.mark.parametrize("offset", [-400, 400, -(10**9), 10**9])
async def test_clock_that_is_off_is_told_the_time(caller: Caller, first: Draft, offset: int) -> None:
    before = int(time.time())
    answer = await caller.get_heads(first.vault, created=before + offset)
    assert answer.outcome == (401, "clock")
    assert before <= answer.json["now"] <= time.time()


@pytest.mark.parametrize("offset", [-200, 290])
async def test_clock_that_is_a_little_off_will_do(caller: Caller, first: Draft, offset: int) -> None:
    answer = await caller.get_heads(first.vault, created=int(time.time()) + offset)
    assert answer.status == 200


async def test_changing_request_that_comes_twice_is_refused(caller: Caller, first: Draft, log: Log) -> None:
    nonce = new_nonce()
    assert (await caller.put_segment(log, 0, log.segment(0, 1), nonce=nonce)).status == 201
    assert (await caller.put_segment(log, 0, log.segment(0, 1), nonce=nonce)).outcome == (
        401,
        "signature_replayed",
    )


async def test_reading_request_may_come_twice(caller: Caller, first: Draft) -> None:
    headers = signed(caller, first)
    assert await send_headers(caller, first, headers) == (200, "")
    assert await send_headers(caller, first, headers) == (200, "")


# Order: each request breaks one check and all after it.


async def test_checks_come_in_the_order_of_the_protocol(caller: Caller, first: Draft, log: Log) -> None:
    path = f"/v1/vaults/{log.vault.hex()}/logs/{log.stream.hex()}/0"
    content = log.segment(0, 1)

    async def outcome(**broken: Any) -> tuple[int, str]:
        answer = await caller.send(
            "PUT", path, broken.pop("key", "alice"), content, created=1, sent_body=content + b"x", **broken
        )
        return answer.outcome

    forged = {"keyid": public(private_key("alice")).hex()}
    unknown = {"keyid": public(private_key("stranger")).hex()}
    wrong_tag = {**unknown, "tag": "other"}
    elsewhere = {"identity": "http://elsewhere.example"}
    assert await outcome(key="mallory", parameters=wrong_tag, **elsewhere) == MISSING
    assert await outcome(key="mallory", parameters=unknown, **elsewhere) == (421, "server_identity")
    assert await outcome(key="mallory", parameters=unknown) == (401, "key_unknown")
    assert await outcome(key="mallory", parameters=forged) == (401, "signature_invalid")
    assert await outcome() == (400, "content_digest")


async def test_clock_is_checked_before_the_nonce_is_used_up(caller: Caller, first: Draft, log: Log) -> None:
    nonce = new_nonce()
    assert (await caller.put_segment(log, 0, log.segment(0, 1), nonce=nonce, created=1)).outcome == (
        401,
        "clock",
    )
    assert (await caller.put_segment(log, 0, log.segment(0, 1), nonce=nonce)).status == 201


# The memory of nonces, with a clock in hand.


def claim(nonce: bytes, created: int) -> auth.Claim:
    return auth.Claim(bytes(32), created, nonce, "", None, b"", b"")


def code_of(error: pytest.ExceptionInfo[Problem]) -> str:
    return error.value.code


def test_nonce_is_remembered_as_long_as_it_could_be_used() -> None:
    now = 1_000_000.0
    freshness = auth.Freshness(lambda: now)
    made_ahead = claim(bytes(16), 1_000_300)
    freshness.check_clock(made_ahead)
    freshness.check_first_time(made_ahead)
    now += 599
    freshness.check_clock(made_ahead)
    with pytest.raises(Problem) as refused:
        freshness.check_first_time(made_ahead)
    assert code_of(refused) == "signature_replayed"
    now += 2
    with pytest.raises(Problem) as late:
        freshness.check_clock(made_ahead)
    assert code_of(late) == "clock"
    freshness.check_first_time(made_ahead)


@pytest.mark.parametrize("created", [700, 1_300])
def test_clock_may_be_five_minutes_off_and_no_second_more(created: int) -> None:
    freshness = auth.Freshness(lambda: 1_000.0)
    freshness.check_clock(claim(bytes(16), created))
    with pytest.raises(Problem) as refused:
        freshness.check_clock(claim(bytes(16), created + (1 if created > 1_000 else -1)))
    assert code_of(refused) == "clock"


def test_nonce_of_another_key_is_another() -> None:
    freshness = auth.Freshness(lambda: 0.0)
    freshness.check_first_time(auth.Claim(bytes(32), 0, bytes(16), "", None, b"", b""))
    freshness.check_first_time(auth.Claim(b"\x01" * 32, 0, bytes(16), "", None, b"", b""))


def test_memory_of_nonces_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "_MAX_NONCES", 10)
    freshness = auth.Freshness(lambda: 0.0)
    for number in range(11):
        freshness.check_first_time(claim(number.to_bytes(16, "big"), 0))
    freshness.check_first_time(claim((0).to_bytes(16, "big"), 0))
    with pytest.raises(Problem) as refused:
        freshness.check_first_time(claim((10).to_bytes(16, "big"), 0))
    assert code_of(refused) == "signature_replayed"
