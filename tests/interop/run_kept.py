"""The vectors' operations on what stays on a device: traces and kept sessions."""

from memseal.errors import Finding
from memseal.format.derivation import trace_key
from memseal.format.keys import LocalKey, SessionSecret
from memseal.format.session import open_session
from memseal.format.trace import check_trace_preamble, check_trace_size, encode_trace, read_traces
from tests.interop.manifest import octets
from tests.interop.outcome import Given, Outcome, operation, tagged


@operation
def open_traces(content: Given, nonce: Given, local: Given, vault_id: Given, device_id: Given) -> Outcome:
    file, place = octets(content), (octets(vault_id), octets(device_id), octets(nonce))
    check_trace_size(len(file))
    check_trace_preamble(file, *place)
    found = list(read_traces("traces", trace_key(LocalKey(octets(local)), *place), memoryview(file)))
    traces = [tagged(encode_trace(each)) for each in found if not isinstance(each, Finding)]
    return Outcome({"traces": traces}, frozenset(each.code for each in found if isinstance(each, Finding)))


@operation
def open_session_(content: Given, id: Given, secret: Given, vault_id: Given, device_id: Given) -> Outcome:  # noqa: A002
    file_id = octets(vault_id), octets(device_id)
    name, session = open_session(SessionSecret(octets(secret)), file_id, octets(id), octets(content))
    return Outcome({"session_name": name, "session": tagged(session)})
