"""What `verify` and `repair` make of the files of kept sessions, and of those of traces beside them."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from memseal.errors import Finding, SessionLost
from memseal.format.preamble import PREAMBLE_SIZE
from memseal.format.trace import FILE_LIMIT
from memseal.store.disk import OsDisk
from memseal.store.folder import SESSIONS, TRACES, VaultFolder
from memseal.vault.copies.repairing import Repair, repair
from memseal.vault.copies.surveying import RepairPlan
from memseal.vault.vault import Vault
from tests.vault.small_vault import PASSPHRASE, new_folder, open_vault, stretch_of

BOTH = pytest.mark.parametrize("read_data", [True, False])
HEADER, BODY = PREAMBLE_SIZE + 2, PREAMBLE_SIZE + 300
LOST = "only this session is lost"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ada.vault"


@pytest.fixture
def vault(path: Path) -> Iterator[Vault]:
    new_folder(path)
    with open_vault(path) as made:
        made.remember("cashews", source="chat")
        made.search("cashews")
        for name in ("one", "two"):
            keep(made, name)
        yield made


def keep(vault: Vault, name: str) -> None:
    vault.keep_session(name, {"called": name}, vault.session_fence())


def files(path: Path, folder: str = SESSIONS) -> list[Path]:
    return sorted((path / folder).glob("*.mseal"))


def flip(file: Path, position: int) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= 1
    file.write_bytes(content)


def found(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    return [(each.code, each.where) for each in findings]


# ── verify ──────────────────────────────────────────────────────────────────────────────────────────


@BOTH
def test_sound_sessions_and_traces_have_no_findings(vault: Vault, path: Path, read_data: bool) -> None:
    assert (len(files(path)), len(files(path, TRACES))) == (2, 1)
    assert vault.verify(read_data=read_data) == []


@BOTH
@pytest.mark.parametrize(
    ("position", "code"), [(3, "preamble_magic"), (40, "preamble_damaged"), (HEADER, "record_header")]
)
def test_damaged_frame_of_a_session_is_found(
    vault: Vault, path: Path, read_data: bool, position: int, code: str
) -> None:
    file = files(path)[0]
    flip(file, position)
    (finding,) = vault.verify(read_data=read_data)
    assert (finding.code, finding.where) == (code, f"{SESSIONS}/{file.name}")
    assert LOST in finding.detail


@BOTH
def test_session_of_another_size_is_found(vault: Vault, path: Path, read_data: bool) -> None:
    shorter, longer = files(path)
    shorter.write_bytes(shorter.read_bytes()[:-1])
    longer.write_bytes(longer.read_bytes() + b"\0")
    wanted = [("record_torn", f"{SESSIONS}/{shorter.name}"), ("record_length", f"{SESSIONS}/{longer.name}")]
    assert found(vault.verify(read_data=read_data)) == wanted


@BOTH
def test_session_under_the_name_of_another_is_found(vault: Vault, path: Path, read_data: bool) -> None:
    first, second = files(path)
    first.write_bytes(second.read_bytes())
    assert found(vault.verify(read_data=read_data)) == [("stream_mismatch", f"{SESSIONS}/{first.name}")]


def test_damage_within_a_session_is_found_only_where_the_data_is_read(vault: Vault, path: Path) -> None:
    file = files(path)[1]
    flip(file, BODY)
    assert vault.verify(read_data=False) == []
    (finding,) = vault.verify()
    assert (finding.code, finding.where) == ("record_sealed", f"{SESSIONS}/{file.name}")
    assert LOST in finding.detail


@BOTH
def test_session_that_an_erase_ended_and_that_was_put_back_is_named(vault: Vault, path: Path, read_data: bool) -> None:
    copies = {file: file.read_bytes() for file in files(path)}
    vault.erase(vault.remember("soon gone", source="chat").id)
    assert vault.verify(read_data=read_data) == []
    for file, content in copies.items():
        file.write_bytes(content)
    findings = vault.verify(read_data=read_data)
    assert found(findings) == [("session_lost", f"{SESSIONS}/{file.name}") for file in sorted(copies)]
    assert all("the next opening for writing removes it" in each.detail for each in findings)
    vault.close()
    with open_vault(path) as again:
        assert files(path) == []
        assert again.verify(read_data=read_data) == []


@BOTH
def test_files_with_other_names_are_left_alone(vault: Vault, path: Path, read_data: bool) -> None:
    own = files(path)[0].stem
    others = ["notes.txt", "notes.mseal", f"{own.upper()}.mseal", f"{own} (copy).mseal", f"{own[:-2]}.mseal"]
    for name in others:
        (path / SESSIONS / name).write_bytes(b"x")
    assert vault.verify(read_data=read_data) == []
    assert vault.kept_sessions() == ["one", "two"]
    vault.erase(vault.remember("soon gone", source="chat").id)
    assert sorted(each.name for each in (path / SESSIONS).iterdir()) == sorted(others)


def test_copy_under_another_name_does_not_keep_the_secret(vault: Vault, path: Path) -> None:
    """With the last session goes the key of all, whoever has put what else into the folder."""
    file = files(path)[0]
    content = file.read_bytes()
    (path / SESSIONS / "a copy.mseal").write_bytes(content)
    for name in ("one", "two"):
        vault.forget_session(name)
    assert vault._opened.device.marks.sessions is None
    keep(vault, "next")
    file.write_bytes(content)
    assert vault.kept_sessions() == ["next"]


@BOTH
def test_who_only_reads_finds_no_fault_with_what_another_process_keeps_or_erases(path: Path, read_data: bool) -> None:
    new_folder(path)
    with open_vault(path) as writer, open_vault(path, read_only=True) as before:
        memory = writer.remember("soon gone", source="chat")
        keep(writer, "the first of all")
        with open_vault(path, read_only=True) as between:
            writer.erase(memory.id)
            keep(writer, "after the erase")
            assert [each for each in between.verify(read_data=read_data) if each.where.startswith(SESSIONS)] == []
        assert [each for each in before.verify(read_data=read_data) if each.where.startswith(SESSIONS)] == []


@BOTH
def test_damaged_frame_of_traces_is_found(vault: Vault, path: Path, read_data: bool) -> None:
    (file,) = files(path, TRACES)
    flip(file, HEADER)
    (finding,) = vault.verify(read_data=read_data)
    assert (finding.code, finding.where) == ("record_header", f"{TRACES}/{file.name}#0")
    assert "it goes with its age" in finding.detail


@BOTH
def test_traces_of_a_process_that_was_killed_are_no_damage(vault: Vault, path: Path, read_data: bool) -> None:
    (file,) = files(path, TRACES)
    file.write_bytes(file.read_bytes()[:-1])
    assert vault.verify(read_data=read_data) == []


@BOTH
def test_file_that_is_too_large_for_traces_is_named_and_not_read(vault: Vault, path: Path, read_data: bool) -> None:
    (file,) = files(path, TRACES)
    with file.open("r+b") as opened:
        opened.truncate(FILE_LIMIT + 1)  # sparse
    assert found(vault.verify(read_data=read_data)) == [("trace_invalid", f"{TRACES}/{file.name}")]


def test_status_counts_the_sessions_that_are_kept(vault: Vault) -> None:
    assert vault.status().kept_sessions == 2
    vault.erase(vault.remember("soon gone", source="chat").id)
    assert vault.status().kept_sessions == 0


# ── repair ──────────────────────────────────────────────────────────────────────────────────────────


def repaired(path: Path, plans: list[RepairPlan]) -> Repair | None:
    def agree(plan: RepairPlan) -> bool:
        plans.append(plan)
        return True

    return repair(VaultFolder(path, OsDisk()), path.with_name("copy"), stretch_of(PASSPHRASE), agree)


def damage_a_log(path: Path) -> None:
    (log,) = files(path, "logs")
    flip(log, BODY)


def test_damage_of_sessions_alone_needs_no_copy(vault: Vault, path: Path) -> None:
    flip(files(path)[0], BODY)
    vault.close()
    plans = list[RepairPlan]()
    assert repaired(path, plans) is None
    assert plans == []


def test_copy_keeps_sound_sessions_and_the_plan_names_the_others(vault: Vault, path: Path) -> None:
    vault.close()
    damaged, sound = files(path)
    flip(damaged, BODY)
    damage_a_log(path)
    plans = list[RepairPlan]()
    done = repaired(path, plans)
    assert done is not None
    assert done.findings == ()
    fates = {each.name: (each.fate, each.lost) for each in plans[0].files}
    assert fates[f"{SESSIONS}/{damaged.name}"] == ("left out", None)
    assert f"{SESSIONS}/{sound.name}" not in fates
    assert [each.name for each in files(Path(done.path))] == [sound.name]
    with open_vault(Path(done.path)) as copy:
        (name,) = copy.kept_sessions()
        assert copy.kept_session(name) == {"called": name}


def test_copy_keeps_no_session_that_an_erase_ended(vault: Vault, path: Path) -> None:
    copies = {file: file.read_bytes() for file in files(path)}
    vault.erase(vault.remember("soon gone", source="chat").id)
    vault.remember("and on", source="chat")
    vault.close()
    for file, content in copies.items():
        file.write_bytes(content)
    log = max(files(path, "logs"), key=lambda each: each.stat().st_size)
    flip(log, -1)
    plans = list[RepairPlan]()
    done = repaired(path, plans)
    assert done is not None
    assert {each.name for each in plans[0].files} >= {f"{SESSIONS}/{file.name}" for file in copies}
    assert files(Path(done.path)) == []


# ── names ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["", " \t", "x" * 201, "lone \ud800"])
def test_name_that_is_none_is_refused_wherever_it_is_given(vault: Vault, name: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: keep(vault, name),
        lambda: vault.kept_session(name),
        lambda: vault.forget_session(name),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"name of a session|session has a name"):
            call()


def test_session_is_kept_anew_over_a_damaged_one(vault: Vault, path: Path) -> None:
    flip(files(path)[0], BODY)
    (lost,) = {"one", "two"} - set(vault.kept_sessions())
    with pytest.raises(SessionLost, match="forget it, and begin another one"):
        vault.kept_session(lost)
    keep(vault, lost)
    assert vault.kept_sessions() == ["one", "two"]
    assert vault.verify() == []
