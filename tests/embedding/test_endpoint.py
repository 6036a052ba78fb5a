"""Asking an endpoint with care."""

import base64
import socket

import pytest

from memseal.embedding import endpoint
from memseal.embedding.endpoint import Endpoint
from memseal.embedding.http import OpenAIEmbedder
from memseal.errors import EmbedderAnswer, EmbedderUnavailable
from tests.embedding.service import Answer, as_json, serving
from tests.ports import silent_port

KEY = "sk-very-secret"


def test_key_goes_in_the_header() -> None:
    with serving(lambda _path, _request: as_json({})) as service:
        Endpoint(service.url, "/x", KEY).post({})
        assert service.authorizations == [f"Bearer {KEY}"]


def test_credentials_of_the_url_go_in_the_header() -> None:
    with serving(lambda _path, _request: as_json({})) as service:
        Endpoint(service.url.replace("//", "//ann:p%40ss@"), "/x").post({})
        assert service.authorizations == ["Basic " + base64.b64encode(b"ann:p@ss").decode()]


@pytest.mark.parametrize("host", ["example.org", "192.168.1.5", "127.0.0.1.example.org", "[2001:db8::1]"])
def test_credentials_never_go_over_plain_http_to_another_machine(host: str) -> None:
    with pytest.raises(ValueError, match="plain HTTP") as keyed:
        Endpoint(f"http://{host}", "/x", KEY)
    with pytest.raises(ValueError, match="plain HTTP") as named:
        Endpoint(f"http://ann:{KEY}@{host}", "/x")
    assert KEY not in str(keyed.value) + str(named.value)


@pytest.mark.parametrize("url", ["http://localhost", "http://127.0.0.9:1", "http://[::1]:1", "https://example.org"])
def test_credentials_go_to_this_machine_or_over_tls(url: str) -> None:
    assert Endpoint(url, "/x", KEY).shown == url + "/x"


@pytest.mark.parametrize("url", ["", "example.org", "ftp://example.org", "file:///etc/passwd", "http://"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="http"):
        Endpoint(url, "/x")


@pytest.mark.parametrize("url", ["https://example.org?key=1", "https://example.org/#x"])
def test_query_and_fragment_are_refused_rather_than_lost(url: str) -> None:
    with pytest.raises(ValueError, match="query"):
        Endpoint(url, "/x")


@pytest.mark.parametrize("key", [KEY + "\n", KEY + "\u00e9", ""])
def test_key_that_no_header_can_carry_is_refused_unquoted(key: str) -> None:
    with pytest.raises(ValueError, match="printable") as refused:
        Endpoint("https://example.org", "/x", key)
    assert KEY not in str(refused.value)


def test_password_with_a_slash_is_not_quoted_as_a_port() -> None:
    with pytest.raises(ValueError, match="port") as refused:
        Endpoint("https://ann:hunter2/x@example.org", "/x")
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_path_of_any_letters_can_be_asked() -> None:
    with serving(lambda _path, _request: as_json({})) as service:
        Endpoint(service.url + "/\u00fc b/%20c", "/x").post({})
        assert service.paths == ["/%C3%BC%20b/%20c/x"]


def test_endpoint_that_never_answers_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_TIMEOUT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(EmbedderUnavailable, match="TimeoutError"):
            Endpoint(f"http://127.0.0.1:{port}", "/x").post({})


def test_host_that_cannot_exist_is_unavailable() -> None:
    with pytest.raises(EmbedderUnavailable):
        Endpoint("http://" + "x" * 64 + ".\u00e9", "/x").post({})


def test_no_credential_is_in_a_repr_or_message() -> None:
    with silent_port() as port:
        gone = f"http://127.0.0.1:{port}"
        url = gone.replace("//", f"//ann:{KEY}@")
        embedder = OpenAIEmbedder("small", url, KEY)
        with pytest.raises(EmbedderUnavailable) as failed:
            embedder.embed(["tea"])
    assert KEY not in repr(embedder) + str(failed.value) + repr(Endpoint(url, "/x", KEY))
    assert gone in str(failed.value)


def test_endpoint_that_is_not_there_is_unavailable() -> None:
    with silent_port() as port, pytest.raises(EmbedderUnavailable):
        Endpoint(f"http://127.0.0.1:{port}", "/x").post({})


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_refusal_is_unavailable_and_keeps_the_answer_to_itself(status: int) -> None:
    with (
        serving(lambda _path, _request: (status, {}, b"you said: tea")) as service,
        pytest.raises(EmbedderUnavailable, match=str(status)) as refused,
    ):
        Endpoint(service.url, "/x").post(["tea"])
    assert "tea" not in str(refused.value)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirect_is_not_followed(status: int) -> None:
    with serving(lambda _path, _request: as_json({})) as elsewhere:
        redirect: Answer = (status, {"Location": elsewhere.url}, b"")
        with (
            serving(lambda _path, _request: redirect) as service,
            pytest.raises(EmbedderAnswer, match="redirects"),
        ):
            Endpoint(service.url, "/x").post({})
        assert elsewhere.paths == []


@pytest.mark.parametrize("body", [b"", b"tea", b"{", b"\xff\xfe", b"[" * 100_000])
def test_answer_that_is_not_json_is_refused_without_its_text(body: bytes) -> None:
    with (
        serving(lambda _path, _request: (200, {}, body)) as service,
        pytest.raises(EmbedderAnswer) as refused,
    ):
        Endpoint(service.url, "/x").post({})
    assert refused.value.__cause__ is None
    assert "tea" not in str(refused.value)


def test_answer_that_is_too_large_is_cut_off() -> None:
    large: Answer = (200, {}, b" " * (32 * 1024 * 1024 + 1))
    with serving(lambda _path, _request: large) as service, pytest.raises(EmbedderAnswer, match="32 MB"):
        Endpoint(service.url, "/x").post({})


def test_answer_that_breaks_off_is_unavailable() -> None:
    short: Answer = (200, {"Content-Length": "100"}, b'{"embeddings": []}')
    with serving(lambda _path, _request: short) as service, pytest.raises(EmbedderUnavailable):
        Endpoint(service.url, "/x").post({})


def test_codes_are_those_of_the_table() -> None:
    assert (EmbedderUnavailable.code, EmbedderAnswer.code) == ("embedder_unavailable", "embedder_answer")
