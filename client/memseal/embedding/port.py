"""The port through which texts become vectors."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


class Embedder(Protocol):
    """Something that embeds texts; vectors of two embedders with different names are never compared."""

    @property
    def name(self) -> str:
        """The model and its precision, such as `all-MiniLM-L6-v2/int8`."""
        ...

    @property
    def dimension(self) -> int:
        """The length of each vector."""
        ...

    @property
    def floor(self) -> float:
        """The cosine below which two texts have nothing to do with each other."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector of unit length per text, shape (n, dimension).

        Raises `EmbedderUnavailable` where the model cannot be reached, and `EmbedderAnswer` where it
        answers nonsense.
        """
        ...


@runtime_checkable
class Selective(Protocol):
    """What an embedder may have besides: it says which texts its model was made for.

    Of others a model gives vectors too, all near to one another: nothing would be unrelated to anything.
    """

    def reads(self, text: str) -> bool:
        """Whether the text is in a writing that the model knows."""
        ...


@dataclass(frozen=True)
class Tokens:
    """A text as its model reads it: `vectors` of unit length, shape (n, dimension), one a token.

    `words` has for each token the word of the text that it is a part of, in lower case; "" where it is none.
    """

    vectors: NDArray[np.float32] = field(repr=False)
    words: tuple[str, ...] = field(repr=False)


@runtime_checkable
class Contextual(Protocol):
    """What an embedder may have besides: it gives the vectors of a text's tokens, for late interaction."""

    def embed_tokens(self, text: str) -> Tokens:
        """Return the tokens of one text; the same text always gives the same vectors.

        Raises what `embed` does.
        """
        ...
