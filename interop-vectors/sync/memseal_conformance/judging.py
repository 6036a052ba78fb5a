"""Say what is wrong with an answer, given what a step expects."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from memseal_conformance.calling import Answer
from memseal_conformance.cases import Step
from memseal_conformance.forms import CaseInvalid
from memseal_conformance.making import Maker

_FIRST_REFUSAL = 400
_SHOWN_CHARS = 80


def faults(step: Step, answer: Answer, seconds: float, maker: Maker) -> Iterator[str]:
    """Yield what is wrong with the answer, each as the end of a sentence; the first says what should have come."""
    if outcome(answer) not in step.expect:
        yield f"should have been answered with {' or '.join(step.expect)}, and was with {outcome(answer)}"
        return
    if answer.status >= _FIRST_REFUSAL and " " in step.expect[0]:
        yield from _problem_faults(answer, maker)
    for name, member in (step.members or {}).items():
        yield from _member_faults(name, (answer.document or {}).get(name), member, maker)
    yield from _heads_faults(step.heads, answer, maker)
    if step.content is not None and answer.body != (expected := maker.octets(step.content)):
        yield f"should have brought {len(expected)} certain bytes, and brought {len(answer.body)} others"
    yield from _header_faults(step, answer, maker)
    if step.seconds is not None and not step.seconds[0] <= seconds <= step.seconds[1]:
        yield f"should have been answered after {step.seconds[0]} to {step.seconds[1]} s, and was after {seconds:.1f} s"


def outcome(answer: Answer) -> str:
    """Return status and code of an answer, as steps expect them."""
    return f"{answer.status} {answer.code}".strip()


def _problem_faults(answer: Answer, maker: Maker) -> Iterator[str]:
    problem = answer.problem or {}
    if problem.get("type") != f"urn:memseal:error:{answer.code}":
        yield f"should have the `type` urn:memseal:error:{answer.code}, and has {_shown(problem.get('type'))}"
    if problem.get("status") != answer.status:
        yield f"should have the `status` {answer.status}, and has {_shown(problem.get('status'))}"
    for name in ("title", "detail"):
        if not isinstance(problem.get(name), str) or not problem[name]:
            yield f"should have a `{name}`, and has {_shown(problem.get(name))}"
    if any(each in str(problem.get("detail")) for each in maker.secrets()):
        yield "quotes an id or key in `detail`"


def _member_faults(name: str, came: Any, written: Any, maker: Maker) -> Iterator[str]:
    match expected := _expected(written, maker):
        case {"any": "integer"}:
            right, words = type(came) is int, "an integer"
        case {"any": "texts"}:
            right, words = _are_texts(came), "an array of texts"
        case bytes():
            right, words = came == expected.hex(), expected.hex()
        case _:
            right, words = came == expected, _shown(expected)
    if not right:
        yield f"should have the member `{name}` {words}, and has {_shown(came)}"


def _expected(written: Any, maker: Maker) -> Any:
    """Return a member's value, or the kind of value that `{"any": …}` names."""
    if written in ({"any": "integer"}, {"any": "texts"}):
        return written
    return maker.value(written)


def _are_texts(came: Any) -> bool:
    if not isinstance(came, list):
        return False
    entries = cast("Sequence[Any]", came)
    return bool(entries) and all(isinstance(each, str) for each in entries)


def _heads_faults(written: Any, answer: Answer, maker: Maker) -> Iterator[str]:
    if written is None:
        return
    document = answer.document or {}
    expected: dict[str, Any] = {}
    for name, value in written.items():
        match name:
            case "keyring":
                version, whole = maker.version(value[0]), value[1]
                digest = version.digest.hex()
                expected[name] = {"version": version.fields["version"], "digest": digest, "whole": whole}
            case "floor":
                checkpoint = value and maker.filled(f"{{object {value[0]}}}")
                expected[name] = value and {"checkpoint": checkpoint, "whole": value[1]}
            case "logs":
                expected[name] = {
                    maker.log(log).stream.hex(): maker.log(log).end(*place) for log, place in value.items()
                }
            case _:
                raise CaseInvalid(f"heads have no `{name}`")
    for name, value in expected.items():
        if document.get(name, ()) != value:
            yield f"should show the `{name}` {_shown(value)}, and shows {_shown(document.get(name))}"


def _header_faults(step: Step, answer: Answer, maker: Maker) -> Iterator[str]:
    for name, written in (step.answer or {}).items():
        came, expected = answer.headers.get(name.lower()), maker.filled(written)
        if came != expected:
            yield f"should have the header {name}: {expected}, and has {_shown(came)}"
    for name, written in (step.differs or {}).items():
        came = answer.headers.get(name.lower())
        if came is None or came == maker.filled(written):
            yield f"should have another {name} than before, and has {_shown(came)}"
    for name in step.save or {}:
        if name.lower() not in answer.headers:
            yield f"should have the header {name}, and has none"


def _shown(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
