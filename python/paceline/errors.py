# SPDX-License-Identifier: MIT OR Apache-2.0
"""Exceptions. `str()` of an exception is a sentence that states the error and what to do about it."""

from __future__ import annotations

__all__ = [
    "ArgumentError",
    "InputError",
    "PacelineError",
    "PackageMissing",
    "ResultsError",
    "RunError",
    "ScenarioError",
    "SeriesError",
    "SweepError",
    "WorldUnavailable",
]


class PacelineError(Exception):
    """Base class of the exceptions of this package. Arguments of a wrong type raise `TypeError`."""


class ArgumentError(PacelineError, ValueError):
    """An argument has a value that is not allowed."""


class SeriesError(PacelineError, KeyError):
    """A run has no such series or column, or it was made without them."""

    def __str__(self) -> str:
        # Unlike `KeyError`, without quotation marks.
        return str(self.args[0])


class ResultsError(PacelineError, OSError):
    """A folder of results cannot be read or written."""


class InputError(PacelineError, OSError):
    """A capture, a dump or a log of a call cannot be read."""


class PackageMissing(PacelineError, ImportError):
    """A function needs an optional package."""


class ScenarioError(PacelineError, ValueError):
    """A scenario or a change to it is invalid. States where, and what to write instead."""

    message: str
    """The error in one line."""
    line: int | None
    """Line number of the error, from 1; `None` if it is not in the file."""
    column: int | None
    """Column of the error, in characters from 1."""
    hint: str | None
    """What to write instead."""
    snippet: str | None
    """The offending text."""

    def __init__(
        self,
        text: str,
        message: str,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
        snippet: str | None = None,
    ) -> None:
        super().__init__(text, message, line, column, hint, snippet)
        self.message, self.line, self.column, self.hint, self.snippet = message, line, column, hint, snippet

    def __str__(self) -> str:
        return str(self.args[0])


class RunError(PacelineError, RuntimeError):
    """A run could not be made, or failed."""


class WorldUnavailable(RunError):
    """The world is not available on this machine or in this package."""

    hint: str
    """How to make it available."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.hint = hint

    def __str__(self) -> str:
        return "\n".join(str(part) for part in self.args if part)


class SweepError(PacelineError, ValueError):
    """A sweep cannot resume in this folder, or not without `resume=True`."""
