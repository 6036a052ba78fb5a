"""What late interaction keeps: bounded, by text and kind, and gone when it is told to."""

import numpy as np

from memseal.index.token_codes import TokenCodes
from memseal.recall.late import Whole

CODE = Whole(np.zeros((1, 4), np.float16))


def test_code_is_found_by_its_text_and_kind() -> None:
    codes = TokenCodes()
    codes.put("whole", "a text", CODE)
    assert codes.get("whole", "a text") is CODE
    assert codes.get("signs", "a text") is None
    assert codes.get("whole", "another") is None


def test_least_used_goes_first_and_the_bound_holds() -> None:
    codes = TokenCodes(bound=3 * CODE.size)
    for text in "abc":
        codes.put("whole", text, CODE)
    assert codes.get("whole", "a") is CODE
    codes.put("whole", "d", CODE)
    assert codes.get("whole", "b") is None
    assert codes.get("whole", "a") is CODE
    assert (codes.size, len(codes)) == (3 * CODE.size, 3)


def test_one_text_twice_counts_once() -> None:
    codes = TokenCodes()
    codes.put("whole", "a", CODE)
    codes.put("whole", "a", CODE)
    assert codes.size == CODE.size


def test_clear_leaves_nothing() -> None:
    codes = TokenCodes()
    codes.put("whole", "\ud800", CODE)
    codes.clear()
    assert (len(codes), codes.size, codes.get("whole", "\ud800")) == (0, 0, None)
