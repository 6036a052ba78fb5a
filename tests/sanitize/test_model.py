import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree

import pytest

from memseal.errors import SanitizerMissing, SanitizerModel
from memseal.privacy.spans import Span
from memseal.sanitize import Detector, PredictingModel, SpacyModel, model
from memseal.sanitize.detecting import detector
from tests.sanitize.building import full, needs_model, needs_presidio, rules


@needs_model
def test_pinned_model_has_the_files_of_its_makers() -> None:
    assert SpacyModel().names(["Angela Merkel met Barack Obama in Berlin."])[0][0].type == "PERSON"


@needs_model
def test_model_with_another_byte_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copytree(model._path(model.DEFAULT_MODEL), tmp_path / "model")
    weights = folder / "ner" / "model"
    changed = bytearray(weights.read_bytes())
    changed[len(changed) // 2] ^= 1
    weights.write_bytes(changed)
    monkeypatch.setattr(model, "_path", lambda _: folder)
    with pytest.raises(SanitizerModel, match="ner/model"):
        SpacyModel()


@needs_model
def test_model_is_taken_from_a_path() -> None:
    assert SpacyModel(model._path(model.DEFAULT_MODEL)).names(["Angela Merkel slept."])[0]


@needs_model
def test_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SanitizerModel):
        SpacyModel(tmp_path)


@pytest.mark.skipif(find_spec("spacy") is None, reason="spaCy is not installed")
@pytest.mark.parametrize("name", ["en_core_web_nothing", "../somewhere", "https://example.com/model"])
def test_model_that_is_not_installed_is_never_fetched(name: str) -> None:
    with pytest.raises(SanitizerMissing, match="nothing is downloaded"):
        SpacyModel(name)


def test_other_models_fit_the_same_protocol() -> None:
    def predict(text: str) -> list[dict[str, object]]:
        place = text.index("Xq Vantor")
        return [
            {"start": place, "end": place + 9, "label": "person", "score": 0.97},
            {"start": 0, "end": 3, "entity_group": "PER", "score": 0.1},
            {"start": 0, "end": 3, "label": "date", "score": 0.99},
        ]

    spans = Detector(PredictingModel(predict)).detect(["for Xq Vantor only"])[0]
    assert ("PERSON", 4, 13) in {(span.type, span.start, span.end) for span in spans}
    assert all(span.start == 4 for span in spans)


def test_recogniser_of_the_app_is_asked_too() -> None:
    class Badges:
        def find(self, text: str) -> Sequence[Span]:
            return [Span(text.index("B#"), text.index("B#") + 5, "BADGE", 0.9, "badges")] if "B#" in text else []

    assert Detector(sources=[Badges()]).detect(["door B#123 opens"])[0] == [Span(5, 10, "BADGE", 0.9, "badges")]


def test_threshold_of_a_type_decides() -> None:
    text = "see https://example.com/a for it"
    assert rules().detect([text])[0]
    assert not Detector(thresholds={"URL": 0.95}).detect([text])[0]


@needs_presidio
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("AU_TFN", "my TFN is 876 543 210"),
        ("FI_PERSONAL_IDENTITY_CODE", "henkilötunnus 131052-308T"),
        ("KR_RRN", "주민등록번호 960121-1234567"),
        ("SE_PERSONNUMMER", "personnummer 811228-9874"),
        ("TH_TNIN", "thai national id 1-2345-67890-12-1"),
    ],
)
def test_identifiers_that_presidio_knows_are_found(kind: str, text: str) -> None:
    found = {span.type for span in rules().detect([text])[0]}
    assert kind in found or "NATIONAL_ID" in found or "KR_RRN" in found


def test_raw_detections_have_the_shape_that_measuring_tools_take() -> None:
    found = detector()("mail jo@example.com")
    assert (5, 19, "EMAIL", 1.0) in found


@needs_model
def test_upper_and_lower_case_are_read_a_second_time() -> None:
    for text in ("CALL SARAH WHITFIELD RE: INVOICE", "what did james whitfield say"):
        spans = full().detect([text])[0]
        assert any("whitfield" in text[span.start : span.end].lower() for span in spans)


OFFLINE = """
import sys
def refuse(event, arguments):
    if event.startswith("socket."):
        raise SystemExit(f"a socket: {event}")
sys.addaudithook(refuse)
import memseal
sanitizer = memseal.Sanitizer()
text = "Dear Sarah Chen, mail s.chen@example.co.uk, see www.example.com, passport C01X00T47"
clean = sanitizer.sanitize(text)
assert sanitizer.restore(clean) == text and "Chen" not in clean
print("offline")
"""


def test_import_construction_and_use_open_no_socket() -> None:
    done = subprocess.run([sys.executable, "-c", OFFLINE], capture_output=True, text=True, check=False)
    assert done.stdout == "offline\n", done.stdout + done.stderr


WITHOUT = """
import sys
for name in {missing!r}:
    sys.modules[name] = None
import memseal
try:
    print(memseal.Sanitizer(model={model}).missing)
except memseal.MemsealError as error:
    print(error.code, error)
"""


@pytest.mark.parametrize(
    ("missing", "said"),
    [(["spacy"], "no language model"), (["presidio_analyzer"], "presidio-analyzer"), (["faker"], "sanitizer_missing")],
)
def test_part_that_is_not_installed_is_named(missing: list[str], said: str) -> None:
    script = WITHOUT.format(missing=missing, model=None if missing == ["presidio_analyzer"] else "'default'")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert said in done.stdout, done.stderr
