"""What each key of a vault may do (sync-protocol §3)."""

import pytest

from memseal_server.blobs import BlobStore
from memseal_server.limits import Limits
from memseal_server.problems import Problem
from memseal_server.vaults import Vaults
from tests.server.building import Draft, Log, opener, private_key, public
from tests.server.calling import Caller
from tests.server.putting import put_segment


@pytest.mark.parametrize("key", ["alice", "bob", "epoch 1"])
async def test_device_and_epoch_key_may_read_everything(
    caller: Caller, first: Draft, second: Draft, log: Log, key: str
) -> None:
    await caller.register(first, second)
    await caller.put_segment(log, 0, log.segment(0, 3))
    assert (await caller.get_heads(first.vault, key)).status == 200
    assert (await caller.get_log(log, key=key)).status == 200
    assert (await caller.get_version(first, "latest", key=key)).status == 200


@pytest.mark.parametrize("key", ["kit 1", "recovery 1"])
async def test_kit_and_recovery_key_may_read_the_keyring_only(caller: Caller, first: Draft, log: Log, key: str) -> None:
    first.fields["recovery"] = opener("recovery", 1, 1)
    log = Log(first.vault, private_key("alice"), 1, first.digest()).append()
    await caller.register(first)
    await caller.put_segment(log, 0, log.segment(0, 1))
    assert (await caller.get_version(first, 1, "part=public", key)).status == 200
    assert (await caller.get_version(first, "latest", key=key)).body == first.build()
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
        assert (await caller.get_version(first, "latest", key=key)).outcome == (401, "key_unknown")
    for key in ("epoch 2", "kit 2"):
        assert (await caller.get_version(first, "latest", key=key)).status == 200


async def test_ended_device_may_write_nothing(caller: Caller, first: Draft, second: Draft) -> None:
    await caller.register(first, second)
    log = Log(first.vault, private_key("bob"), 1, first.digest()).append(2)
    assert (await caller.put_segment(log, 0, log.segment(0, 1), "bob")).status == 201
    third = second.next("alice").new_epoch().end(1, [log.stream_end(1)])
    await caller.register(third)
    assert (await caller.put_segment(log, 1, log.segment(1, 2), "bob")).outcome == (401, "key_ended")
    assert (await caller.put_version(third.next("bob"), "bob")).outcome == (401, "key_ended")


async def test_any_key_may_put_back_a_keyring_that_the_server_lost(caller: Caller, first: Draft, second: Draft) -> None:
    # Bob joined in version 2, and Alice is gone; he holds version 1 without its sealed part.
    third = second.next("bob").new_epoch().end(0)
    refill = {"query": "refill=true"}
    assert (await caller.put_version(first.stripped(), "bob")).outcome == (401, "key_unknown")
    for content in (first.stripped(), second.build(), third.build()):
        assert (await caller.put_version(content, "bob", **refill)).status == 201
        assert (await caller.put_version(content, "stranger", **refill)).status == 200
    assert (await caller.get_heads(first.vault, "bob")).json["keyring"] == {
        "version": 3,
        "digest": third.digest().hex(),
        "whole": True,
    }
    assert (await caller.get_version(first, 1, key="bob")).body == first.stripped()
    assert (await caller.put_version(third.next("bob"), "bob")).status == 201


async def test_version_that_is_put_back_obeys_every_rule(caller: Caller, first: Draft, second: Draft) -> None:
    refill = {"query": "refill=true"}
    assert (await caller.put_version(second, "bob", **refill)).outcome == (404, "vault_unknown")
    await caller.register(first)
    assert (await caller.put_version(second.next("bob"), "bob", **refill)).outcome == (409, "keyring_conflict")
    unsigned = first.next().add("bob").add("carol")
    assert (await caller.put_version(unsigned, "bob", **refill)).outcome == (422, "keyring_signature")
    # Without `refill` a version that a member signed still needs a member to bring it, whole.
    assert (await caller.put_version(second, "stranger")).outcome == (401, "key_unknown")
    assert (await caller.put_version(second.stripped())).outcome == (422, "keyring_sealed")
    assert (await caller.put_version(second, "stranger", **refill)).status == 201


async def test_what_a_key_may_do_is_asked_again_when_its_body_is_here(store: BlobStore, first: Draft, log: Log) -> None:
    # While a body was on its way, the keyring can have changed: the service itself asks, not only the routes.
    vaults = Vaults(store, Limits())
    kit_key, epoch_key = public(private_key("kit 1")), public(private_key("epoch 1"))
    await vaults.put_version(first.vault, 1, first.build(), public(private_key("alice")), refill=False)
    with pytest.raises(Problem, match="key_forbidden"):
        await vaults.put_version(first.vault, 2, first.next().add("carol").build(), kit_key, refill=False)
    for key in (kit_key, epoch_key):
        with pytest.raises(Problem, match="key_forbidden"):
            await put_segment(vaults, log, 0, log.segment(0, 1), key)
    bob = public(private_key("bob"))
    with pytest.raises(Problem, match="key_unknown"):
        await put_segment(vaults, log, 0, log.segment(0, 1), bob, refill=True)
