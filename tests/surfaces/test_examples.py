"""The programs in `examples/` run and say what their pages promise."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def run(name: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], capture_output=True, check=False, encoding="utf-8", timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_quickstart_finds_the_correction_and_keeps_what_it_replaced() -> None:
    said = run("quickstart.py")
    assert "MSEAL1-" in said
    assert "Coffee is good again: one small cup at seven." in said
    assert "taken back, but kept: I have gone off coffee since the flu." in said


def test_two_devices_end_in_the_same_state() -> None:
    assert run("two_devices.py").splitlines() == [
        "the phone finds: The spare key is under the third flower pot.",
        "the laptop knows: The neighbour has the spare key now.",
        "both hold the same state: True",
    ]


def test_moving_out_leaves_nothing_of_what_was_erased() -> None:
    erased, bundle, new = run("moving_out.py").splitlines()
    assert erased.count("gone") == 9
    assert bundle == "in the file: ['The piano tuner comes on the first of May.']"
    assert new == "in the new vault: The piano tuner comes on the first of May."
