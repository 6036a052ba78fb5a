"""The routes of sync-protocol §2 in one table: the server registers them from it, and openapi.json describes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_WAIT_SECONDS = 60
BINARY = "application/octet-stream"
JSON = "application/json"
TEXT = "text/plain"

_VAULT = "/v1/vaults/{vault}"

# What any request can be answered.
_ALWAYS = ("request_invalid", "server_error", "store_unavailable", "busy")
_SIGNED = (
    *("signature_missing", "server_identity", "key_unknown", "key_ended", "signature_invalid", "clock"),
    *("key_forbidden", "vault_unknown", "rate"),
)
_CHANGING = (*_SIGNED, "content_digest", "signature_replayed", "timeout", "too_large", "limit")
_KEYRING = (
    *("keyring_conflict", "keyring_malformed", "keyring_chain", "keyring_first", "keyring_epoch", "keyring_devices"),
    *("keyring_kit", "keyring_epoch_needed", "keyring_floor", "keyring_sealed", "keyring_signature", "keyring_limit"),
    *("registration_closed", "invitation_needed", "invitation_refused", "floor_unmet"),
)


@dataclass(frozen=True)
class Parameter:
    """A value of a query: its name, its JSON schema, and what it says."""

    name: str
    schema: Mapping[str, Any]
    meaning: str


@dataclass(frozen=True)
class Route:
    """One method on one path; `name` is its handler's and its operation's, `codes` what it may refuse with.

    `answers` are the statuses of success with their media types, None where there is no body.
    """

    method: str
    path: str
    name: str
    summary: str
    answers: Mapping[int, str | None]
    codes: tuple[str, ...] = ()
    query: tuple[Parameter, ...] = ()
    has_body: bool = False
    signed: bool = True
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def all_codes(self) -> frozenset[str]:
        """Every code that it may refuse with, those of all signed requests and of all requests too."""
        more = (_CHANGING if self.has_body else _SIGNED) if self.signed else ()
        return frozenset((*self.codes, *more, *_ALWAYS))


_OFFSET: Mapping[str, Any] = {"type": "integer", "minimum": 0, "maximum": 10**19 - 1}
_REFILL = Parameter(
    "refill", {"type": "string", "enum": ["true", "false"]}, "put back what a server once had, also for others"
)
_STORED: Mapping[int, str | None] = {201: None, 200: None}
_WAIT = Parameter(
    "wait",
    {"type": "integer", "minimum": 0, "maximum": MAX_WAIT_SECONDS},
    "seconds that the answer is held while there is no such message",
)
_PAIRING = ("pairing_gone", "pairing_expired", "pairing_taken")
_RANGE = {"Range": "one byte range; others are passed over"}
_SEGMENT_CODES = (
    *("segment_conflict", "segment_order", "segment_invalid", "below_floor", "stream_ended", "epoch_ended"),
    "not_found",
)

ROUTES: tuple[Route, ...] = (
    Route(
        *("GET", _VAULT + "/heads", "get_heads", "The newest keyring version, the floor, and the end of every log"),
        {200: JSON, 304: None},
        query=(
            Parameter(
                "wait",
                {"type": "integer", "minimum": 0, "maximum": MAX_WAIT_SECONDS},
                "seconds that the answer is held while nothing changes from `If-None-Match`",
            ),
        ),
        headers={"If-None-Match": "the tag of the heads that are known"},
    ),
    Route(
        *("GET", _VAULT + "/keyring/{number}", "get_version", "A keyring version"),
        {200: BINARY},
        codes=("not_found",),
        query=(Parameter("part", {"type": "string", "enum": ["public"]}, "leave out the sealed part"),),
    ),
    Route(
        *("PUT", _VAULT + "/keyring/{number}", "put_version", "Add a keyring version; version 1 registers the vault"),
        _STORED,
        codes=_KEYRING,
        query=(_REFILL,),
        has_body=True,
        headers={"Memseal-Invitation": "lets a new vault in where the operator hands out invitations"},
    ),
    Route(
        *("GET", _VAULT + "/logs/{stream}", "get_log", "The bytes of a log from an offset on"),
        {200: BINARY},
        codes=("not_found", "log_range", "below_floor"),
        query=(
            Parameter("from", _OFFSET, "the offset"),
            Parameter("limit", {**_OFFSET, "minimum": 1}, "the most bytes that are wanted; never more than 8 MiB"),
        ),
    ),
    Route(
        *("PUT", _VAULT + "/logs/{stream}/{seq}", "put_segment", "Add a segment to a log"),
        _STORED,
        codes=_SEGMENT_CODES,
        query=(_REFILL,),
        has_body=True,
    ),
    Route(
        *("GET", _VAULT + "/checkpoints/{id}", "get_manifest", "A checkpoint's manifest"),
        {200: BINARY, 206: BINARY},
        codes=("not_found", "log_range"),
        headers=_RANGE,
    ),
    Route(
        *("PUT", _VAULT + "/checkpoints/{id}", "put_manifest", "Add a checkpoint's manifest"),
        _STORED,
        codes=("object_conflict", "object_invalid"),
        has_body=True,
    ),
    Route(
        *("GET", _VAULT + "/parts/{id}", "get_part", "A part of a checkpoint"),
        {200: BINARY, 206: BINARY},
        codes=("not_found", "log_range"),
        headers=_RANGE,
    ),
    Route(
        *("PUT", _VAULT + "/parts/{id}", "put_part", "Add a part of a checkpoint"),
        _STORED,
        codes=("object_conflict", "object_invalid"),
        has_body=True,
    ),
    Route(
        *("PUT", _VAULT + "/pairing/{channel}/{number}", "put_shown", "Open a pairing, or say more in it: the shower"),
        _STORED,
        codes=_PAIRING,
        has_body=True,
    ),
    Route(
        *("GET", _VAULT + "/pairing/{channel}/{number}", "get_answered", "What the joiner of a pairing said"),
        {200: BINARY},
        codes=(*_PAIRING, "not_found"),
        query=(_WAIT,),
    ),
    Route(
        *("PUT", "/v1/pairing/{channel}/{number}", "put_answer", "Answer in a pairing: the joiner, with any key"),
        _STORED,
        codes=_PAIRING,
        has_body=True,
    ),
    Route(
        *("GET", "/v1/pairing/{channel}/{number}", "get_shown", "What the shower of a pairing said"),
        {200: BINARY},
        codes=(*_PAIRING, "not_found"),
        query=(_WAIT,),
    ),
    Route("GET", "/healthz", "get_health", "Whether the process lives", {200: TEXT}, signed=False),
    Route("GET", "/readyz", "get_ready", "Whether requests can be answered", {200: TEXT}, signed=False),
    Route("GET", "/metrics", "get_metrics", "Figures for Prometheus", {200: TEXT}, signed=False),
    Route("GET", "/openapi.json", "get_openapi", "This description", {200: JSON}, signed=False),
)
