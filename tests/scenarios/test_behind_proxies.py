"""Behind nginx and Caddy, as server/OPERATING.md sets them up, with TLS of a private authority."""

import os
import re
import shutil
import ssl
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from memseal import Vault, use_ca_file
from memseal.vault.remote.standing import SyncState
from tests.ports import own_port
from tests.scenarios.conftest import StartServer
from tests.transport.authority import make_authority

PAGE = (Path(__file__).parent.parent.parent / "server" / "OPERATING.md").read_text(encoding="utf-8")
PASSPHRASE = "correct horse battery staple"
BOUND_SECONDS = 60

NGINX = """
pid {folder}/nginx.pid;
error_log stderr notice;
daemon off;
{user}
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
    uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
    {config}
}}
"""
CADDY = """
{{
    admin off
    default_sni 127.0.0.1
    auto_https disable_redirects
}}
{config}
"""


def config_of(beginning: str) -> str:
    """The configuration on the page that begins so."""
    [found] = re.findall(rf"```\n({beginning}.*?)```", PAGE, re.DOTALL)
    return str(found)


def replaced(config: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert config.count(old) == 1, old
        config = config.replace(old, new)
    return config


def nginx(folder: Path, chain: Path, server: str, port: int) -> list[str]:
    config = replaced(
        config_of("upstream"),
        ("127.0.0.1:8420", server),
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("/etc/ssl/vaults.example.pem", str(chain)),
        ("/etc/ssl/vaults.example.key", str(chain)),
    )
    user = "user root;" if os.geteuid() == 0 else ""  # else its workers could not enter the test's folder
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, config=config, user=user), encoding="utf-8")
    return ["-c", str(folder / "nginx.conf")]


def caddy(folder: Path, chain: Path, server: str, port: int) -> list[str]:
    config = replaced(
        config_of("vaults.example {"),
        ("127.0.0.1:8420", server),
        ("vaults.example {", f"https://127.0.0.1:{port} {{\n    tls {chain} {chain}"),
    )
    (folder / "Caddyfile").write_text(CADDY.format(config=config), encoding="utf-8")
    return ["run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


Setup = Callable[[Path, Path, str, int], list[str]]
PROXIES: dict[str, tuple[Setup, str]] = {
    "nginx": (nginx, "start worker process "),
    "caddy": (caddy, "serving initial configuration"),
}


@contextmanager
def running(command: list[str], sign: str, folder: Path) -> Generator[None]:
    """Run a proxy; it is there once it has said so."""
    environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8", env=environment) as process:
        assert process.stderr is not None
        said: list[str] = []
        for line in process.stderr:
            said.append(line)
            if sign in line:
                break
        else:
            raise AssertionError("".join(said))
        rest = threading.Thread(target=process.stderr.read, daemon=True)  # else it would stop at a full pipe
        rest.start()
        try:
            yield
        finally:
            process.terminate()
            process.wait(BOUND_SECONDS)
            rest.join(BOUND_SECONDS)


@pytest.fixture(params=PROXIES)
def url(request: pytest.FixtureRequest, tmp_path: Path, start_server: StartServer) -> Iterator[str]:
    """The address of a server behind a proxy."""
    program = shutil.which(request.param, path=os.environ["PATH"] + os.pathsep + "/usr/sbin")
    if program is None:
        pytest.skip(f"{request.param} is not installed")
    setup, sign = PROXIES[request.param]
    authority = make_authority(tmp_path)
    port = own_port()
    address = f"https://127.0.0.1:{port}"
    server = start_server("store", "--url", address).url.removeprefix("http://")
    with ExitStack() as ending:
        ending.callback(use_ca_file, None)
        use_ca_file(authority.ca_file)
        arguments = setup(tmp_path, tmp_path / "ca-server.pem", server, port)
        ending.enter_context(running([program, *arguments], sign, tmp_path))
        yield address


def status_of(url: str, ca_file: Path) -> int:
    context = ssl.create_default_context(cafile=str(ca_file))
    try:
        with urllib.request.urlopen(url, timeout=BOUND_SECONDS, context=context) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_devices_synchronise_and_hear_of_each_other_through_the_proxy(tmp_path: Path, url: str) -> None:
    heard = threading.Event()

    def listen(state: SyncState) -> None:
        if state.report is not None and state.report.new_memories:
            heard.set()

    with Vault.create(tmp_path / "laptop", PASSPHRASE, embedder=None) as one:
        large = one.remember("x" * 1_000_000, source="me")
        one.sync(url)
        with Vault.join(tmp_path / "phone", one.emergency_kit, PASSPHRASE, url, embedder=None) as two:
            assert two.get(large.id) == large
            with two.sync_in_background(url, on_state=listen) as live:
                assert live.wait_until_synced(BOUND_SECONDS)
                heard.clear()
                memory = one.remember("The boiler code is 4711", source="me")
                one.sync(url)
                assert heard.wait(BOUND_SECONDS)
                assert two.get(memory.id) == memory
        assert one.status().findings == []


def test_what_is_for_the_operator_alone_is_not_passed_on(tmp_path: Path, url: str) -> None:
    found = {path: status_of(f"{url}/{path}", tmp_path / "ca.pem") for path in ("healthz", "readyz", "metrics")}
    assert found == {"healthz": 200, "readyz": 200, "metrics": 404}
