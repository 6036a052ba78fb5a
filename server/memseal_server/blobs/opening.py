"""Open the store that an address names: a folder's path, or `s3://bucket/prefix`."""

from pathlib import Path

from memseal_server.blobs import BlobStore, StoreUnavailable
from memseal_server.blobs.probing import probe
from memseal_server.blobs.sqlite import SqliteStore


async def open_store(address: str) -> BlobStore:
    """Open the store at an address; `StoreUnavailable` says why it cannot be used.

    Endpoint, region and credentials of a bucket come from where all of Amazon's tools take them: the environment
    (`AWS_ENDPOINT_URL_S3`, `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`), or the files in `~/.aws`.
    """
    if "://" not in address:
        return await SqliteStore.open(Path(address))
    # Here, for those who have a folder: the library for it takes longer to import than all the rest.
    from memseal_server.blobs.bucket import BucketStore

    store = await BucketStore.open(address)
    try:
        await probe(store)
    except StoreUnavailable:
        await store.close()
        raise
    return store
