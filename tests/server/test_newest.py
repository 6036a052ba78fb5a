"""What the heads promise over a store that gives no view of one moment (sync-protocol §2 and §8)."""

from collections.abc import Awaitable, Callable, Sequence

import pytest

from memseal_server.access import Role
from memseal_server.blobs import AlreadyThere, BlobStore, Run, Stored, StoreUnavailable, numbered
from memseal_server.limits import Limits
from memseal_server.problems import Problem
from memseal_server.vaults import Vaults
from tests.server.building import Draft, Log, first_version, private_key, public
from tests.server.calling import Caller
from tests.server.putting import put_segment
from tests.server.seaweed import on_each_store
from tests.server.wrapping import Wrapping

ALICE = public(private_key("alice"))


class WatchedStore(Wrapping):
    """Something happens before it looks at a run, or in place of a put."""

    before_looking: Callable[[Run], Awaitable[object]] | None = None
    dies_at: str | None = None
    looks = 0

    async def last(self, runs: Sequence[Run]) -> list[int | None]:
        found: list[int | None] = []
        for run in runs:  # one after the other, as a bucket may
            self.looks += 1
            if self.before_looking is not None:
                await self.before_looking(run)
            found += await super().last([run])
        return found

    async def put_new(self, key: str, content: bytes, digest: bytes | None = None) -> Stored | AlreadyThere:
        if self.dies_at is not None and self.dies_at in key:
            raise StoreUnavailable("died")
        return await super().put_new(key, content, digest)


@pytest.fixture
async def watched(store: BlobStore) -> WatchedStore:
    return WatchedStore(store)


@pytest.fixture
def logs(first: Draft) -> list[Log]:
    """Three logs of Alice's, as of three epochs."""
    return [Log(first.vault, private_key("alice"), 1, first.digest(), b"%04d" % n).append(30) for n in range(3)]


async def push(vaults: Vaults, log: Log, seq: int) -> bool:
    return await put_segment(vaults, log, seq, log.segment(seq, seq + 1), ALICE)


@pytest.fixture
async def vaults(store: BlobStore, first: Draft, logs: list[Log]) -> Vaults:
    """A process that has stored the first segment of each log."""
    vaults = Vaults(store, Limits())
    await vaults.put_version(first.vault, 1, first.build(), ALICE, refill=False)
    for log in logs:
        await push(vaults, log, 0)
    return vaults


async def lengths(vaults: Vaults, logs: Sequence[Log]) -> list[int]:
    heads = await vaults.heads(logs[0].vault)
    return [heads.logs[log.stream].next if log.stream in heads.logs else 0 for log in logs]


@pytest.mark.parametrize("knows", [False, True])
@pytest.mark.parametrize("position", range(3))
async def test_heads_never_show_a_record_without_what_was_acknowledged_before_it(
    watched: WatchedStore, vaults: Vaults, logs: list[Log], *, knows: bool, position: int
) -> None:
    looking = Vaults(watched, Limits())
    if knows:
        await looking.heads(logs[0].vault)
    last = sorted(logs, key=lambda log: log.stream)[position]
    pending = [log for log in logs if log is not last]

    async def others_push_and_then_this_one(run: Run) -> None:
        if last.stream.hex() in run.folder and pending:
            for log in [*pending, last]:
                pending.clear()
                await push(vaults, log, 1)

    watched.before_looking = others_push_and_then_this_one
    heads = await looking.heads(logs[0].vault)
    shown = {log.stream: heads.logs[log.stream].next for log in logs}
    if shown[last.stream] == 2:
        assert set(shown.values()) == {2}


async def test_heads_are_given_though_pushes_come_all_the_time(
    watched: WatchedStore, vaults: Vaults, logs: list[Log]
) -> None:
    looking = Vaults(watched, Limits())
    seqs = iter(range(1, 30))
    before = 0

    async def another_comes(run: Run) -> None:
        if logs[0].stream.hex() in run.folder and (seq := next(seqs, None)) is not None:
            await push(vaults, logs[0], seq)

    watched.before_looking = another_comes
    for _ in range(3):
        [length, *others] = await lengths(looking, logs)
        assert length > before
        assert others == [1, 1]
        before = length
    assert next(seqs, None) is not None  # it did not wait for the last one


async def test_quiet_vault_costs_one_question_for_each_log_and_two_for_the_rest(
    watched: WatchedStore, vaults: Vaults, logs: list[Log]
) -> None:
    looking = Vaults(watched, Limits())
    await lengths(looking, logs)
    watched.looks = 0
    assert await lengths(looking, logs) == [1, 1, 1]
    assert watched.looks == len(logs) + 2  # names of logs, and the version


async def test_put_costs_three_questions_and_asks_for_no_other_log(
    watched: WatchedStore, vaults: Vaults, logs: list[Log]
) -> None:
    pushing = Vaults(watched, Limits())
    for log in logs:
        await push(pushing, log, 1)
    asked: list[str] = []

    async def note(run: Run) -> None:
        asked.append(run.folder)

    watched.before_looking = note
    await push(pushing, logs[1], 2)
    keyring, segments = f"{logs[1].vault.hex()}/keyring/", f"{logs[1].vault.hex()}/logs/{logs[1].stream.hex()}/"
    assert asked == [keyring, segments, keyring]  # before and after: a floor may have come between


async def test_first_segment_of_a_log_asks_for_no_other_log(
    watched: WatchedStore, vaults: Vaults, logs: list[Log]
) -> None:
    pushing = Vaults(watched, Limits())
    await pushing.heads(logs[0].vault)
    asked: list[str] = []

    async def note(run: Run) -> None:
        asked.append(run.folder)

    watched.before_looking = note
    new = Log(logs[0].vault, private_key("alice"), 1, first_version().digest(), b"new ").append(1)
    assert await push(pushing, new, 0)
    assert not [folder for folder in asked for log in logs if log.stream.hex() in folder]


async def test_refusal_is_of_one_moment_also_where_another_process_was_quicker(
    watched: WatchedStore, vaults: Vaults, logs: list[Log]
) -> None:
    pushing, log = Vaults(watched, Limits()), logs[0]
    await push(pushing, log, 1)
    for seq in (2, 3):
        await push(vaults, log, seq)
    # It knows two segments; there are four.
    with pytest.raises(Problem, match="segment_order") as refused:
        await push(pushing, log, 5)
    assert refused.value.document()["end"] == log.end(4, next_seq=4)
    other = put_segment(pushing, log, 2, log.segment(2, 4), ALICE)
    with pytest.raises(Problem, match="segment_conflict"):
        await other
    assert await push(pushing, log, 3) is False


async def test_device_that_another_process_ended_is_refused_by_one_that_has_not_heard_of_it(
    store: BlobStore, vaults: Vaults, first: Draft, second: Draft, other_caller: Caller
) -> None:
    await vaults.put_version(first.vault, 2, second.build(), ALICE, refill=False)
    log = Log(first.vault, private_key("bob"), 1, first.digest()).append(2)
    assert (await other_caller.put_segment(log, 0, log.segment(0, 1), "bob")).status == 201
    ended = second.next("alice").new_epoch().end(1, [log.stream_end(1)])
    await vaults.put_version(first.vault, 3, ended.build(), ALICE, refill=False)
    assert (await other_caller.put_segment(log, 1, log.segment(1, 2), "bob")).outcome == (401, "key_ended")
    assert (await other_caller.get_heads(first.vault, "bob")).outcome == (401, "key_ended")


@on_each_store
async def test_log_whose_naming_a_crash_cut_off_is_shown_once_its_device_comes_again(
    watched: WatchedStore, store: BlobStore, vaults: Vaults, first: Draft
) -> None:
    log = Log(first.vault, private_key("alice"), 1, first.digest(), b"more").append(3)
    dying = Vaults(watched, Limits())
    watched.dies_at = "/streams/"
    with pytest.raises(StoreUnavailable):
        await push(dying, log, 0)
    fresh = [Vaults(store, Limits()) for _ in range(3)]
    assert await lengths(fresh[0], [log]) == [0]
    # The same put again, or one that was cut otherwise: after either the log is in the heads.
    again = put_segment(fresh[1], log, 0, log.segment(0, 3), ALICE)
    with pytest.raises(Problem, match="segment_conflict"):
        await again
    for each in (fresh[0], fresh[2]):
        assert await lengths(each, [log]) == [1]
    assert await push(fresh[2], log, 0) is False
    assert await push(fresh[0], log, 1)


async def test_device_that_another_process_let_in_may_push_at_once(
    store: BlobStore, vaults: Vaults, first: Draft, second: Draft
) -> None:
    await vaults.heads(first.vault)
    await Vaults(store, Limits()).put_version(first.vault, 2, second.build(), ALICE, refill=False)
    log = Log(first.vault, private_key("bob"), 1, first.digest()).append(1)
    key = public(private_key("bob"))
    assert await put_segment(vaults, log, 0, log.segment(0, 1), key)


async def test_log_is_named_once(store: BlobStore, vaults: Vaults, logs: list[Log]) -> None:
    other = Vaults(store, Limits())
    for seq in range(1, 4):
        for log in logs:
            assert await push((vaults, other)[seq % 2], log, seq)
    names = [key for key, _ in await store.listed(f"{logs[0].vault.hex()}/streams/", "", 9)]
    assert names == [numbered(f"{logs[0].vault.hex()}/streams/", number) for number in range(3)]


@on_each_store
async def test_store_that_was_put_back_under_a_running_server_is_looked_at_anew(
    store: BlobStore, vaults: Vaults, first: Draft, second: Draft, logs: list[Log]
) -> None:
    vault = first.vault
    await vaults.put_version(vault, 2, second.build(), ALICE, refill=False)
    await push(vaults, logs[0], 1)
    assert await lengths(vaults, logs) == [2, 1, 1]
    # To where it was before.
    gone = [numbered(f"{vault.hex()}/keyring/", 2), numbered(f"{vault.hex()}/logs/{logs[0].stream.hex()}/", 1)]
    await store.delete(gone)
    heads = await vaults.heads(vault)
    assert heads.version.number == 1
    assert heads.logs[logs[0].stream].next == 1
    # Nothing is stored above a gap.
    with pytest.raises(Problem, match="segment_order"):
        await push(vaults, logs[0], 2)
    assert await push(vaults, logs[0], 1)


@on_each_store
async def test_segment_is_not_stored_above_one_that_is_gone(
    store: BlobStore, vaults: Vaults, first: Draft, logs: list[Log]
) -> None:
    await store.delete([numbered(f"{first.vault.hex()}/logs/{logs[0].stream.hex()}/", 0)])
    with pytest.raises(Problem, match="segment_order"):
        await push(vaults, logs[0], 1)
    assert await push(vaults, logs[0], 0)
    assert await lengths(vaults, logs) == [1, 1, 1]


async def test_version_that_is_gone_and_forgotten_is_looked_for_anew(
    store: BlobStore, vaults: Vaults, first: Draft, second: Draft
) -> None:
    await vaults.put_version(first.vault, 2, second.build(), ALICE, refill=False)
    await store.delete([numbered(f"{first.vault.hex()}/keyring/", 2)])
    vaults._objects._versions.drop(lambda key: True)  # as those of other vaults would make it
    assert await vaults.admit(first.vault, ALICE) is Role.DEVICE
    assert (await vaults.heads(first.vault)).version.number == 1


async def test_emptied_store_is_no_vault_any_more(store: BlobStore, vaults: Vaults, first: Draft) -> None:
    await vaults.heads(first.vault)
    await store.delete([key for key, _ in await store.listed("", "", 100)])
    with pytest.raises(Problem, match="vault_unknown"):
        await vaults.heads(first.vault)
