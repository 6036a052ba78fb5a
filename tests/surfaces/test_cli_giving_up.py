"""Erase, quarantine and dismiss on the command line: receipts without a memory's text, and nothing unasked."""

from pathlib import Path

import pytest

from memseal.surfaces.cli import exits
from tests.surfaces.conftest import Command

SECRET = "the word is xylophone"


@pytest.fixture
def secret_id(cli: Command) -> str:
    identity: str = cli("remember", SECRET, "--json").document["memory"]["id"]
    cli("remember", "kettle")
    return identity


@pytest.fixture
def damaged(cli: Command, vault: Path) -> str:
    """The name of a record that cannot be read."""
    cli("remember", "one")
    cli("remember", "two")
    [log] = (vault / "logs").glob("*.mseal")
    content = bytearray(log.read_bytes())
    content[200] ^= 1
    log.write_bytes(content)
    return f"logs/{log.name}#0"


# ── erase ───────────────────────────────────────────────────────────────────────────────────────────


def test_erased_memory_is_gone_and_the_receipt_says_where(cli: Command, secret_id: str) -> None:
    run = cli("erase", secret_id, "--yes", "--reason", "asked for", "--json")
    assert run.code == exits.DONE
    receipt = run.document["erasure"]
    assert set(receipt) == {"id", "erased", "survivors", "at", "reason", "places", "done"}
    assert (receipt["erased"], receipt["reason"], receipt["done"]) == ([secret_id], "asked for", True)
    assert {place["progress"] for place in receipt["places"]} == {"gone"}
    assert {"state", "logs", "cache", "checkpoint"} <= {place["name"] for place in receipt["places"]}
    assert [memory["content"] for memory in cli("list", "--state", "all", "--json").document["memories"]] == ["kettle"]


def test_receipt_is_a_table_without_the_memory(cli: Command, secret_id: str) -> None:
    run = cli("erase", secret_id, "--yes")
    assert "xylophone" not in run.out + run.err
    assert secret_id in run.out
    rows = [line.split() for line in run.out.splitlines()]
    assert ["state", "gone", "removed", "from", "memory"] in rows


def test_erasures_lists_the_receipts(cli: Command, secret_id: str) -> None:
    assert cli("erasures").out == "Nothing was erased.\n"
    receipt = cli("erase", secret_id, "--yes", "--json").document["erasure"]
    assert cli("erasures", "--json").document == {"erasures": [receipt]}
    assert "xylophone" not in cli("erasures").out


def test_nothing_is_erased_without_yes_where_nobody_can_be_asked(cli: Command, secret_id: str) -> None:
    run = cli("erase", secret_id)
    assert run.code == exits.USAGE
    assert "--yes" in run.err
    assert cli("list", "--json").document["total"] == 2


def test_erase_of_an_unknown_memory_asks_nobody(cli: Command, secret_id: str) -> None:
    run = cli("erase", "0" * 32, "--json")
    assert (run.code, run.error["code"]) == (3, "memory_unknown")


def test_erase_of_what_is_no_id_is_wrong_usage(cli: Command) -> None:
    assert cli("erase", "kettle", "--yes", MEMSEAL_PASSPHRASE=None).code == exits.USAGE


# ── quarantine ──────────────────────────────────────────────────────────────────────────────────────


def test_empty_quarantine_says_so(cli: Command) -> None:
    assert cli("quarantine").out == "The quarantine is empty.\n"
    assert cli("quarantine", "--json").document == {"records": []}


def test_quarantine_names_the_record_and_why(cli: Command, damaged: str) -> None:
    [record] = cli("quarantine", "--json").document["records"]
    assert set(record) == {"record", "code", "detail", "dismissed"}
    assert (record["record"], record["code"], record["dismissed"]) == (damaged, "record_sealed", False)
    assert damaged in cli("quarantine").out


def test_dismissed_record_holds_no_checkpoint_back(cli: Command, damaged: str) -> None:
    assert cli("compact", "--thorough").code == exits.NOT_ALL
    run = cli("dismiss", damaged, "--yes", "--json")
    assert (run.code, run.document) == (exits.DONE, {"dismissed": damaged})
    assert cli("quarantine", "--json").document["records"][0]["dismissed"] is True
    assert cli("compact", "--json").document["compacted"]["held_back"] == []
    assert cli("list", "--json").document["total"] == 1


def test_record_that_is_not_in_the_quarantine_is_wrong_usage(cli: Command, damaged: str) -> None:
    run = cli("dismiss", damaged + "1", "--yes")
    assert run.code == exits.USAGE
    assert "memseal quarantine" in run.err


def test_nothing_is_dismissed_without_yes_where_nobody_can_be_asked(cli: Command, damaged: str) -> None:
    assert cli("dismiss", damaged).code == exits.USAGE
    assert cli("quarantine", "--json").document["records"][0]["dismissed"] is False
