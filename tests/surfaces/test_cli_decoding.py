"""Bytes that are not UTF-8 are refused, and the refusal does not carry them."""

import io

import pytest

from memseal.surfaces.cli import asking, exits, options

SECRET = b"canary-passphrase-\xff"


def test_passphrase_that_is_not_utf8_is_refused_without_being_carried() -> None:
    with pytest.raises(exits.WrongUsage) as caught:
        asking._checked(SECRET, "the file descriptor")
    assert caught.value.__context__ is None
    assert "canary" not in str(caught.value)


def test_standard_input_that_is_not_utf8_is_refused_without_being_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SECRET), encoding="utf-8"))
    with pytest.raises(exits.WrongUsage) as caught:
        options.content_of("-")
    assert caught.value.__context__ is None


def test_utf8_comes_through_without_its_last_line_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("żółw\r\n".encode()), encoding="utf-8", newline=""))
    assert options.content_of("-") == "żółw"
    assert asking._checked("żółw".encode(), "it") == "żółw"
