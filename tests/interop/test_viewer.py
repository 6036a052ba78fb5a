"""The viewer opens vaults and bundles in a real browser, from a file, and asks the network for nothing."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.interop.typescript import PASSPHRASE, ROOT, VIEWER, built_package, checked, memseal, program, remember

PAGE = ROOT / VIEWER / "index.html"
BUNDLE_PASSPHRASE = "of the bundle"
HOSTILE = '<img src=x onerror="window.pwned = 1"><script>window.pwned = 2</script>'
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the browser shows of a vault and its bundle; MEMSEAL_SCREENSHOTS names a folder for pictures of it."""
    folder = tmp_path_factory.mktemp("viewer")
    vault, bundle = folder / "my.vault", folder / "all.mseal"
    make_vault(vault)
    memseal("export", bundle, "--bundle", "--vault", vault, env={"MEMSEAL_FILE_PASSPHRASE": BUNDLE_PASSPHRASE})
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


def make_vault(vault: Path) -> None:
    memseal("init", "--vault", vault)
    dentist = remember(vault, "The dentist is on Tuesday", "--at", "2024-01-01")
    remember(vault, "Sparrows nest under the crane", "--at", "2024-01-02", "--tag", "birds", "--tag", "<b>bold</b>")
    remember(vault, "A crane landed on the spare tyre", "--at", "2024-01-03")
    keys = remember(vault, "The keys are under the pot", "--at", "2024-01-04")
    remember(vault, HOSTILE, "--at", "2024-01-05")
    memseal("supersede", dentist, "The dentist is on Friday", "--at", "2024-01-06", "--vault", vault)
    memseal("retract", keys, "--reason", "stolen", "--vault", vault)


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
    assert seen["wrong passphrase"] == "The passphrase does not open this vault. Try again."


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
