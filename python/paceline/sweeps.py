# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sweeps: grids of settings whose jobs run on threads, on Dask or on Ray.

The rows of a job depend only on the sweep and the version, so threads, Dask and Ray give the same rows. The process that calls
`sweep` writes the folder; workers return rows and write nothing.
"""

from __future__ import annotations

import json
import operator
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _paceline
from .arguments import Making, Progress, Record, count_of, jobs_of, progress_of, seed_of
from .controllers import Controller, _registered, with_registered
from .engines import check_engine, check_version, completed
from .errors import ArgumentError
from .result import Result, stored_rows
from .runs import Run, _runs, metric_units
from .scenario import _Request, toml
from .tables import Series, SeriesMap, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SweepFile", "SweepResult", "sweep", "sweeps"]


class SweepFile:
    """A sweep made in code, from the keys of a sweep file."""

    def __init__(self, keys: Mapping[str, Any]) -> None:
        """Creates a sweep: `SweepFile({"id": …, "axis": [{"key": …, "values": […]}], "measure": [{…}]})`."""
        lines = [f"{key} = {toml(value)}" for key, value in keys.items()]
        self.text = "\n".join(lines) + "\n"


class SweepResult(Result):
    """The measures at each point of a sweep. As a mapping it is the document of `sweep --json`. Frames have a row for each point: the
    value of each key, and of each measure the mean, `NAME_ci95` and `NAME_n`, as in `points.parquet`."""

    refined: SweepResult | None
    """The best points on more seeds, if the file has `[refine]`."""

    def __init__(
        self,
        finished: _paceline.FinishedSweep,
        refined: SweepResult | None,
        world: str = "sim",
        *,
        rows: Callable[[], Table] | None = None,
    ) -> None:
        document = json.loads(finished.document)
        if refined is not None:
            document["refined"] = refined.document
        table = Table._of_columns(finished.rows) if rows is None else rows
        super().__init__(document, finished.text, finished.html, table)
        self.refined = refined
        self._source, self._world = finished.source, world

    @property
    def points(self) -> list[dict[str, Any]]:
        """Every point; the last axis changes fastest."""
        return list(self["points"])

    @property
    def keys_swept(self) -> list[str]:
        """The swept keys, in the order of the values of a point."""
        return [key for axis in self["axes"] for key in axis["keys"]]

    @property
    def measures(self) -> list[str]:
        """Names of the measures."""
        return [measure["name"] for measure in self["measures"]]

    @property
    def series(self) -> SeriesMap:
        """The mean of each measure by point, for a sweep of one key whose values are numbers: `time_s` then contains the
        values of the key. `run` gives the time series at a point."""
        if len(self.keys_swept) != 1 or not all(_is_number(point["at"][0]) for point in self.points):
            raise ArgumentError(
                f"series need one swept key whose values are numbers; swept are {', '.join(self.keys_swept)}: use to_pandas()"
            )
        import numpy as np

        at = np.array([float(point["at"][0]) for point in self.points])
        units = metric_units()

        def series(index: int, measure: Mapping[str, Any]) -> Series:
            values = [(point["values"][index] or {}).get("mean", np.nan) for point in self.points]
            return Series(measure["name"], units.get(measure["metric"], ""), at, np.array(values, dtype=float))

        return SeriesMap({m["name"]: series(index, m) for index, m in enumerate(self["measures"])})

    def run(self, point: int = 0, measure: str | int = 0, *, seed: int = 1, record: Record = "packets") -> Run:
        """Makes the run of a point again, with its series and packets. Measures of one scenario share their runs."""
        count = len(self.points)
        if not 0 <= operator.index(point) < count:
            raise ArgumentError(f"point must be 0 to {count - 1}, not {point}")
        if isinstance(measure, str):
            if measure not in self.measures:
                raise ArgumentError(f"no measure {measure!r}; there are {', '.join(self.measures)}")
            measure = self.measures.index(measure)
        elif not 0 <= operator.index(measure) < len(self.measures):
            raise ArgumentError(f"measure must be a name, or 0 to {len(self.measures) - 1}, not {measure}")
        request = _Request("sweep.toml", self._source, [], None, None)
        loaded = _paceline.Sweep(request, None, with_registered(), self._world)
        making = Making.of([seed_of(seed)], self._world, record, None)
        return _runs(loaded.runs(request, point, measure, making)).runs[0]

    def _columns(self) -> dict[str, list[Any]]:
        points = self.points
        columns: dict[str, list[Any]] = {
            key: [point["at"][index] for point in points] for index, key in enumerate(self.keys_swept)
        }
        for index, name in enumerate(self.measures):
            values = [point["values"][index] or {} for point in points]
            for field, column in (("mean", name), ("ci95", f"{name}_ci95"), ("n", f"{name}_n")):
                columns[column] = [value.get(field) for value in values]
        if any(point["sum"] is not None for point in points):
            columns["sum"] = [point["sum"] for point in points]
        return columns

    def plot(self) -> Figure:
        """Draws each measure with matplotlib: over the values of one key with its interval, or of two keys as a grid."""
        from .plot import plot_sweep

        return plot_sweep(self)

    def __repr__(self) -> str:
        return f"<{self['id']}: {len(self.points)} points of {', '.join(self.keys_swept)}>"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def sweeps() -> list[str]:
    """Returns the ids of the sweeps in the package."""
    listed: list[str] = json.loads(_paceline.catalogue([]))["sweeps"]
    return listed


def sweep(
    what: str | Path | SweepFile,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    progress: Progress = False,
    engine: str = "threads",
    jobs: int | None = None,
    client: Any = None,
    set: Mapping[str, Any] | None = None,
    seeds: int | Iterable[int] | None = None,
    batch: int | None = None,
    world: str = "sim",
) -> SweepResult:
    """Runs every job of a sweep and returns the result of each point. If the file has `[refine]`, the best points are repeated on
    more seeds, as `refined`. `seeds` is the number of runs of each point, on the seeds from 1 (default: that of the file). `world` is
    `sim`, `testbed` or `browser`; runs in real time are made one after the other.

    `out` is a folder that stores each finished batch, and at the end `rows.parquet` and `points.parquet`; the same bytes with
    every engine. The refined sweep is in its subfolder `best`. `resume` continues an earlier sweep in the folder. Without `out`, the
    rows of all jobs stay in memory. `progress` shows a bar, or is called with the jobs that are done and their number.

    `engine`: `threads` makes `jobs` runs at the same time in this process (default: the number of cores). `dask` uses the workers of
    `client`, a `distributed.Client` (default: a new cluster on this machine). `ray` uses the cluster of `ray.init` (default:
    a new one on this machine). `batch` is the number of jobs that a worker gets at a time (default: chosen automatically).
    """
    text = what.text if isinstance(what, SweepFile) else None
    name = "sweep.toml" if isinstance(what, SweepFile) else str(what)
    settings = [f"{key}={toml(value)}" for key, value in (set or {}).items()]
    request = _Request(name, text, settings, None, None)
    into = None if out is None else Path(out)
    _check(engine, client, into, world)
    count, show, threads = count_of(seeds, "a sweep"), progress_of(progress), jobs_of(jobs)
    loaded = _paceline.Sweep(request, count, with_registered(), world)

    def run(
        loaded: _paceline.Sweep, request: _Request, seeds: int | None, into: Path | None
    ) -> _paceline.FinishedSweep:
        if into is None:
            return loaded.run(threads, show)
        folder = loaded.open(into, resume)
        try:
            if engine == "threads":
                return loaded.run_into(folder, threads, show)
            loaded.verify(folder)
            job = Job(request, seeds, tuple(_registered.values()))

            def batches(workers: int) -> list[tuple[int, int]]:
                return folder.batches(batch or loaded.batch_size(workers))

            for rows in completed(engine, client, _rows, job, batches, show):
                folder.write(rows)
            return loaded.merge(folder)
        finally:
            # A traceback can keep the object alive.
            folder.close()

    finished = run(loaded, request, count, into)
    refined = loaded.refined(finished)
    best = None
    if refined is not None:
        best_request = _Request("best.sweep.toml", refined.text, [], None, None)
        made = run(refined, best_request, None, None if into is None else into / "best")
        best = SweepResult(made, None, world, rows=None if into is None else partial(stored_rows, into / "best"))
    return SweepResult(finished, best, world, rows=None if into is None else partial(stored_rows, into))


def _check(engine: str, client: Any, into: Path | None, world: str) -> None:
    """Raises an exception if the engine is not available."""
    check_engine(engine, client)
    if engine != "threads" and into is None:
        raise ArgumentError(f"the engine {engine!r} needs a folder: out=…")
    if engine != "threads" and world != "sim":
        raise ArgumentError(f"the engine {engine!r} simulates: the world {world!r} needs engine='threads'")


class Job:
    """Data for a worker: the text of the sweep, and the registered controllers that it names. Each worker loads it once."""

    def __init__(self, request: _Request, seeds: int | None, controllers: tuple[Controller, ...]) -> None:
        if request.text is None and Path(request.name).is_file():
            # The worker may be on another machine. Scenarios that the file names by path must exist there too.
            request = replace(request, text=Path(request.name).read_text(encoding="utf-8"))
        # Other controllers may be in modules that only this machine has.
        text = "\n".join([request.text or "", *request.settings])
        self.controllers = tuple(c for c in controllers if c.name in text)
        self.request, self.seeds = request, seeds
        self.token, self.version = uuid.uuid4().hex, _paceline.VERSION

    def rows(self, first: int, end: int) -> str:
        """Runs these jobs and returns their rows as JSON."""
        check_version(self.version)
        if self.token not in _loaded:
            _loaded.clear()
            _loaded[self.token] = _paceline.Sweep(self.request, self.seeds, with_registered(self.controllers), "sim")
        return _loaded[self.token].batch(first, end)


_loaded: dict[str, _paceline.Sweep] = {}
"""The last sweep of this worker process."""


def _rows(first: int, end: int, shared: Job) -> str:
    return shared.rows(first, end)
