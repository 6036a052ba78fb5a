"""A bucket that is emptied, put back to an older state, or another one: said, deleted nowhere, and put back."""

from pathlib import Path

import boto3
import pytest

from memseal.errors import RolledBack
from tests.scenarios.conftest import StartServer
from tests.scenarios.hostile_world import contents, joined
from tests.server.seaweed import BUCKET
from tests.vault.small_vault import new_folder, open_vault

WRITTEN = ["first of one", "first of two", "second of one", "second of two"]


class Objects:
    """What lies in a bucket under a store's prefix, as its operator sees it."""

    def __init__(self, address: str) -> None:
        self._client = boto3.client("s3")
        self._prefix = address.removeprefix(f"s3://{BUCKET}/") + "/"

    def keys(self) -> set[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=self._prefix)
        return {str(each["Key"]) for page in pages for each in page.get("Contents", ())}

    def delete(self, keys: set[str]) -> None:
        for key in keys:
            self._client.delete_object(Bucket=BUCKET, Key=key)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("lost", ["everything", "the last week"])
def test_bucket_that_lost_objects_is_named_and_filled_again_by_the_devices(
    tmp_path: Path, start_server: StartServer, seaweed_bucket: str, *, lost: str, restarts: bool
) -> None:
    server = start_server(seaweed_bucket)
    objects = Objects(seaweed_bucket)
    new_folder(tmp_path / "one")
    with open_vault(tmp_path / "one") as one:
        one.remember("first of one", source="test")
        one.sync(server.url)
        with joined(server, tmp_path / "two", one.emergency_kit) as two:
            two.sync(server.url)
            two.remember("first of two", source="test")
            for vault in (two, one, two):
                vault.sync()
            old = objects.keys() if lost == "the last week" else set[str]()
            one.remember("second of one", source="test")
            one.sync()
            one.rekey()
            two.sync()
            two.remember("second of two", source="test")
            for vault in (two, one):
                vault.sync()

            objects.delete(objects.keys() - old)
            if restarts:
                server.kill()
                server = start_server(seaweed_bucket, port=int(server.url.rpartition(":")[2]))
            for vault in (one, two):
                with pytest.raises(RolledBack):
                    vault.sync()
                assert contents(vault) == WRITTEN
            one.sync(accept_rollback=True)
            for vault in (two, one):
                vault.sync(accept_rollback=True)
                assert contents(vault) == WRITTEN
            assert one.state_digest() == two.state_digest()
            with joined(server, tmp_path / "three", two.emergency_kit) as three:
                three.sync(server.url)
                assert contents(three) == WRITTEN
            for vault in (one, two):
                assert vault.sync().findings == []


def test_server_on_another_bucket_deletes_nothing_on_the_device(
    tmp_path: Path, start_server: StartServer, seaweed_bucket: str
) -> None:
    server = start_server(seaweed_bucket)
    new_folder(tmp_path / "one")
    with open_vault(tmp_path / "one") as one:
        one.remember("first of one", source="test")
        one.sync(server.url)
        server.kill()
        start_server(seaweed_bucket + "-another", port=int(server.url.rpartition(":")[2]))
        with pytest.raises(RolledBack):
            one.sync()
        assert contents(one) == ["first of one"]
        one.remember("afterwards", source="test")
        assert Objects(seaweed_bucket + "-another").keys() == set()
