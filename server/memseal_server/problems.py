"""The error codes a server answers with, as RFC 9457 problem documents (sync-protocol §5)."""

from collections.abc import Mapping
from typing import Any

PROBLEM_TYPE = "urn:memseal:error:"

# code → status and title. The codes are the ones of the table in errors.md.
_CODES: Mapping[str, tuple[int, str]] = {
    "request_invalid": (400, "The request is malformed"),
    "content_digest": (400, "The body is not the one that was signed"),
    "signature_missing": (401, "The request is not signed as it must be"),
    "signature_invalid": (401, "The request's signature does not verify"),
    "signature_replayed": (401, "The request came twice"),
    "key_unknown": (401, "The signing key is not in the vault's keyring"),
    "key_ended": (401, "The signing key was ended"),
    "clock": (401, "The clocks of device and server differ"),
    "key_forbidden": (403, "This key may not do this"),
    "registration_closed": (403, "The server takes no new vaults"),
    "invitation_needed": (403, "The server takes new vaults by invitation"),
    "invitation_refused": (403, "The invitation is not good, or not any more"),
    "not_found": (404, "The object is not there"),
    "pairing_gone": (404, "No device shows this code"),
    "route_unknown": (404, "Nothing is at this path"),
    "vault_unknown": (404, "The server does not have this vault"),
    "method_unknown": (405, "The method is not allowed here"),
    "timeout": (408, "The request took too long"),
    "keyring_conflict": (409, "Another keyring version came first"),
    "segment_conflict": (409, "Other bytes are stored under this number"),
    "segment_order": (409, "The segment does not continue the log"),
    "stream_ended": (409, "The stream's owner ended before this"),
    "epoch_ended": (409, "The log's epoch is over"),
    "floor_unmet": (409, "The floor names what is not here"),
    "object_conflict": (409, "Other bytes are stored under this id"),
    "pairing_taken": (409, "The channel is in use"),
    "pairing_expired": (410, "The code's time is over"),
    "below_floor": (410, "What is asked for lies below the floor"),
    "too_large": (413, "The object is over the size limit"),
    "log_range": (416, "The range is beyond the end of the log or object"),
    "server_identity": (421, "The request was signed for another server"),
    "segment_invalid": (422, "The segment breaks the format"),
    "object_invalid": (422, "The checkpoint or part breaks the format"),
    "keyring_malformed": (422, "The keyring version breaks rule K1"),
    "keyring_chain": (422, "The keyring version breaks rule K2"),
    "keyring_first": (422, "The keyring version breaks rule K3"),
    "keyring_epoch": (422, "The keyring version breaks rule K4"),
    "keyring_devices": (422, "The keyring version breaks rule K5"),
    "keyring_kit": (422, "The keyring version breaks rule K6"),
    "keyring_epoch_needed": (422, "The keyring version breaks rule K7"),
    "keyring_floor": (422, "The keyring version breaks rule K8"),
    "keyring_sealed": (422, "The keyring version breaks rule K9"),
    "keyring_signature": (422, "The keyring version breaks rule K10"),
    "keyring_limit": (422, "The keyring version is over its limits"),
    "rate": (429, "Too many requests"),
    "server_error": (500, "The server failed"),
    "busy": (503, "The server has too much to do"),
    "store_unavailable": (503, "The server's store does not answer"),
    "limit": (507, "The vault's limit is reached"),
}


def status_of(code: str) -> int:
    """Return the HTTP status of a code."""
    return _CODES[code][0]


class Problem(Exception):
    """A request that cannot be answered as asked: `code`, a sentence that says what to do, and members by name."""

    def __init__(self, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail
        self.headers = headers or {}
        self.members = members

    @property
    def status(self) -> int:
        """The HTTP status of this problem's code."""
        return status_of(self.code)

    def document(self) -> dict[str, Any]:
        """Return the problem document's members; no id, key or signature is among them."""
        status, title = _CODES[self.code]
        return {
            "type": PROBLEM_TYPE + self.code,
            "title": title,
            "status": status,
            "detail": self.detail,
            "code": self.code,
            **self.members,
        }
