"""New vaults by invitation: who is let in, how often, and what the store knows of it."""

from pathlib import Path

import pytest

from memseal_server.blobs import BlobStore
from memseal_server.invitations import Invitations
from memseal_server.limits import Limits
from memseal_server.problems import Problem
from tests.server.building import Draft, first_version
from tests.server.calling import Answer, Caller

DAY_SECONDS = 24 * 60 * 60
REFUSED = (403, "invitation_refused")


@pytest.fixture
def limits() -> Limits:
    return Limits(registration="token")


@pytest.fixture
def invitations(store: BlobStore) -> Invitations:
    return Invitations(store)


async def register(caller: Caller, draft: Draft, invitation: str | None, key: str = "alice") -> Answer:
    headers = {} if invitation is None else {"Memseal-Invitation": invitation}
    return await caller.put_version(draft, key, more_headers=headers)


async def test_vault_without_an_invitation_is_not_taken(caller: Caller, first: Draft) -> None:
    assert (await register(caller, first, None)).outcome == (403, "invitation_needed")
    assert (await caller.get_heads(first.vault)).outcome == (404, "vault_unknown")


@pytest.mark.parametrize("invitation", ["x", "A" * 128, "A" * 129, "../offer", "", "Grüße"])
async def test_what_is_no_invitation_is_refused(caller: Caller, first: Draft, invitation: str) -> None:
    assert (await register(caller, first, invitation)).outcome == REFUSED


async def test_invitation_lets_one_vault_in_and_no_other(
    caller: Caller, other_caller: Caller, invitations: Invitations, first: Draft
) -> None:
    invitation = await invitations.make(1, DAY_SECONDS)
    assert (await register(caller, first, invitation)).status == 201
    # Another process over the same store knows that it was used.
    assert (await register(other_caller, first_version("bob"), invitation, "bob")).outcome == REFUSED
    assert (await register(other_caller, first, invitation)).status == 200


async def test_registered_vault_needs_no_invitation(caller: Caller, invitations: Invitations, first: Draft) -> None:
    assert (await register(caller, first, await invitations.make(1, DAY_SECONDS))).status == 201
    assert (await caller.put_version(first.next("alice").add("bob"))).status == 201
    assert (await register(caller, first, None)).status == 200


async def test_invitation_for_two_lets_two_in(caller: Caller, invitations: Invitations, first: Draft) -> None:
    invitation = await invitations.make(2, DAY_SECONDS)
    people = ["alice", "bob", "carol"]
    answers = [await register(caller, first_version(name), invitation, name) for name in people]
    assert [answer.status for answer in answers] == [201, 201, 403]


async def test_refused_version_spends_nothing(caller: Caller, invitations: Invitations, first: Draft) -> None:
    invitation = await invitations.make(1, DAY_SECONDS)
    broken = first_version()
    broken.fields["epoch"] = 2
    assert (await register(caller, broken, invitation)).status == 422
    assert (await register(caller, first_version("bob"), invitation, "bob")).status == 201


async def test_invitation_that_was_spent_before_a_crash_is_good_for_its_vault(
    caller: Caller, invitations: Invitations, first: Draft
) -> None:
    invitation = await invitations.make(1, DAY_SECONDS)
    await invitations.spend(invitation, first.vault)
    assert (await register(caller, first_version("bob"), invitation, "bob")).outcome == REFUSED
    assert (await register(caller, first, invitation)).status == 201


async def test_invitation_expires(store: BlobStore, first: Draft) -> None:
    now = 1_000.0
    invitations = Invitations(store, clock=lambda: now)
    invitation = await invitations.make(1, 60)
    now = 1_060.0
    with pytest.raises(Problem, match="invitation_refused") as refused:
        await invitations.spend(invitation, first.vault)
    assert "expired" in refused.value.detail
    now = 1_059.0
    await invitations.spend(invitation, first.vault)


async def test_store_does_not_know_what_would_let_in(tmp_path: Path, invitations: Invitations) -> None:
    invitation = await invitations.make(1, DAY_SECONDS)
    content = b"".join(path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file())
    assert b"invitations/" in content
    assert invitation.encode() not in content


class TestClosed:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(registration="closed")

    async def test_invitation_does_not_open_what_is_closed(
        self, caller: Caller, invitations: Invitations, first: Draft
    ) -> None:
        answer = await register(caller, first, await invitations.make(1, DAY_SECONDS))
        assert answer.outcome == (403, "registration_closed")
