"""A provider's whole answer with real values: a text, a mapping, or an object of its client's own types."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from memseal.sanitize import records
from memseal.sanitize.thoughts import Thoughts

if TYPE_CHECKING:
    from memseal.sanitize.sanitizer import Sanitizer

ARGUMENTS: Final = frozenset(("arguments", "partial_json"))
# What programs read in an answer. All else may be shown to a person, in whichever field a provider puts it.
_LEFT: Final = frozenset(
    """
    id type role object model status name namespace finish_reason stop_reason stop_sequence system_fingerprint
    service_tier signature encrypted_content encrypted_index thought_signature obfuscation b64_json data result effort
    media_type mime_type file_id call_id item_id tool_call_id tool_use_id response_id previous_response_id request_id
    """.split()
)
# Data, in which a field may be called anything and its name may be a stand-in too.
_DATA: Final = frozenset(("input", "arguments", "metadata", "variables", "parsed", "parsed_arguments", "parsed_output"))
_DEEPEST: Final = 64


class Answers:
    """Restores answers; objects of a client are copied, and keep their type."""

    def __init__(self, sanitizer: "Sanitizer", thoughts: Thoughts) -> None:
        """Take the session, and where to keep what a model thought."""
        self.sanitizer = sanitizer
        self.thoughts = thoughts

    def restored(self, answer: Any, key: str = "") -> Any:
        """Return an answer, or the value of one of its fields, with real values."""
        return self._restored(answer, key, 0)

    def _restored(self, value: Any, key: str, depth: int) -> Any:
        if depth > _DEEPEST:
            return value
        if isinstance(value, str):
            return self._text(value, key)
        if isinstance(value, (list, tuple)):
            made = [self._restored(item, key, depth + 1) for item in cast("Sequence[Any]", value)]
            return made if isinstance(value, list) else _same_tuple(cast("Any", value), made)
        if isinstance(value, dict):
            if key in _DATA:
                return every_text(value, self.sanitizer.restorer().restore)
            return self._fields(cast("dict[str, Any]", value), depth)
        if not records.is_record(value):
            return value
        changed = self._fields(records.fields_of(value), depth)
        return records.with_fields(value, changed)

    def _fields(self, fields: Mapping[str, Any], depth: int) -> dict[str, Any]:
        made = {
            name: item if name.startswith("_") else self._restored(item, name, depth + 1)
            for name, item in fields.items()
        }
        thought = fields.get("thinking")
        if fields.get("type") == "thinking" and isinstance(thought, str):
            self.thoughts.keep(made["thinking"], thought)
        return made

    def _text(self, text: str, key: str) -> str:
        if key in _LEFT:
            return text
        restore = self.sanitizer.restorer().restore
        if key not in ARGUMENTS:
            return restore(text)
        try:
            parsed = json.loads(text)
        except ValueError:
            return restore(text, in_json)
        changed = every_text(parsed, restore)
        return text if changed == parsed else json.dumps(changed, ensure_ascii=False)


def every_text(value: Any, change: Callable[[str], str]) -> Any:
    """Return JSON with all of its texts changed, names of fields too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [every_text(item, change) for item in cast("Sequence[Any]", value)]
    if isinstance(value, dict):
        return {change(name): every_text(item, change) for name, item in cast("Mapping[str, Any]", value).items()}
    return value


def in_json(text: str) -> str:
    """Return a text as it stands within a string of JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _same_tuple(value: Any, made: list[Any]) -> Any:
    return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
