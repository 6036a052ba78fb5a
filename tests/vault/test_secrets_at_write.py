"""Secret-shaped text is refused or redacted at write; older items are found by an audit, without their values."""

from collections.abc import Callable

import pytest

from memseal.errors import SecretInMemory
from memseal.privacy.rules.rule import apply
from memseal.vault.vault import Vault
from memseal.vault.writes import masking

KEY = "AKIA" + "IOSFODNN7EXAMPLE"
SURE = [
    f"deploy with {KEY}",
    "token " + "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "use " + "sk-" + "a1b2c3d4e5f6g7h8",
    "slack " + "xoxb-" + "1234567890",
    "the db is postgres://ann:hunter22@db.example.com/x",
    "curl -u ann:hunter22 https://example.com",
    "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
    "create user ann identified by 'hunter22'",
    "Authorization: Bearer " + "abc123def456ghi7890",
    "see https://example.com/x?token=abcd1234",
    "https://example.com/x?sig=ab12",
    "my seed phrase is " + " ".join(["apple", "river", "stone", "cloud"] * 3),
    "eyJhbGciOi" + "JIUzI1NiJ9.eyJzdWIi.abcdef",
]
FINE = [
    "the gate code is 4711",
    "the wifi password of the guests is sunflower",
    "tea at five",
    "see https://example.com",
]


@pytest.mark.parametrize("content", SURE)
def test_credential_is_refused_at_every_door_and_nothing_is_written(vault: Vault, content: str) -> None:
    old = vault.remember("tea at five", source="me")
    writes: tuple[Callable[[], object], ...] = (
        lambda: vault.remember(content, source="me"),
        lambda: vault.remember("x", source=content),
        lambda: vault.remember("x", source="me", author=content),
        lambda: vault.remember(content, source="me", trusted=False),
        lambda: vault.supersede(old.id, content, source="me"),
    )
    for write in writes:
        with pytest.raises(SecretInMemory, match="redact") as refused:
            write()
        assert content not in str(refused.value)
        assert refused.value.__cause__ is None
    with pytest.raises(SecretInMemory, match="item 1"):
        vault.remember_many([{"content": "fine", "source": "me"}, {"content": content, "source": "me"}])
    assert (vault.count(state="all"), vault.proposals()) == (1, [])


@pytest.mark.parametrize("content", FINE)
def test_what_people_keep_a_memory_for_is_stored_as_it_is(vault: Vault, content: str) -> None:
    assert vault.remember(content, source="me").content == content


@pytest.mark.parametrize("text", [*SURE, *FINE])
def test_quick_look_before_the_rules_misses_none_of_them(text: str) -> None:
    if list(apply(masking._RULES, text)):
        assert masking._HINT.search(text)
        assert masking.MASK in masking.covered(text)


def test_caller_may_redact_or_keep(vault: Vault) -> None:
    assert vault.remember(f"deploy with {KEY} now", source="me", secrets="redact").content == "deploy with [secret] now"
    kept = vault.remember(f"deploy with {KEY}", source=KEY, author=KEY, secrets="keep")
    assert (kept.content, kept.source, kept.author) == (f"deploy with {KEY}", KEY, KEY)
    with pytest.raises(ValueError, match="secrets is one of"):
        vault.remember("tea", source="me", secrets="maybe")  # type: ignore[arg-type]


def test_audit_finds_older_items_and_shows_no_value(vault: Vault) -> None:
    vault.remember("tea at five", source="me")
    possible = vault.remember("the door code is 4711", source="me")
    sure = vault.remember(f"{KEY} and {KEY}", source="me", secrets="keep")
    held = vault.remember(f"it was {KEY}", source="web", secrets="keep", trusted=False)
    found = vault.audit()
    assert [each.id for each in found] == [sure.id, held.id, possible.id]
    assert (found[0].sure, found[0].possible) == ({"provider key": 2}, {})
    assert (found[2].sure, found[2].possible) == ({}, {"code of a few digits": 1})
    assert KEY not in repr(found)


def test_import_brings_what_is_there_and_the_audit_finds_it(vault: Vault) -> None:
    vault.adopt([{"content": f"old note: {KEY}", "source": "archive", "origin": "1"}])
    assert len(vault.audit()) == 1
