"""A real server on this machine, over a store of its own."""

import functools
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import boto3
import botocore.session
import pytest
from aiohttp import ClientSession
from moto import mock_aws

from memseal_server.blobs import BlobStore, bucket
from memseal_server.blobs.bucket import BucketStore
from memseal_server.blobs.sqlite import SqliteStore
from memseal_server.limits import Limits
from memseal_server.listening import listen
from tests.server.building import Draft, Log, first_version, private_key
from tests.server.calling import Caller
from tests.server.seaweed import BUCKET, bucket_environment


@pytest.fixture(scope="session", autouse=True)
def descriptions_are_read_once() -> Iterator[None]:
    """Let all clients share what they read of Amazon's services: each took a tenth of a second for the same files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", functools.cache(botocore.session.create_loader))
        yield


@pytest.fixture
def moto_bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty store in a bucket that this process plays: quick, and not a server."""
    for name, value in bucket_environment("").items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
    with mock_aws():
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield f"s3://{BUCKET}/{secrets.token_hex(8)}"


@pytest.fixture
def store_address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the store is: in a folder; a test that is parametrized with it (indirectly) says `seaweed` or `moto`."""
    kind = getattr(request, "param", "sqlite")
    # A bucket on a busy machine is slow, and not gone: how long a server waits for it is tested elsewhere.
    monkeypatch.setattr(bucket, "_TRIES", 9)
    monkeypatch.setattr(bucket, "_PATIENCE_SECONDS", 120)
    return str(tmp_path / "store") if kind == "sqlite" else str(request.getfixturevalue(f"{kind}_bucket"))


@pytest.fixture
async def store(store_address: str) -> AsyncIterator[BlobStore]:
    opened = await _opened(store_address)
    yield opened
    await opened.close()


def patience_of(address: str) -> float:
    return 50 if "://" in address else 0


async def _opened(address: str) -> BlobStore:
    # Without the probe, which is tested elsewhere, and takes a second or more.
    return await (BucketStore.open(address) if "://" in address else SqliteStore.open(Path(address)))


@pytest.fixture
async def session() -> AsyncIterator[ClientSession]:
    async with ClientSession() as opened:
        yield opened


@pytest.fixture
def limits() -> Limits:
    """The server's limits; a test with others overrides it."""
    return Limits()


@pytest.fixture
async def caller(store: BlobStore, session: ClientSession, limits: Limits, store_address: str) -> AsyncIterator[Caller]:
    listener = await listen(store, limits, host="127.0.0.1", port=0)
    yield Caller(session, listener.origin, patience_of(store_address))
    await listener.close()


@pytest.fixture
async def other_caller(
    caller: Caller, session: ClientSession, limits: Limits, store_address: str
) -> AsyncIterator[Caller]:
    """A client of a second server over the same store, as another process would be."""
    store = await _opened(store_address)
    listener = await listen(store, limits, host="127.0.0.1", port=0)
    yield Caller(session, listener.origin, patience_of(store_address))
    await listener.close()
    await store.close()


@pytest.fixture
def first() -> Draft:
    """Version 1 of Alice's vault."""
    return first_version()


@pytest.fixture
def second(first: Draft) -> Draft:
    """Version 2: Bob is let in by Alice."""
    return first.next("alice").add("bob")


@pytest.fixture
def log(first: Draft) -> Log:
    """Alice's log in the first epoch, with three records."""
    return Log(first.vault, private_key("alice"), 1, first.digest()).append(3)
