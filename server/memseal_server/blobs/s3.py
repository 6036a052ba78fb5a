"""Speak to a bucket by the S3 protocol; what it answers becomes one of a few exceptions."""

import asyncio
import base64
import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal, Protocol, Self, TypeVar, cast

import boto3
from botocore import exceptions
from botocore.config import Config

from memseal_server.blobs import Listed, StoreUnavailable

Checksums = Literal["when_required", "when_supported"]
Result = TypeVar("Result")

# Each has a connection of its own: more than a disk behind a bucket has use for, few enough to wait for.
_THREADS = 16
_CONNECT_SECONDS = 3
# Between two packets, not for a whole body.
_READ_SECONDS = 20
_REGION = "us-east-1"
_AMAZON = ".amazonaws.com"
# A HEAD has no body to say more in; elsewhere 404 can mean that the bucket itself is not there.
_ABSENT_CODES = frozenset({"NoSuchKey", "NotFound", "404"})
# `RequestTimeout` is a body that came too slowly, which S3 calls a client's error.
_AGAIN_CODES = frozenset({"RequestTimeout", "RequestTimeTooSkewed", "SlowDown", "Throttling"})
_AGAIN_STATUS = frozenset({408, 409, 429, 500, 502, 503, 504})


class Again(Exception):
    """The bucket did not answer, or asked to be asked again; a put may have been done all the same."""


class NotThere(Exception):
    """Nothing lies under the key."""


class Taken(Exception):
    """Something lies under the key, and nothing was put."""


class NoRange(Exception):
    """The object ends before the range begins."""


@dataclass(frozen=True)
class Description:
    """What a bucket says of an object: its length in bytes, and the metadata that it was put with."""

    length: int
    metadata: Mapping[str, str]


class _Client(Protocol):
    """What is used of boto3's client, which has no types."""

    def put_object(self, **arguments: Any) -> Mapping[str, Any]: ...
    def get_object(self, **arguments: Any) -> Mapping[str, Any]: ...
    def head_object(self, **arguments: Any) -> Mapping[str, Any]: ...
    def delete_object(self, **arguments: Any) -> Mapping[str, Any]: ...
    def list_objects_v2(self, **arguments: Any) -> Mapping[str, Any]: ...
    def close(self) -> None: ...


class Bucket:
    """The objects of a bucket under a prefix; keys are given and returned without it."""

    def __init__(self, client: _Client, name: str, prefix: str) -> None:
        self._client = client
        self._name = name
        self._prefix = prefix
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="memseal-bucket")
        self._closed = False

    @classmethod
    async def open(cls, name: str, prefix: str, checksums: Checksums = "when_required") -> Self:
        """Prepare to speak to a bucket; endpoint, region and credentials are where all of Amazon's tools look."""
        try:
            client = await asyncio.to_thread(_connect, checksums)
        except (exceptions.BotoCoreError, ValueError) as error:
            raise StoreUnavailable(f"the settings for the bucket cannot be used ({type(error).__name__})") from error
        return cls(client, name, prefix)

    async def put(self, key: str, content: bytes, metadata: Mapping[str, str]) -> None:
        """Put an object unless its key is taken."""

        def put(at: Mapping[str, str]) -> object:
            return self._client.put_object(
                **at, Body=content, Metadata=dict(metadata), IfNoneMatch="*", **_checked(content)
            )

        await self._call(put, key)

    async def get(self, key: str, start: int, end: int | None) -> bytes:
        """Return an object's bytes from `start` up to `end` (None: all that follow)."""
        asked = {"Range": f"bytes={start}-{'' if end is None else end - 1}"} if start or end is not None else {}

        def read(at: Mapping[str, str]) -> bytes:
            answer = self._client.get_object(**at, **asked)
            content: bytes = answer["Body"].read()
            # A server may pass over the range (RFC 9110).
            return content if "ContentRange" in answer else content[start:end]

        return await self._call(read, key)

    async def describe(self, key: str) -> Description:
        """Return what the bucket says of an object."""
        found = await self._call(lambda at: self._client.head_object(**at), key)
        return Description(int(found["ContentLength"]), found.get("Metadata", {}))

    async def delete(self, key: str) -> None:
        """Delete an object, if it is there."""
        await self._call(lambda at: self._client.delete_object(**at), key)

    async def list(self, folder: str, after: str, limit: int) -> list[Listed]:
        """Return at most `limit` objects under a folder, with the least keys greater than `after`."""
        listing: dict[str, Any] = {"Bucket": self._name, "Prefix": self._prefix + folder, "MaxKeys": limit}
        if after:
            listing["StartAfter"] = self._prefix + after
        while True:
            answer = await self._call(lambda _: self._client.list_objects_v2(**listing))
            # Some servers list folders too.
            found = [
                Listed(str(each["Key"])[len(self._prefix) :], int(each["Size"]))
                for each in answer.get("Contents", ())
                if not str(each["Key"]).endswith("/")
            ]
            if found or not answer.get("IsTruncated"):
                return found
            listing["ContinuationToken"] = answer["NextContinuationToken"]

    async def close(self) -> None:
        """Wait for what is being asked, and ask nothing any more."""
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown)
        self._client.close()

    async def _call(self, work: Callable[[Mapping[str, str]], Result], key: str = "") -> Result:
        if self._closed:
            raise StoreUnavailable("the store is closed")
        at = {"Bucket": self._name, "Key": self._prefix + key}
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, at)
        except exceptions.ClientError as error:
            raise _meaning_of(cast("Mapping[str, Any]", error.response)) from error
        except (exceptions.HTTPClientError, exceptions.ConnectionError, exceptions.IncompleteReadError) as error:
            raise Again from error
        except exceptions.BotoCoreError as error:
            raise StoreUnavailable(f"the bucket cannot be asked ({type(error).__name__})") from error


def _connect(checksums: Checksums) -> _Client:
    session = boto3.Session()
    # Elsewhere buckets seldom have a host name each.
    style = "auto" if _AMAZON in _client(session, checksums, "auto").meta.endpoint_url else "path"
    client = _client(session, checksums, style)
    client.meta.events.register("before-send.s3.PutObject", _send_at_once)
    return cast("_Client", client)


def _client(session: Any, checksums: Checksums, style: str) -> Any:
    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        max_pool_connections=_THREADS,
        # Whether a put may be tried again is decided above: the library would take its own object for another's.
        retries={"total_max_attempts": 1},
        # What is "supported" by Amazon breaks writes elsewhere; the signature has the body's SHA-256 in it anyway.
        request_checksum_calculation=checksums,
        response_checksum_validation=checksums,
        s3={"addressing_style": style},
    )
    return session.client("s3", region_name=session.region_name or _REGION, config=config)


def _checked(content: bytes) -> dict[str, str]:
    # Without it SeaweedFS (4.48) keeps an empty object where whoever puts one is gone after the head of its request:
    # under a key that nobody can put any more. Every S3 server knows this header; of checksums that is not so.
    return {"ContentMD5": base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()}


def _send_at_once(request: Any, **_: Any) -> None:
    # Where a server does not say "100 Continue", each put would wait for it for a second.
    request.headers.pop("Expect", None)


def _meaning_of(answer: Mapping[str, Any]) -> Exception:
    status = int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    code = str(answer.get("Error", {}).get("Code", ""))
    if status in _AGAIN_STATUS or code in _AGAIN_CODES:
        return Again()
    if status == HTTPStatus.PRECONDITION_FAILED:
        return Taken()
    if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        return NoRange()
    if status == HTTPStatus.NOT_FOUND and code in _ABSENT_CODES:
        return NotThere()
    # Codes are words like AccessDenied; what stands beside them can have keys in it.
    return StoreUnavailable(f"the bucket refuses ({code or status})")
