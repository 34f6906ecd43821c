# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks of arguments that several functions share."""

from __future__ import annotations

import operator
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from .controllers import Controller
from .errors import ArgumentError

LARGEST = 2**64 - 1

Record: TypeAlias = Literal["packets", "series", "nothing"]
"""What a run keeps in memory: the series and every packet, the series, or only its results."""


Progress: TypeAlias = bool | Callable[[int, int], object]
"""Whether to show a bar on stderr, or a function that is called with the work that is done and its total: seconds of runs, or jobs
of sweeps, Dask and Ray."""


class _Bar:
    """A bar on stderr."""

    def __init__(self) -> None:
        self._began, self._width = time.monotonic(), 0

    def __call__(self, done: int, total: int) -> None:
        left = (time.monotonic() - self._began) * (total - done) / done if done else 0.0
        text = f"{'#' * (30 * done // total):<30} {done}/{total}" + (f", {left:.0f} s left" if done < total else "\n")
        self._width = max(self._width, len(text))
        sys.stderr.write(f"\r{text:<{self._width}}" if done < total else f"\r{text}")
        sys.stderr.flush()


def progress_of(progress: Progress) -> Callable[[int, int], object] | None:
    """Returns the function that shows the progress."""
    if not isinstance(progress, bool):
        return progress
    return _Bar() if progress else None


def jobs_of(jobs: int | None) -> int | None:
    """Returns the number of runs at the same time; `None`: the number of cores."""
    if jobs is not None and not 1 <= operator.index(jobs) <= 1024:
        raise ArgumentError(f"jobs must be 1 to 1024, not {jobs}")
    return jobs


@dataclass(frozen=True)
class Making:
    """How runs are made, as the extension reads it."""

    seeds: list[int] | None
    world: str
    series: bool
    packets: bool
    out: Path | None

    @classmethod
    def of(cls, seeds: list[int] | None, world: str, record: Record, out: str | Path | None) -> Making:
        if record not in ("packets", "series", "nothing"):
            raise ArgumentError(f"record must be 'packets', 'series' or 'nothing', not {record!r}")
        return cls(seeds, world, record != "nothing", record == "packets", None if out is None else Path(out))


def seed_of(seed: int) -> int:
    """Returns a seed as an `int`."""
    try:
        number = operator.index(seed)
    except TypeError:
        raise ArgumentError(f"a seed must be a whole number, not {seed!r}") from None
    if not 0 <= number <= LARGEST:
        raise ArgumentError(f"a seed must be 0 to 2**64 - 1, not {number}")
    return number


def seeds_of(seeds: int | Iterable[int]) -> list[int]:
    """Returns the seeds 1 to `seeds`, or these."""
    if isinstance(seeds, str):
        raise ArgumentError(f"seeds must be a number or a list of numbers, not {seeds!r}")
    if isinstance(seeds, Iterable):
        chosen = [seed_of(seed) for seed in seeds]
        if not chosen:
            raise ArgumentError("seeds must name at least one seed")
        if len(set(chosen)) < len(chosen):
            raise ArgumentError("seeds must be different: equal seeds give equal runs")
        return chosen
    count = seed_of(seeds)
    if not 1 <= count <= 10_000:
        raise ArgumentError(f"the number of seeds must be 1 to 10000, not {count}")
    return list(range(1, count + 1))


def count_of(seeds: int | Iterable[int] | None, what: str) -> int | None:
    """Returns N for the seeds 1 to N, where others are not possible."""
    if seeds is None:
        return None
    chosen = seeds_of(seeds)
    if chosen != list(range(1, len(chosen) + 1)):
        raise ArgumentError(f"the seeds of {what} are 1 to N: write seeds=N")
    return len(chosen)


def controllers_of(controllers: Sequence[Controller | str]) -> list[Controller | str]:
    """Returns the controllers of a comparison, each once."""
    if isinstance(controllers, str | Controller):
        name = controllers if isinstance(controllers, str) else controllers.name
        raise ArgumentError(
            f"controllers must be a list, such as [{name!r}, 'gcc-2016']; for one controller use repeat()"
        )
    chosen = list(controllers)
    if not chosen:
        raise ArgumentError("compare needs at least one controller")
    names = [c if isinstance(c, str) else c.name for c in chosen]
    if len(names) != len(set(names)):
        raise ArgumentError(f"a controller is named twice: {', '.join(names)}")
    return chosen
