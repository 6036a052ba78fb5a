"""What the sanitizer returns: the content with stand-ins, and the report of what they stand for."""

from typing import Any, Self

from memseal.privacy.report import Report


class Clean(str):
    """A text with stand-ins, and the report of what they stand for."""

    __slots__ = ("report",)
    report: Report

    def __new__(cls, text: str, report: Report) -> Self:
        """Take the text and its report."""
        made = super().__new__(cls, text)
        made.report = report
        return made

    @property
    def text(self) -> str:
        """The text alone."""
        return str.__str__(self)


class CleanMessages(list[Any]):
    """Messages with stand-ins, and one report of all."""

    def __init__(self, messages: list[Any], report: Report) -> None:
        """Take the messages and their report."""
        super().__init__(messages)
        self.report = report


class CleanObject(dict[str, Any]):
    """One message or tool call with stand-ins, and its report."""

    def __init__(self, content: dict[str, Any], report: Report) -> None:
        """Take the content and its report."""
        super().__init__(content)
        self.report = report
