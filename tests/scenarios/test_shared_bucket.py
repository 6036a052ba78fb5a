"""Several server processes on one real bucket: nothing is shared but the bucket, and any of them may die."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import boto3

from memseal.errors import RemoteUnreachable
from memseal.vault.vault import Vault
from memseal_server.blobs.bucket import BucketStore
from memseal_server.checking import check_store
from tests.scenarios.balancing import balancing
from tests.scenarios.conftest import ServerProcess, StartServer
from tests.scenarios.hostile_world import contents, joined
from tests.server.seaweed import BUCKET
from tests.vault.small_vault import new_folder, open_vault


def begin(folder: Path, server: ServerProcess) -> Vault:
    new_folder(folder / "one")
    vault = open_vault(folder / "one")
    vault.remember("first of one", source="test")
    vault.sync(server.url)
    return vault


def synced(vault: Vault, is_back: Event) -> None:
    """Synchronise, again where the server died under it and is back."""
    try:
        vault.sync()
    except RemoteUnreachable:
        assert is_back.wait(60)
        vault.sync()


def serious_findings(address: str) -> list[str]:
    async def check() -> list[str]:
        store = await BucketStore.open(address)
        found = [finding.code async for finding in check_store(store) if finding.serious]
        await store.close()
        return found

    return asyncio.run(check())


def test_devices_on_two_processes_end_in_the_same_state_though_one_process_is_killed(
    tmp_path: Path, start_server: StartServer, seaweed_bucket: str
) -> None:
    servers = [start_server(seaweed_bucket), start_server(seaweed_bucket)]
    with begin(tmp_path, servers[0]) as one:
        kit = one.emergency_kit
        joined(servers[1], tmp_path / "two", kit).close()
    to_be_killed, is_back = Event(), Event()

    def first_device() -> None:
        with open_vault(tmp_path / "one") as vault:
            for number in range(6):
                vault.remember(f"{number} of one", source="test")
                synced(vault, is_back)
                if number in (1, 4):
                    vault.compact()

    def second_device() -> None:
        with open_vault(tmp_path / "two") as vault:
            vault.sync(servers[1].url)
            for number in range(6):
                vault.remember(f"{number} of two", source="test")
                synced(vault, is_back)
                if number == 2:
                    to_be_killed.set()
                if number == 3:
                    vault.rekey(remote=servers[0].url)

    with ThreadPoolExecutor(2) as threads:
        devices = [threads.submit(device) for device in (first_device, second_device)]
        assert to_be_killed.wait(60)
        servers[1].kill()
        start_server(seaweed_bucket, port=int(servers[1].url.rpartition(":")[2]))
        is_back.set()
        for device in devices:
            device.result()

    with open_vault(tmp_path / "one") as one, open_vault(tmp_path / "two") as two:
        for vault in (one, two, one, two):
            vault.sync()
        assert one.state_digest() == two.state_digest()
        written = ["first of one", *(f"{number} of {name}" for name in ("one", "two") for number in range(6))]
        assert contents(one) == sorted(written)
        assert one.status().findings == two.status().findings == []
        with joined(servers[0], tmp_path / "three", kit) as three:
            three.sync(servers[0].url)
            assert contents(three) == sorted(written)
    assert serious_findings(seaweed_bucket) == []


def test_devices_behind_a_balancer_never_see_an_older_server(
    tmp_path: Path, start_server: StartServer, seaweed_bucket: str
) -> None:
    with balancing() as balancer:
        servers = [start_server(seaweed_bucket, "--url", balancer.url) for _ in range(3)]
        balancer.targets = [server.url for server in servers]
        new_folder(tmp_path / "one")
        with open_vault(tmp_path / "one") as one:
            one.sync(balancer.url)
            server = ServerProcess(balancer.url, servers[0].store, servers[0].log, servers[0].process)
            with joined(server, tmp_path / "two", one.emergency_kit) as two:
                two.sync(balancer.url)
                for number in range(5):
                    for vault in (one, two):
                        vault.remember(f"{number} of {vault.devices()[0].name} {id(vault)}", source="test")
                        assert vault.sync().findings == []
                    if number == 2:
                        one.compact()
                    assert two.sync().findings == one.sync().findings == []
                    assert contents(one) == contents(two)
                servers[1].kill()
                one.remember("last", source="test")
                for vault in (one, two, one):
                    assert vault.sync().findings == []
                assert one.state_digest() == two.state_digest()


def test_bucket_that_was_copied_serves_everything(
    tmp_path: Path, start_server: StartServer, seaweed_bucket: str
) -> None:
    server = start_server(seaweed_bucket)
    with begin(tmp_path, server) as one:
        with joined(server, tmp_path / "two", one.emergency_kit) as two:
            two.sync(server.url)
            two.remember("first of two", source="test")
            two.sync()
            one.sync()
            one.compact()
            two.sync()
            two.remember("after the floor", source="test")
            two.sync()
            two.rekey()
            one.sync()
            kit = two.emergency_kit
        server.kill()

        restored = seaweed_bucket + "-restored"
        copied = copy_objects(seaweed_bucket, restored)
        assert copied > 10
        again = start_server(restored, port=int(server.url.rpartition(":")[2]))
        assert one.sync().findings == []
        assert sorted(contents(one)) == ["after the floor", "first of one", "first of two"]
        with joined(again, tmp_path / "three", kit) as three:
            three.sync(again.url)
            assert contents(three) == contents(one)
            three.remember("written afterwards", source="test")
            three.sync()
        one.sync()
        assert "written afterwards" in contents(one)
        assert one.status().findings == []
    assert serious_findings(restored) == []


def copy_objects(source: str, target: str) -> int:
    """Copy a store's objects as any tool would: their names and bytes, and nothing else."""
    client = boto3.client("s3")
    old, new = (address.removeprefix(f"s3://{BUCKET}/") + "/" for address in (source, target))
    keys = [
        str(each["Key"])
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=old)
        for each in page.get("Contents", ())
    ]
    for key in keys:
        content = client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        client.put_object(Bucket=BUCKET, Key=new + key.removeprefix(old), Body=content)
    client.close()
    return len(keys)
