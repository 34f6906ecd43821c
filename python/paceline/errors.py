"""What goes wrong. `str()` of an exception is what the command would print."""

from __future__ import annotations

__all__ = ["PacelineError", "RunError", "ScenarioError", "SweepError", "WorldUnavailable"]


class PacelineError(Exception):
    """Every complaint of the package but bad arguments, which are ValueError and TypeError as everywhere."""


class ScenarioError(PacelineError, ValueError):
    """A scenario, or a change to one, that cannot be: where, and what to write instead."""

    message: str
    """What is wrong, in a line."""
    line: int | None
    """The line of the complaint, from 1; None if it stands nowhere in the file."""
    column: int | None
    """Where it begins in that line, in characters from 1."""
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
    """A run that could not be made, or broke off."""


class WorldUnavailable(RunError):
    """This machine, or this package, does not have the world."""

    hint: str
    """How to get it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.hint = hint

    def __str__(self) -> str:
        return "\n".join(str(part) for part in self.args if part)


class SweepError(PacelineError, ValueError):
    """A folder that a sweep cannot go on with, or may not without `resume=True`."""
