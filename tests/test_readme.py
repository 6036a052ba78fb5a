"""What the README says works, and what the documents point at is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted(
    path
    for path in [ROOT / "README.md", *ROOT.glob("format-spec/**/*.md"), *ROOT.glob("interop-vectors/**/*.md")]
    if "node_modules" not in path.parts
)


def _said(number: int, folder: Path) -> list[str]:
    """Run one of the README's programs, and return the lines that it prints."""
    programs = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", programs[number]],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_python_of_the_readme_runs_and_finds_by_meaning(tmp_path: Path) -> None:
    kit, first, *_ = _said(0, tmp_path)
    assert kit.startswith("MSEAL1-")
    assert "cashews" in first


def test_what_the_readme_sends_to_a_model_has_no_name_in_it_and_comes_back(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    sent, back = _said(1, tmp_path)
    assert not {"Sarah", "Chen", "acme"} & set(re.findall(r"\w+", sent))
    assert sent.endswith("before Friday.")
    assert back == "I wrote to Sarah."


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_a_document_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (document.parent / target).exists()]
    assert missing == []
