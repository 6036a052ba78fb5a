"""What the fields of the providers' calls hold: texts, data, words of programs, schemas, or sealed bytes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast

from memseal.errors import SanitizerInput

Mode = Literal["message", "data", "schema"]
"""How a mapping is read: by the API's own fields, as data with names that anybody chose, or as a JSON schema."""

# Words of an API, or ids: a stand-in there would break the call.
_WORDS: Final = frozenset(
    """
    role type id object model finish_reason stop_reason index detail mime_type media_type status effort strict format
    required $ref $schema service_tier reasoning_effort truncation include modalities voice encoding_format size quality
    style language purpose order after before betas speed conversation container background tool_choice
    """.split()
)
_ID: Final = re.compile(r".*_ids?\Z")
_DATA: Final = frozenset(("metadata", "variables", "env", "extra_query", "input_examples"))
_SCHEMAS: Final = frozenset(("parameters", "input_schema", "schema"))
_SCHEMAS_BY_NAME: Final = frozenset(("properties", "$defs", "definitions", "patternProperties"))
_VALUES: Final = frozenset(("const", "default", "enum", "examples"))
# Where a name is a tool's and no person's.
_TOOLS: Final = frozenset(("arguments", "parameters", "input_schema", "schema"))
_TOOL_HOLDERS: Final = frozenset(("function", "function_call", "custom"))
_TOOL_TYPE: Final = re.compile(r"(?:\w+_)?(?:function|tool|custom|tool_use|call|call_output|json_schema)\Z|\w+_\d{8}\Z")
# What a provider sealed, for itself alone.
_SEALED: Final = frozenset(("signature", "encrypted_content", "thought_signature", "encrypted_stdout"))
_SEALED_IN: Final[Mapping[Any, str]] = {"redacted_thinking": "data", "image_generation_call": "result"}
_SEAL: Final = re.compile(r"[A-Za-z0-9+/=_.:-]{16,}")
_WORD: Final = re.compile(r"[\w$.:/+-]{1,256}\Z")
_DATA_URL: Final = re.compile(r"data:[\w.+/;=-]{0,100};base64,")
_PICTURE: Final = re.compile(r"data:image/[\w.+-]{1,40};base64,[A-Za-z0-9+/=_-]*\Z")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/=_\s-]*\Z")
_BLOB: Final = re.compile(r"[A-Za-z0-9+/=_\r\n-]{400,}\Z")  # so long a word is bytes of something
_NO_FILE: Final = (
    "a file's bytes cannot be looked through, and nothing was let out: give its text, "
    "or make this call with the client itself if they may leave as they are"
)


def is_word(key: str, text: str) -> bool:
    """Whether a text is a word that programs read, which stays as it is and may not be personal."""
    return (key in _WORDS or _ID.match(key) is not None) and is_one_word(text)


def is_one_word(text: str) -> bool:
    """Whether a text could be an id, a path or a word of an API: it has no spaces and few signs."""
    return _WORD.match(text) is not None


def is_sealed(key: str, holder: Mapping[Any, Any], text: str) -> bool:
    """Whether a text in a field of a mapping is bytes that the provider sealed for itself."""
    return (key in _SEALED or _SEALED_IN.get(holder.get("type")) == key) and _SEAL.fullmatch(text) is not None


def is_picture(text: str) -> bool:
    """Whether a text is a picture, which goes as it is; raises `SanitizerInput` for any other file's bytes."""
    if not _DATA_URL.match(text):
        if _BLOB.match(text):
            raise SanitizerInput(_NO_FILE)
        return False
    if not _PICTURE.match(text):
        raise SanitizerInput(_NO_FILE)
    return True


def is_picture_source(block: Mapping[Any, Any]) -> bool:
    """Whether a mapping holds the bytes of a picture; raises `SanitizerInput` for any other file's bytes."""
    if block.get("type") != "base64":
        return False
    kind, data = block.get("media_type"), block.get("data")
    if isinstance(kind, str) and kind.startswith("image/") and isinstance(data, str) and _BASE64.match(data):
        return True
    raise SanitizerInput(_NO_FILE)


def names_tool(block: Mapping[Any, Any], key: str) -> bool:
    """Whether the name in a mapping is that of a tool or a format; `key` is the field that the mapping is in."""
    return key in _TOOL_HOLDERS or bool(_TOOLS & block.keys()) or _is_tool(block)


def mode_within(name: str, block: Mapping[Any, Any], key: str, mode: Mode) -> Mode:
    """Return how the field of a mapping is read; `key` is the field that the mapping itself is in."""
    value = block[name]
    if mode == "data" or (name in _DATA and mode == "message"):
        return "data"
    if mode == "schema":
        return "data" if name in _VALUES and key not in _SCHEMAS_BY_NAME else "schema"
    if isinstance(value, dict) and (name == "arguments" or (name == "input" and _is_tool(block))):
        return "data"
    return "schema" if name in _SCHEMAS and isinstance(value, dict) else "message"


def has_tokens(value: Any) -> bool:
    """Whether a text is given as the numbers of a tokenizer."""
    if not isinstance(value, list):
        return False
    return any(isinstance(item, int) or has_tokens(item) for item in cast("Sequence[Any]", value))


def _is_tool(block: Mapping[Any, Any]) -> bool:
    kind = block.get("type")
    return isinstance(kind, str) and _TOOL_TYPE.match(kind) is not None
