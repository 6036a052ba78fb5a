"""What turns texts into vectors: a port, a local model, and two kinds of endpoint."""

from memseal.embedding.http import OllamaEmbedder, OpenAIEmbedder
from memseal.embedding.minilm import MiniLmEmbedder, default_embedder
from memseal.embedding.port import Contextual, Embedder, Selective, Tokens

__all__ = [
    "Contextual",
    "Embedder",
    "MiniLmEmbedder",
    "OllamaEmbedder",
    "OpenAIEmbedder",
    "Selective",
    "Tokens",
    "default_embedder",
]
