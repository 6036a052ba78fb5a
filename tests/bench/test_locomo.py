"""The benchmark counts right."""

import pytest

from tests.bench.locomo import Question, measure, questions_of

ROW = {"question": "Where is the kettle?", "category": 4}


@pytest.mark.parametrize(
    ("evidence", "turns"),
    [
        (["D8:6; D9:17"], {"D8:6", "D9:17"}),
        (["D:11:26"], {"D11:26"}),
        (["D30:05"], {"D30:5"}),
        (["D8:6 D9:17", "D8:6"], {"D8:6", "D9:17"}),
        (["D8:6", "D99:1"], {"D8:6"}),
    ],
)
def test_malformed_evidence_is_put_right(evidence: list[str], turns: set[str]) -> None:
    known = {"D8:6", "D9:17", "D11:26", "D30:5"}
    (question,) = questions_of([ROW | {"evidence": evidence}], known)
    assert question.evidence == turns


@pytest.mark.parametrize("evidence", [[], ["D"], ["D99:1"]])
def test_question_without_evidence_does_not_count(evidence: list[str]) -> None:
    assert questions_of([ROW | {"evidence": evidence}], {"D8:6"}) == []


def test_figures_follow_their_definitions() -> None:
    figures = measure(Question("", 4, frozenset({"a", "b", "c"})), ["x", "a", "x", "x", "x", "b"])
    assert figures["any@1"] == 0
    assert figures["any@5"] == figures["any@10"] == 1
    assert figures["frac@5"] == pytest.approx(1 / 3)
    assert figures["frac@10"] == pytest.approx(2 / 3)
    assert figures["MRR"] == 0.5
    # 1/log2(3) + 1/log2(7) of 1 + 1/log2(3) + 1/log2(4)
    assert figures["nDCG@10"] == pytest.approx(0.4632, abs=1e-4)


def test_nothing_found_is_zero_everywhere() -> None:
    assert set(measure(Question("", 4, frozenset({"a"})), []).values()) == {0.0}
