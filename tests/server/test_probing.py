"""The probe of a start: which stores it lets pass, and what it says of those that it refuses."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import boto3
import pytest

from memseal_server.blobs import AlreadyThere, Stored
from memseal_server.blobs.bucket import BucketStore
from memseal_server.blobs.opening import open_store
from memseal_server.blobs.probing import StoreUnfit, probe
from memseal_server.blobs.sqlite import SqliteStore
from tests.ports import own_port, silent_port
from tests.server.running import end_all, start_process
from tests.server.seaweed import BUCKET, bucket_environment


class BrokenStore(SqliteStore):
    """It has one fault of those that are seen in stores."""

    fault = ""

    async def put_new(self, key: str, content: bytes, digest: bytes | None = None) -> Stored | AlreadyThere:
        if self.fault == "replaces":
            await super().delete([key])
        if self.fault == "looks, then puts" and key.endswith("/race"):
            await super().put_new(key, content, digest)
            return Stored()
        if self.fault == "always taken":
            await super().put_new(key, b"another's")
        return await super().put_new(key, content, digest)

    async def get(self, key: str, start: int = 0, end: int | None = None) -> bytes | None:
        found = await super().get(key, start, end)
        return b"" if self.fault == "gives back nothing" and found is not None else found

    async def delete(self, keys: Sequence[str]) -> None:
        if self.fault != "deletes nothing":
            await super().delete(keys)


@pytest.mark.parametrize("server", ["moto", "seaweed"])
async def test_bucket_with_conditional_writes_is_opened_and_left_clean(
    request: pytest.FixtureRequest, server: str
) -> None:
    store = await open_store(request.getfixturevalue(f"{server}_bucket"))
    assert await store.listed("", "", 9) == []
    assert await store.put_new("a/1", b"x") == Stored()
    await store.close()


async def test_folder_is_opened(tmp_path: Path) -> None:
    store = await open_store(str(tmp_path / "store"))
    await probe(store)
    assert await store.listed("", "", 9) == []
    await store.close()


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("replaces", "replaces objects: it passes over `If-None-Match"),
        ("looks, then puts", "acknowledges several"),
        ("always taken", "says of a new key that it is taken"),
        ("gives back nothing", "gives back other bytes"),
        ("deletes nothing", "keeps objects that were deleted"),
    ],
)
async def test_store_with_a_fault_is_refused_by_name(tmp_path: Path, fault: str, told: str) -> None:
    store = await BrokenStore.open(tmp_path)
    store.fault = fault
    with pytest.raises(StoreUnfit, match=told):
        await probe(store)
    store.fault = ""
    assert fault == "deletes nothing" or await store.listed("", "", 9) == []
    await store.close()


@pytest.fixture
async def nanio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """The address of a store in nanio, a real S3 server that passes over conditional writes."""
    program = shutil.which("nanio", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("nanio is not installed (pip install nanio)")
    port = own_port()
    environment = bucket_environment(f"http://127.0.0.1:{port}")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NANIO_ACCESS_KEY", environment["AWS_ACCESS_KEY_ID"])
    monkeypatch.setenv("NANIO_SECRET_KEY", environment["AWS_SECRET_ACCESS_KEY"])
    process = await asyncio.create_subprocess_exec(
        program,
        "serve",
        *("--host", "127.0.0.1", "--port", str(port), "--data-dir", str(tmp_path / "data")),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    while b"running on" not in (line := (await process.stdout.readline()).lower()):
        assert line, "nanio did not start"
    await asyncio.to_thread(lambda: boto3.client("s3").create_bucket(Bucket=BUCKET))
    yield f"s3://{BUCKET}/store"
    process.kill()
    await process.communicate()


async def test_server_does_not_start_on_a_bucket_that_passes_over_conditional_writes(nanio: str) -> None:
    process = await start_process("--store", nanio, "--listen", "127.0.0.1:0")
    said, errors = await process.communicate()
    assert (process.returncode, said) == (1, b"")
    assert "memseal-server: cannot start: the store replaces objects" in errors.decode()
    assert "use a store that has conditional writes" in errors.decode()
    left = await BucketStore.open(nanio)
    assert await left.listed("", "", 9) == []
    await left.close()


@pytest.mark.parametrize(("setting", "told"), [("AWS_SECRET_ACCESS_KEY", "refuses"), ("AWS_ENDPOINT_URL_S3", "answer")])
async def test_server_does_not_start_where_its_bucket_does_not_let_it_in(
    seaweed_bucket: str, monkeypatch: pytest.MonkeyPatch, setting: str, told: str
) -> None:
    with silent_port() as port:
        monkeypatch.setenv(setting, f"http://127.0.0.1:{port}")
        process = await start_process("--store", seaweed_bucket, "--listen", "127.0.0.1:0")
        said, errors = await process.communicate()
    assert (process.returncode, said) == (1, b"")
    assert "memseal-server: cannot start: the bucket" in errors.decode()
    assert told in errors.decode()
    await end_all()
