"""Certificates of a private authority, and proxies: with real ones."""

import base64
import logging
import traceback
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from memseal import MemsealError, Vault, use_ca_file
from memseal.errors import RemoteUnknown, RemoteUnreachable
from memseal.transport.network import Proxy, proxy_for
from tests.scenarios.conftest import StartServer
from tests.transport.authority import Authority, make_authority
from tests.transport.conftest import opened
from tests.transport.relays import ConnectProxy, relay, serving

_VARIABLES = "http_proxy https_proxy all_proxy no_proxy MEMSEAL_CA_FILE SSL_CERT_FILE SSL_CERT_DIR NETRC".split()


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin without proxies and authorities of whoever runs the tests."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    yield
    use_ca_file(None)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def https(world: Path, start_server: StartServer, authority: Authority) -> Iterator[str]:
    """The address of a server behind TLS, with a certificate of the private authority."""
    ports = list[int]()
    with serving(lambda reader, writer: relay(reader, writer, ports[0]), authority.server) as port:
        url = f"https://127.0.0.1:{port}"
        ports.append(int(start_server("store", "--url", url).url.rpartition(":")[2]))
        yield url


@pytest.fixture
def vault(world: Path) -> Iterator[Vault]:
    with opened(world / "one") as vault:
        yield vault


def test_a_private_authority_is_trusted_where_it_is_named(vault: Vault, https: str, authority: Authority) -> None:
    use_ca_file(authority.ca_file)
    vault.remember("over TLS", source="me")
    vault.sync(https)
    assert vault.status().unsent_bytes == 0


@pytest.mark.parametrize("variable", ["MEMSEAL_CA_FILE", "SSL_CERT_FILE"])
def test_a_private_authority_is_trusted_where_the_environment_names_it(
    vault: Vault, https: str, authority: Authority, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, str(authority.ca_file))
    vault.sync(https)
    assert vault.status().server == https


def test_another_authority_is_refused_with_what_to_do(vault: Vault, https: str, tmp_path: Path) -> None:
    with pytest.raises(RemoteUnreachable, match="MEMSEAL_CA_FILE"):
        vault.sync(https)
    use_ca_file(make_authority(tmp_path, "other").ca_file)
    with pytest.raises(RemoteUnreachable, match="MEMSEAL_CA_FILE"):
        vault.sync(https)


def test_a_certificate_of_another_host_is_refused(vault: Vault, https: str, authority: Authority) -> None:
    use_ca_file(authority.ca_file)
    with pytest.raises(RemoteUnreachable, match="MEMSEAL_CA_FILE"):
        vault.sync(https.replace("127.0.0.1", "localhost"))


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_a_file_of_authorities_that_is_none_is_named(
    vault: Vault, https: str, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "authorities.pem"
    if content is not None:
        path.write_bytes(content)
    use_ca_file(path)
    with pytest.raises(RemoteUnknown, match=r"authorities\.pem"):
        vault.sync(https)


def test_everything_goes_through_the_proxy_that_the_environment_names(
    vault: Vault, https: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_ca_file(authority.ca_file)
    password = base64.b64encode(b"me@work:s3cret/word").decode()
    proxy = ConnectProxy(f"Basic {password}")
    with serving(proxy) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me%40work:s3cret%2Fword@127.0.0.1:{port}")
        vault.remember("through a tunnel", source="me")
        vault.sync(https)
        with vault.sync_in_background() as live:
            assert live.wait_until_synced(60)
    assert {seen["target"] for seen in proxy.seen} == {https.removeprefix("https://")}
    assert vault.status().unsent_bytes == 0


def test_a_server_without_tls_is_reached_through_a_proxy_too(
    world: Path, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, url = ConnectProxy(f"Basic {base64.b64encode(b'me:s3cret').decode()}"), start_server().url
    with serving(proxy) as port, opened(world / "one") as vault:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:s3cret@127.0.0.1:{port}")
        vault.remember("through a proxy", source="me")
        assert vault.sync(url).pushed_bytes > 0
    assert proxy.seen
    assert all(seen["target"].startswith(f"{url}/v1/vaults/") for seen in proxy.seen)


def test_no_proxy_is_honoured(vault: Vault, https: str, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    use_ca_file(authority.ca_file)
    proxy = ConnectProxy()
    with serving(proxy) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        for exempt in ("example.org,127.0.0.1", https.removeprefix("https://"), "*"):
            monkeypatch.setenv("NO_PROXY", exempt)
            vault.sync(https)
    assert proxy.seen == []


def test_a_proxys_password_is_in_no_error_and_no_log(
    vault: Vault,
    https: str,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    use_ca_file(authority.ca_file)
    with serving(ConnectProxy("Basic other")) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:s3cret-word@127.0.0.1:{port}")
        refused = error_of(vault, https)
    assert "name and password" in str(refused)
    away = error_of(vault, https)
    assert "proxy" in str(away)
    said = caplog.text + "".join(
        "".join(traceback.format_exception(error)) + repr(error) + repr(error.__cause__) + repr(error.__context__)
        for error in (refused, away)
    )
    for secret in ("s3cret-word", base64.b64encode(b"me:s3cret-word").decode()):
        assert secret not in said


def error_of(vault: Vault, url: str) -> MemsealError:
    with pytest.raises(RemoteUnreachable) as raised:
        vault.sync(url)
    return raised.value


def test_a_proxy_of_another_kind_is_refused_by_name(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("socks5://127.0.0.1:1", "http://", "http://127.0.0.1:port"):
        monkeypatch.setenv("HTTP_PROXY", address)
        with pytest.raises(RemoteUnknown, match="proxy"):
            vault.sync("http://127.0.0.1:1")


def test_a_proxy_may_be_named_without_its_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "proxy.example.org:3128")
    found = proxy_for("https://example.org")
    assert found is not None
    assert found.address == "http://proxy.example.org:3128"
    assert "word" not in repr(Proxy("http://proxy", "name", "password"))


def test_what_netrc_has_for_the_server_is_not_sent_to_it(
    world: Path, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = world / "netrc"
    secrets.write_text("machine 127.0.0.1 login me password s3cret\n", encoding="utf-8")
    secrets.chmod(0o600)
    monkeypatch.setenv("NETRC", str(secrets))
    ports, seen = list[int](), bytearray()
    with serving(lambda reader, writer: relay(reader, writer, ports[0], seen)) as port:
        url = f"http://127.0.0.1:{port}"
        ports.append(int(start_server("store", "--url", url).url.rpartition(":")[2]))
        with opened(world / "one") as vault:
            vault.sync(url)
    assert b"Memseal-Server" in seen
    assert b"Authorization" not in seen


def test_the_command_line_takes_the_authority_as_an_option(
    world: Path, https: str, authority: Authority, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from memseal.surfaces.cli import main
    from tests.transport.conftest import PASSPHRASE

    monkeypatch.setenv("MEMSEAL_PASSPHRASE", PASSPHRASE)
    monkeypatch.setenv("MEMSEAL_MODEL", "none")
    sync = partial(main, ["sync", https, "--vault", str(world / "one")])
    assert sync() == 7
    assert main(["--ca-file", str(authority.ca_file), "sync", https, "--vault", str(world / "one")]) == 0
    capsys.readouterr()
