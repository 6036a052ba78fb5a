"""A vault's limits: what is refused when they are reached, and what goes on."""

import pytest

from memseal_server import admission
from memseal_server.limits import Limits
from memseal_server.problems import Problem
from memseal_server.rates import Rates, network_of
from tests.server.building import Draft, Log, manifest, part
from tests.server.calling import Caller

LIMIT = 20_000
FULL = (507, "limit")


@pytest.fixture(autouse=True)
def no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no allowance come back while a test asks on: on a busy machine forty requests take seconds."""
    monkeypatch.setattr(admission, "Rates", lambda per_second: Rates(per_second, clock=lambda: 0.0))


async def fill(caller: Caller, first: Draft, log: Log) -> int:
    """Push records one by one until no more is taken; return how many were."""
    await caller.register(first)
    log.append(20)
    for seq in range(len(log.pieces)):
        answer = await caller.put_segment(log, seq, log.segment(seq, seq + 1))
        if answer.status != 201:
            assert answer.outcome == FULL
            return seq
    raise AssertionError("the vault has no limit")


class TestFullVault:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(max_vault_bytes=LIMIT)

    async def test_reading_goes_on(self, caller: Caller, first: Draft, log: Log) -> None:
        count = await fill(caller, first, log)
        assert (await caller.get_log(log)).body == log.content(count)
        assert (await caller.get_heads(first.vault)).json["logs"] == {log.stream.hex(): log.end(count, next_seq=count)}
        assert (await caller.get_version(first, 1)).body == first.build()

    async def test_it_can_be_compacted_and_then_takes_more(self, caller: Caller, first: Draft, log: Log) -> None:
        count = await fill(caller, first, log)
        await caller.commit(first, "one", ["a", "b"], log.row(count, count))
        assert (await caller.put_segment(log, count, log.segment(count, count + 1))).status == 201

    async def test_a_checkpoint_as_large_as_the_logs_fits_and_no_larger_one(
        self, caller: Caller, first: Draft, log: Log
    ) -> None:
        count = await fill(caller, first, log)
        names = [f"part {number}" for number in range(LIMIT // 1_172 + 1)]
        outcomes = [(await caller.put_part(first.vault, name, part(first.vault, name))).outcome for name in names]
        fitting = outcomes.count((201, ""))
        assert outcomes[fitting:] == [FULL] * (len(names) - fitting)
        assert fitting * 1_172 >= len(log.content(count))

    async def test_a_vault_full_of_parts_can_still_set_a_floor_and_end_a_device(
        self, caller: Caller, first: Draft, log: Log
    ) -> None:
        count = await fill(caller, first, log)
        assert (await caller.put_manifest(first.vault, "one", manifest(first.vault, "one"))).status == 201
        number = 0
        while (await caller.put_part(first.vault, f"{number}", part(first.vault, f"{number}"))).status == 201:
            number += 1
        assert (await caller.put_segment(log, count, log.segment(count, count + 1))).outcome == FULL
        second = first.next("alice").add("bob")
        third = second.next("alice").floor("one", ["0"], [log.row(count, count)])
        await caller.register(second, third)
        last = third.next("bob").end(0, [log.stream_end(count)]).new_epoch().new_kit()
        assert (await caller.put_version(last, "bob")).outcome == (201, "")


class TestManyObjects:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(max_vault_objects=10)

    async def test_object_beyond_the_limit_is_refused_and_a_checkpoint_makes_room(
        self, caller: Caller, first: Draft, log: Log
    ) -> None:
        count = await fill(caller, first, log)
        assert 5 <= count < 10
        refused = await caller.put_segment(log, count, log.segment(count, count + 1))
        assert refused.json["limit"] == 10
        await caller.commit(first, "one", ["a"], log.row(count, count))
        assert (await caller.put_segment(log, count, log.segment(count, count + 1))).status == 201


class TestManyRequests:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(max_vault_requests=1)

    async def test_requests_beyond_the_rate_are_told_when_to_come_again(self, caller: Caller, first: Draft) -> None:
        await caller.register(first)
        answers = [await caller.get_heads(first.vault) for _ in range(40)]
        assert (answers[0].status, answers[-1].outcome) == (200, (429, "rate"))
        assert 1 <= int(answers[-1].headers["Retry-After"]) <= 10

    async def test_other_vaults_and_strangers_have_allowances_of_their_own(self, caller: Caller, first: Draft) -> None:
        await caller.register(first)
        other = first.__class__(**vars(first))  # the same version, brought by a stranger, again and again
        outcomes = [(await caller.put_version(other, "stranger", query="refill=true")).outcome for _ in range(40)]
        assert (outcomes[0], outcomes[-1]) == ((200, ""), (429, "rate"))
        assert (await caller.get_heads(first.vault)).status == 200
        assert (await caller.send_as_is("GET", "/metrics")).status == 200


class TestManyJoiners:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(max_pairing_requests=2)

    async def ask(self, caller: Caller, count: int, key: str = "stranger") -> list[tuple[int, str]]:
        """Ask as joiners do, each time with another channel, as somebody would who looks for one that is open."""
        return [(await caller.send("GET", f"/v1/pairing/{number:05d}/1", key)).outcome for number in range(count)]

    async def test_joiners_of_one_address_beyond_the_rate_are_told_when_to_come_again(self, caller: Caller) -> None:
        outcomes = await self.ask(caller, 40)
        assert (outcomes[0], outcomes[-1]) == ((404, "pairing_gone"), (429, "rate"))
        # With another key it is the same one who asks.
        refused = await caller.send("PUT", "/v1/pairing/04821/1", "another", b"answer")
        assert refused.outcome == (429, "rate")
        assert 1 <= int(refused.headers["Retry-After"]) <= 10

    async def test_devices_of_a_vault_go_on(self, caller: Caller, first: Draft) -> None:
        await caller.register(first)
        await self.ask(caller, 40)
        path = f"/v1/vaults/{first.vault.hex()}/pairing/04821/1"
        assert (await caller.send("PUT", path, "alice", b"opening")).outcome == (201, "")
        assert (await caller.get_heads(first.vault)).status == 200

    async def test_one_pairing_has_an_allowance_whoever_asks(
        self, caller: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        everybody = iter(range(1_000))
        monkeypatch.setattr(admission, "network_of", lambda _: f"10.0.0.{next(everybody)}")
        outcomes = [(await caller.send("GET", "/v1/pairing/04821/1", "stranger")).outcome for _ in range(40)]
        assert (outcomes[0], outcomes[-1]) == ((404, "pairing_gone"), (429, "rate"))
        assert (await caller.send("GET", "/v1/pairing/04822/1", "stranger")).outcome == (404, "pairing_gone")


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        (None, ""),
    ],
)
def test_address_stands_for_whoever_can_have_it(address: str | None, network: str) -> None:
    assert network_of(address) == network


def test_allowance_comes_back_at_its_rate() -> None:
    now = 0.0
    rates = Rates(2, clock=lambda: now)
    for _ in range(20):
        rates.take("a")
    with pytest.raises(Problem, match="rate") as refused:
        rates.take("a")
    assert refused.value.headers == {"Retry-After": "1"}
    rates.take("b")
    now = 0.5
    rates.take("a")
    with pytest.raises(Problem, match="rate"):
        rates.take("a")


def test_payers_who_have_their_whole_allowance_are_forgotten() -> None:
    now = 0.0
    rates = Rates(100, clock=lambda: now)
    for number in range(1_000):
        rates.take(number)
    now = 1.0
    rates.take("another")
    assert list(rates._whole_at) == ["another"]


def test_without_a_limit_nothing_is_counted() -> None:
    rates = Rates(None, clock=lambda: 0.0)
    for _ in range(1_000):
        rates.take("a")
    assert not rates._whole_at
