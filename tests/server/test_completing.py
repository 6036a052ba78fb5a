"""A version that came stripped, or by half, is completed by whoever brings the whole (sync-protocol §2 and §4)."""

import asyncio
import hashlib
from pathlib import Path

import pytest
from aiohttp import ClientError, ClientSession

from memseal_server.blobs import AlreadyThere, BlobStore, Stored, StoreUnavailable
from memseal_server.blobs.sqlite import SqliteStore
from memseal_server.limits import Limits
from memseal_server.problems import Problem
from memseal_server.vaults import Vaults
from tests.server.building import BODY_SIZE, Draft, private_key, public, record, some_bytes
from tests.server.calling import Caller
from tests.server.running import start, start_dying
from tests.server.seaweed import on_each_store

REFILL = "refill=true"
BOUND_SECONDS = 50
ALICE = public(private_key("alice"))


def open_key(draft: Draft) -> str:
    return f"{draft.vault.hex()}/keyring/{draft.fields['version']:010d}"


def sealed_key(draft: Draft) -> str:
    digest = hashlib.sha256(draft.sealed_part).hexdigest()
    return f"{draft.vault.hex()}/sealed/{draft.fields['version']:010d}-{digest}"


async def put_by_alice(vaults: Vaults, draft: Draft) -> bool:
    return await vaults.put_version(draft.vault, 1, draft.build(), ALICE, refill=False)


class FailingStore(SqliteStore):
    """It fails before the open part of a version."""

    fails = True

    async def put_new(self, key: str, content: bytes, digest: bytes | None = None) -> Stored | AlreadyThere:
        if self.fails and "/keyring/" in key:
            raise StoreUnavailable("down")
        return await super().put_new(key, content, digest)


class SlowStore(SqliteStore):
    """It says when it comes to a version's open part and when that is stored; between the two it waits."""

    reached: asyncio.Event
    go_on: asyncio.Event
    done: asyncio.Event

    async def put_new(self, key: str, content: bytes, digest: bytes | None = None) -> Stored | AlreadyThere:
        if "/keyring/" not in key:
            return await super().put_new(key, content, digest)
        self.reached.set()
        await self.go_on.wait()
        outcome = await super().put_new(key, content, digest)
        self.done.set()
        return outcome


# What came stripped.


@on_each_store
async def test_stripped_version_is_completed_by_another_device(caller: Caller, first: Draft, second: Draft) -> None:
    await caller.register(first)
    assert (await caller.put_version(second.stripped(), "stranger", query=REFILL)).status == 201
    assert (await caller.get_version(second, 2)).body == second.stripped()
    assert (await caller.put_version(second, "bob")).status == 201
    for number in (2, "latest"):
        assert (await caller.get_version(second, number)).body == second.build()
    assert (await caller.get_version(second, 2, "part=public")).body == second.stripped()


@pytest.mark.parametrize("key", ["stranger", "bob", "epoch 1"])
async def test_whoever_may_refill_may_complete_any_version(
    caller: Caller, first: Draft, second: Draft, key: str
) -> None:
    for draft in (first, second):
        assert (await caller.put_version(draft.stripped(), query=REFILL)).status == 201
    for draft in (first, second):
        assert (await caller.put_version(draft, key, query=REFILL)).status == 201
        assert (await caller.get_version(draft, draft.fields["version"])).body == draft.build()


async def test_complete_version_is_not_completed_again(caller: Caller, first: Draft) -> None:
    await caller.put_version(first.stripped(), query=REFILL)
    assert [(await caller.put_version(first)).status for _ in range(3)] == [201, 200, 200]
    # Nor is it stripped again: what came is there.
    assert (await caller.put_version(first.stripped(), "stranger", query=REFILL)).status == 200
    assert (await caller.get_version(first, 1)).body == first.build()


@on_each_store
async def test_heads_say_whether_the_newest_version_is_whole(caller: Caller, first: Draft) -> None:
    await caller.put_version(first.stripped(), query=REFILL)
    assert (await caller.get_heads(first.vault)).json["keyring"]["whole"] is False
    await caller.put_version(first)
    assert (await caller.get_heads(first.vault)).json["keyring"]["whole"] is True


async def test_signatures_in_another_order_do_not_keep_the_sealed_part_out(caller: Caller, first: Draft) -> None:
    turned = Draft(first.vault, first.fields, list(reversed(first.signers)))
    assert turned.stripped() != first.stripped()
    assert (await caller.put_version(turned.stripped(), "stranger", query=REFILL)).status == 201
    assert (await caller.put_version(first)).status == 201
    served = (await caller.get_version(first, 1)).body
    assert served.startswith(turned.stripped())
    assert len(served) == len(first.build())


async def test_key_that_does_not_count_completes_only_with_refill(caller: Caller, first: Draft) -> None:
    await caller.put_version(first.stripped(), query=REFILL)
    assert (await caller.put_version(first, "stranger")).outcome == (401, "key_unknown")
    assert (await caller.put_version(first, "kit 1")).outcome == (403, "key_forbidden")
    assert (await caller.get_version(first, 1)).body == first.stripped()


# What completes nothing.


@pytest.mark.parametrize("stored", ["stripped", "whole"])
async def test_sealed_part_that_was_not_approved_is_refused(caller: Caller, first: Draft, stored: str) -> None:
    await caller.put_version(first if stored == "whole" else first.stripped(), query=REFILL)
    other = first.stripped() + record(2, b"") + record(3, some_bytes("other", BODY_SIZE))
    assert (await caller.put_version(other, query=REFILL)).outcome == (422, "keyring_sealed")
    assert (await caller.put_version(first)).status == (201 if stored == "stripped" else 200)
    assert (await caller.get_version(first, 1)).body == first.build()


async def test_approved_sealed_part_that_is_no_two_records_is_refused(caller: Caller, first: Draft) -> None:
    first.sealed_part = some_bytes("no records", BODY_SIZE)
    assert (await caller.put_version(first.stripped(), query=REFILL)).status == 201
    assert (await caller.put_version(first)).outcome == (422, "keyring_malformed")


async def test_other_version_of_the_number_is_a_conflict(caller: Caller, first: Draft) -> None:
    await caller.put_version(first.stripped(), query=REFILL)
    other = Draft(first.vault, {**first.fields, "note": "another"}, first.signers)
    for content in (other.build(), other.stripped()):
        assert (await caller.put_version(content, query=REFILL)).outcome == (409, "keyring_conflict")
    number_0 = f"/v1/vaults/{first.vault.hex()}/keyring/0"
    assert (await caller.send("PUT", number_0, body=first.build())).outcome == (409, "keyring_conflict")


# Races, crashes, hang-ups.


@on_each_store
async def test_one_of_racing_completions_is_the_first(caller: Caller, other_caller: Caller, first: Draft) -> None:
    await caller.put_version(first.stripped(), query=REFILL)
    callers = [caller, other_caller] * 4
    answers = await asyncio.gather(*(each.put_version(first, query=REFILL) for each in callers))
    assert sorted(answer.status for answer in answers) == [200] * 7 + [201]
    assert (await caller.get_version(first, 1)).body == first.build()


@on_each_store
async def test_whole_version_that_races_its_stripped_form_is_there_in_the_end(
    caller: Caller, other_caller: Caller, first: Draft
) -> None:
    whole, _ = await asyncio.gather(
        caller.put_version(first), other_caller.put_version(first.stripped(), "stranger", query=REFILL)
    )
    assert whole.status == 201
    assert (await caller.get_version(first, 1)).body == first.build()


@on_each_store
async def test_sealed_part_without_its_open_part_is_no_version(
    caller: Caller, store: BlobStore, first: Draft, second: Draft
) -> None:
    await caller.register(first)
    await store.put_new(sealed_key(second), second.sealed_part)
    assert (await caller.get_heads(first.vault)).json["keyring"]["version"] == 1
    assert (await caller.get_version(second, 2)).outcome == (404, "not_found")
    assert (await caller.put_version(second)).status == 201
    assert (await caller.get_version(second, 2)).body == second.build()


async def test_sealed_part_without_its_open_part_does_not_keep_another_version_out(
    caller: Caller, store: BlobStore, first: Draft, second: Draft
) -> None:
    await caller.register(first)
    await store.put_new(sealed_key(second), second.sealed_part)
    other = first.next("alice").add("carol")
    other.sealed_part = record(2, b"other boxes") + record(3, some_bytes("other secrets", BODY_SIZE))
    assert (await caller.put_version(other)).status == 201
    assert (await caller.get_version(other, 2)).body == other.build()
    assert (await caller.put_version(second)).outcome == (409, "keyring_conflict")


@on_each_store
async def test_sealed_part_of_a_version_that_lost_its_number_goes(
    caller: Caller, other_caller: Caller, store: BlobStore, first: Draft
) -> None:
    await caller.register(first)
    drafts = [first.next("alice").add(name) for name in ("bob", "carol", "dave", "eve")]
    for draft in drafts:
        draft.sealed_part = record(2, b"boxes") + record(3, some_bytes(str(draft.digest()), BODY_SIZE))
    answers = await asyncio.gather(
        *(each.put_version(draft) for each, draft in zip([caller, other_caller] * 2, drafts, strict=True))
    )
    assert sorted(answer.status for answer in answers) == [201, 409, 409, 409]
    [winner] = [draft for draft, answer in zip(drafts, answers, strict=True) if answer.status == 201]
    sealed = [key for key, _ in await store.listed(f"{first.vault.hex()}/sealed/", "", 9)]
    assert sealed == [sealed_key(first), sealed_key(winner)]


@on_each_store
async def test_parts_are_stored_under_keys_of_their_own(caller: Caller, store: BlobStore, first: Draft) -> None:
    await caller.register(first)
    assert await store.get(open_key(first)) == first.stripped()
    assert await store.get(sealed_key(first)) == first.sealed_part


async def test_version_is_not_there_before_both_parts_are(tmp_path: Path, first: Draft) -> None:
    failing = await FailingStore.open(tmp_path / "store")
    vaults = Vaults(failing, Limits())
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await put_by_alice(vaults, first)
        with pytest.raises(Problem, match="vault_unknown"):
            await vaults.heads(first.vault)
    failing.fails = False
    assert await put_by_alice(vaults, first)
    assert await vaults.version_bytes(first.vault, 1, stripped=False) == first.build()
    await failing.close()


async def test_hang_up_between_the_parts_leaves_the_version_whole(tmp_path: Path, first: Draft) -> None:
    slow = await SlowStore.open(tmp_path / "store")
    slow.reached, slow.go_on, slow.done = asyncio.Event(), asyncio.Event(), asyncio.Event()
    vaults = Vaults(slow, Limits())
    request = asyncio.create_task(put_by_alice(vaults, first))
    await slow.reached.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    slow.go_on.set()
    async with asyncio.timeout(BOUND_SECONDS):
        await slow.done.wait()
    assert await vaults.version_bytes(first.vault, 1, stripped=False) == first.build()
    await slow.close()


@pytest.mark.parametrize("where", ["put_open_part", "put_sealed_part"])
async def test_kill_while_a_version_is_stored_leaves_it_whole_or_not_there(
    tmp_path: Path, session: ClientSession, first: Draft, second: Draft, where: str
) -> None:
    server = await start(tmp_path / "store")
    await Caller(session, server.origin).register(first)
    await server.kill()
    dying = await start_dying(tmp_path / "store", f"memseal_server.objects:Objects.{where}")
    with pytest.raises((ClientError, ConnectionError)):
        await Caller(session, dying.origin).put_version(second)
    assert await dying.process.wait() == 9
    server = await start(tmp_path / "store")
    caller = Caller(session, server.origin)
    heads = (await caller.get_heads(first.vault)).json["keyring"]
    assert (heads["version"], heads["whole"]) == (1, True)
    assert (await caller.put_version(second)).status == 201
    assert (await caller.get_version(second, "latest")).body == second.build()
    await server.kill()


class TestFullVault:
    @pytest.fixture
    def limits(self, first: Draft) -> Limits:
        # Versions may go 64 MiB beyond twice the vault's limit.
        return Limits(max_vault_bytes=(len(first.stripped()) + 1 - 64 * 1024 * 1024) // 2)

    async def test_sealed_part_needs_room_like_the_rest(self, caller: Caller, first: Draft) -> None:
        assert (await caller.put_version(first.stripped(), query=REFILL)).status == 201
        assert (await caller.put_version(first)).outcome == (507, "limit")
        assert (await caller.put_version(first.stripped(), query=REFILL)).status == 200
