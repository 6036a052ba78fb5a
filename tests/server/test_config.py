"""Options: where they stand, which comes first, and what is said of those that cannot be used."""

import os
import re
from pathlib import Path

import pytest

from memseal_server import config
from memseal_server.__main__ import main
from memseal_server.config import Config, ConfigError

MIB = 1024 * 1024


def read(
    flags: dict[str, list[str]] | None = None, environment: dict[str, str] | None = None, **more: object
) -> Config:
    file = more.get("file")
    assert file is None or isinstance(file, Path)
    return config.read(config.settings({"store": ["x"], **(flags or {})}, environment or {}, file))


def refusal(
    flags: dict[str, list[str]] | None = None, environment: dict[str, str] | None = None, **more: object
) -> str:
    with pytest.raises(ConfigError) as caught:
        read(flags, environment, **more)
    return str(caught.value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memseal-server.toml"


def test_flag_comes_before_the_environment_and_that_before_the_file(file: Path) -> None:
    file.write_text('max_waiters = 1\nmax_connections = 2\nlog_level = "error"\n')
    environment = {"MEMSEAL_SERVER_MAX_WAITERS": "3", "MEMSEAL_SERVER_MAX_CONNECTIONS": "4"}
    found = read({"max_waiters": ["5"]}, environment, file=file)
    assert (found.limits.max_waiters, found.limits.max_connections, found.log_level) == (5, 4, "error")
    assert found.limits.registration == "open"


def test_every_option_can_stand_in_the_file(file: Path) -> None:
    file.write_text(
        'store = "s3://bucket/some/prefix"\nlisten = "[::1]:0"\nurl = ["https://a.example", "http://b.example:81/v"]\n'
        'registration = "token"\nmax_vault_bytes = "2 GiB"\n'
        "max_vault_objects = 7\nmax_object_bytes = 1_000\nmax_vault_requests = 0\nmax_waiters = 8\n"
        "max_connections = 9\nrecheck_seconds = 4\nbody_seconds = 1.5\ndrain_seconds = 2\nshutdown_seconds = 3\n"
        'log_level = "debug"\nlog_format = "logfmt"\n'
    )
    found = config.read(config.settings({}, {}, file))
    assert (found.store, found.listen) == ("s3://bucket/some/prefix", ("::1", 0))
    assert found.urls == (("https://a.example", ""), ("http://b.example:81", "/v"))
    limits = found.limits
    assert (limits.registration, limits.max_vault_bytes, limits.max_vault_objects) == ("token", 2048 * MIB, 7)
    assert (limits.max_object_bytes, limits.max_vault_requests, limits.max_waiters) == (1_000, None, 8)
    assert (limits.max_connections, limits.recheck_seconds, limits.body_seconds) == (9, 4, 1.5)
    assert (found.drain_seconds, found.shutdown_seconds, found.log_level, found.log_format) == (2, 3, "debug", "logfmt")


def test_every_option_can_stand_in_the_environment() -> None:
    for option in config.OPTIONS:
        assert option.variable == "MEMSEAL_SERVER_" + option.name.upper()
    found = read({}, {"MEMSEAL_SERVER_URL": "https://a.example https://b.example", "MEMSEAL_SERVER_LOG_LEVEL": ""})
    assert found.urls == (("https://a.example", ""), ("https://b.example", ""))
    assert found.log_level == "info"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("log_level = 'info'\n\nmax_vault_byte = 5\n", "line 3: max_vault_byte is no option: did you mean max_vault_b"),
        ("zzz = 5\n", "line 1: zzz is no option; there are store, listen"),
        ("# a remark\n[server]\nstore = 'x'\n", "line 2: options stand at the top of the file, not in a table"),
        ("store = 'x'\nstore = 'y'\n", "is not TOML"),
        ("max_waiters = true\n", "line 1: max_waiters takes a text or a number"),
        ("max_waiters = [1]\n", "line 1: max_waiters takes a text or a number"),
        ("listen = 'localhost'\n", "listen (FILE, line 1): 'localhost' is not host:port"),
    ],
)
def test_file_that_cannot_be_used_is_refused_with_the_line(file: Path, content: str, said: str) -> None:
    file.write_text(content)
    assert said.replace("FILE", str(file)) in refusal(file=file)


def test_file_that_is_not_there_is_refused(file: Path) -> None:
    assert "cannot be read: No such file" in refusal(file=file)


def test_unknown_variable_is_refused_with_the_nearest_name() -> None:
    said = refusal({}, {"MEMSEAL_SERVER_REGISTRATIONS": "open"})
    assert (
        said
        == "MEMSEAL_SERVER_REGISTRATIONS in the environment is no option: did you mean MEMSEAL_SERVER_REGISTRATION?"
    )
    assert read({}, {"MEMSEAL_PASSPHRASE": "of another program"}).store == "x"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("listen", "127.0.0.1:70000", "listen (--listen): port 70000 is too large: ports go up to 65535"),
        ("listen", "8420", "is not host:port"),
        ("listen", "0.0.0.0:8420", "url: it is needed where the server listens on every address"),
        ("url", "vaults.example", "is not an address like https://host"),
        ("url", "https://host:99999", "ports go up to 65535"),
        ("url", "https://user@host", "an address has no user, query or fragment"),
        ("url", "https://host/a/../b", "the path '/a/../b'"),
        ("store", "s4://bucket", "is neither a folder nor of the form s3://bucket/prefix"),
        ("url", "https://a.example,https://b.example", "is not an address like"),
        ("url", "https://vaults.exämple", "is not an address like"),
        ("store", "~/vaults", "write the folder's whole path"),
        ("store", "s3:/bucket", "is neither a folder nor"),
        ("store", "https://bucket", "is neither a folder nor"),
        ("max_vault_bytes", "10 gigs", "is not a size like 10737418240, 500MB or 10GiB"),
        ("max_waiters", "-1", "is not a number from 0 on"),
        ("body_seconds", "1m", "is not a number of seconds"),
        ("registration", "invite", "is not one of open, token, closed"),
    ],
)
def test_value_that_cannot_be_used_is_refused_with_what_would_do(name: str, text: str, said: str) -> None:
    assert said in refusal({name: [text]})


def test_missing_store_is_refused_with_the_ways_to_name_it() -> None:
    with pytest.raises(ConfigError, match="--store FOLDER, MEMSEAL_SERVER_STORE or in the file"):
        config.read(config.settings({}, {}, None))


def test_folder_of_windows_is_no_scheme() -> None:
    assert read({"store": ["C:\\vaults"]}).store == "C:\\vaults"


def test_object_limit_is_never_above_the_protocols() -> None:
    assert read({"max_object_bytes": ["1GiB"]}).limits.max_object_bytes == 68 * MIB


def test_sample_file_names_every_option_with_its_default() -> None:
    sample = Path(__file__).parent.parent.parent / "server" / "memseal-server.toml"
    config.read(config.settings({}, {}, sample))
    text = sample.read_text(encoding="utf-8")
    for option in config.OPTIONS:
        match = re.search(rf"^(# )?{option.name} = (.+)$", text, re.MULTILINE)
        assert match is not None, option.name
        if match[1]:  # one that is commented out
            assert match[2].strip('"') == option.default


# The program.


def test_check_shows_each_option_with_its_origin_and_makes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    monkeypatch.setenv("MEMSEAL_SERVER_REGISTRATION", "closed")
    file.write_text("max_waiters = 5\n")
    store = tmp_path / "new" / "store"
    assert main(["--store", str(store), "--config", str(file), "--check-config"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["registration", "closed", "MEMSEAL_SERVER_REGISTRATION"] in rows
    assert ["max_waiters", "5", str(file) + ",", "line", "1"] in rows
    assert ["log_level", "info", "the", "default"] in rows
    assert not store.parent.exists()


def test_check_refuses_a_store_that_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], file: Path) -> None:
    file.write_text("")
    with pytest.raises(SystemExit, match="2"):
        main(["--store", str(file / "store"), "--check-config"])
    assert "is a file, where a folder is needed" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="for this user every folder can be written")
def test_check_refuses_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(SystemExit, match="2"):
        main(["--store", str(tmp_path / "store"), "--check-config"])
    assert "cannot be written by this user" in capsys.readouterr().err
