"""The viewer opens vaults and bundles in a real browser, from a file, and asks the network for nothing."""

import json
import os
import shutil
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memseal import Vault
from tests.interop.typescript import PASSPHRASE, ROOT, VIEWER, built_package, checked, program

PAGE = ROOT / VIEWER / "index.html"
BUNDLE_PASSPHRASE = "of the bundle"
HOSTILE = '<img src=x onerror="window.pwned = 1"><script>window.pwned = 2</script>'
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the browser shows of a vault and its bundle; MEMSEAL_SCREENSHOTS names a folder for pictures of it."""
    folder = tmp_path_factory.mktemp("viewer")
    vault, bundle = folder / "my.vault", folder / "all.mseal"
    make_vault(vault, bundle)
    story = {
        "chromium": browser(),
        "page": PAGE.as_uri(),
        "vault": str(vault),
        "passphrase": PASSPHRASE,
        "bundle": str(bundle),
        "bundle_passphrase": BUNDLE_PASSPHRASE,
        "query": "crane spar",
        "screenshots": os.environ.get("MEMSEAL_SCREENSHOTS"),
    }
    return json.loads(checked([program("node"), "viewer-story.mjs"], built_package(), json.dumps(story)))


def browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium is installed")
    return found


def make_vault(path: Path, bundle: Path) -> None:
    with closing(Vault.create(path, PASSPHRASE, embedder=None)) as vault:
        dentist = vault.remember("The dentist is on Tuesday", source="test", captured_at=day(1))
        tags = ["birds", "<b>bold</b>"]
        vault.remember("Sparrows nest under the crane", source="test", captured_at=day(2), tags=tags)
        vault.remember("A crane landed on the spare tyre", source="test", captured_at=day(3))
        keys = vault.remember("The keys are under the pot", source="test", captured_at=day(4))
        vault.remember(HOSTILE, source="test", captured_at=day(5))
        vault.supersede(dentist.id, "The dentist is on Friday", source="test", captured_at=day(6))
        vault.retract(keys.id, reason="stolen")
        vault.export_bundle(bundle, BUNDLE_PASSPHRASE)


def day(number: int) -> datetime:
    return datetime(2024, 1, number, tzinfo=UTC)


NEWEST_FIRST = [
    "The dentist is on Friday",
    HOSTILE,
    "A crane landed on the spare tyre",
    "Sparrows nest under the crane",
]


def test_the_page_is_what_its_sources_make() -> None:
    checked([program("npm"), "run", "--silent", "viewer:check"], built_package())


def test_its_sources_have_no_type_errors() -> None:
    checked([program("npx"), "--no-install", "tsc", "-p", "tsconfig.viewer.json"], built_package())


def test_a_chosen_folder_shows_what_is_active_newest_first(seen: Any) -> None:
    assert seen["chosen"]["all"] == NEWEST_FIRST
    assert seen["chosen"]["count"] == "6 of 6 memories"


def test_a_search_finds_words_and_beginnings_and_marks_them(seen: Any) -> None:
    assert sorted(seen["chosen"]["found"]) == ["A crane landed on the spare tyre", "Sparrows nest under the crane"]
    assert sorted(seen["chosen"]["marked"]) == ["Sparrows", "crane", "crane", "spare"]


def test_superseded_and_retracted_memories_are_marked(seen: Any) -> None:
    shown = {item["text"]: (item["state"], item["notes"]) for item in seen["chosen"]["everything"]}
    assert shown["The dentist is on Tuesday"] == ("memory superseded", "Superseded")
    assert shown["The keys are under the pot"] == ("memory retracted", "Retracted: stolen")
    assert shown["A crane landed on the spare tyre"] == ("memory active", None)


def test_hostile_text_is_only_text(seen: Any) -> None:
    assert seen["chosen"]["isHostileInert"]
    assert seen["chosen"]["tags"] == ["#<b>bold</b>", "#birds"]


def test_a_dropped_folder_opens_as_a_chosen_one(seen: Any) -> None:
    assert seen["dropped"]["all"] == NEWEST_FIRST


def test_a_bundle_opens_with_its_own_passphrase(seen: Any) -> None:
    assert seen["bundle"]["refused"] == "The passphrase does not open this file. Try again."
    assert seen["bundle"]["all"] == NEWEST_FIRST


def test_a_wrong_passphrase_is_said(seen: Any) -> None:
    assert seen["wrong passphrase"]["said"] == "The passphrase does not open this vault. Try again."


def test_progress_is_shown_while_the_passphrase_is_tried(seen: Any) -> None:
    assert seen["wrong passphrase"]["isProgressShown"]


def test_a_file_of_something_else_is_said(seen: Any) -> None:
    assert seen["other"] == "This is no file of memseal, or it was cut short."


def test_a_damaged_record_is_shown_as_a_finding(seen: Any) -> None:
    assert seen["damaged"]["finding"].startswith("record_sealed: logs/")
    assert seen["damaged"]["all"] == NEWEST_FIRST[:-1]


def test_no_request_leaves_the_page(seen: Any) -> None:
    assert [url for url in seen["requests"] if not url.startswith("blob:null/")] == [PAGE.as_uri()]
    assert seen["errors"] == []


def test_the_page_may_not_open_a_connection_if_it_wanted_to(seen: Any) -> None:
    assert seen["connection"] == "refused by the policy"
