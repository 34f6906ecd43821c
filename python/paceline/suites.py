# SPDX-License-Identifier: MIT OR Apache-2.0
"""Suites: tests with bounds under several controllers, on threads, on Dask or on Ray.

The results of a suite under a controller depend only on its scenarios and the version, so every engine gives the same document.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _paceline
from .arguments import Progress, jobs_of, progress_of, seeds_of
from .controllers import Controller, _registered, named, with_registered
from .engines import check_engine, check_version, completed
from .errors import ArgumentError
from .result import Result
from .tables import Table, columns_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SuiteResult", "suite"]


class SuiteResult(Result):
    """Which bounds hold under which controller. As a mapping it is the document of `suite --json`. Frames have a row for each
    bound of each test under each controller: the bound, mean, half of its 95 % interval, and whether it passes. The first
    columns of `rows` are `suite` and `controller`, unless the result was loaded from a folder."""

    @property
    def controllers(self) -> list[str]:
        """The controllers and oracles, in order of the rows."""
        return [row["controller"] for row in self["suites"][0]["rows"]]

    @property
    def ranking(self) -> list[dict[str, Any]]:
        """The controllers by their score of the possible over all families, as `paceline suite` prints it: `place`, `controller`,
        `points`, half of their 95 % `interval`, and whether they are `tied` with the first. Oracles and faulty controllers follow
        without a place. `self["rankings"]` has the rankings of each use and family, too."""
        if "rankings" not in self:
            raise ArgumentError("these results are of an earlier version, without rankings: make them again")
        ranking: list[dict[str, Any]] = self["rankings"]["all"]
        return ranking

    def _columns(self) -> dict[str, list[Any]]:
        rows: list[dict[str, Any]] = []
        for suite in self["suites"]:
            for row in suite["rows"]:
                for test, result in zip(suite["tests"], row["results"], strict=True):
                    place = {"suite": suite["id"], "controller": row["controller"], "kind": row["kind"]}
                    case = ", ".join(f"{key}={value}" for key, value in test["case"].items())
                    place |= {"scenario": test["scenario"], "case": case}
                    # A test that was not made has no results.
                    for bound, measured in zip(test["bounds"], result["bounds"], strict=False):
                        low, high = (float(limit) for limit in bound["bounds"])
                        what = {key: bound[key] for key in ("id", "quantity", "metric", "flow")}
                        rows.append({**place, **what, "low": low, "high": high, **measured})
        return columns_of(rows)

    def plot(self) -> Figure:
        """Draws the mean score of each test under each controller, with matplotlib."""
        from .plot import plot_suites

        return plot_suites(self)

    def __repr__(self) -> str:
        names = ", ".join(suite["id"] for suite in self["suites"])
        return f"<{names}: {len(self.controllers)} controllers>"


class _Shared:
    """Data of all jobs: the controllers of the caller, and the version."""

    def __init__(self, controllers: Iterable[Controller]) -> None:
        self.controllers, self.version = tuple(controllers), _paceline.VERSION


def _run_job(
    number: int, suite: str, controller: str, scenario: int, cases: list[int], seeds: list[int], shared: _Shared
) -> tuple[int, str]:
    """Makes the runs of a job: cases of a scenario of a suite under a controller on some seeds."""
    check_version(shared.version)
    own = [c for c in shared.controllers if c.name == controller]
    return number, _paceline.suite_job(suite, controller, scenario, cases, seeds, with_registered(own))


def suite(
    *names: str,
    controllers: Sequence[Controller | str] = (),
    seeds: int | Iterable[int] | None = None,
    repeats: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: Progress = False,
    engine: str = "threads",
    jobs: int | None = None,
    client: Any = None,
    batch: int | None = None,
) -> SuiteResult:
    """Runs suites and returns which bounds hold: `suite("l4s", "wifi", controllers=["googcc", mine])`.

    `names` are suites of the package, `all`, `short` for three runs of each test (one in `rfc8867` and `wifi`), or manifests of
    your own. `controllers` are controllers of your own, and names of controllers and of the oracles `ideal` and `causal`, or `all` (default: googcc, scream-v2 and nada). `seeds` is the number of runs
    of each test, on the seeds from 1, or the seeds themselves (default: as many as the verdicts of the test need, up to the number in
    the manifest); `repeats` is another name of it.

    `out` is a folder that stores each finished run, and at the end the files of `paceline suite --out`. `resume` continues an
    earlier suite in the folder. `progress` shows a bar, or is called with the work that is done and its total.

    `engine`: `threads` makes `jobs` runs at the same time in this process (default: the number of cores). `dask` uses the workers of
    `client`, a `distributed.Client` (default: a new cluster on this machine). `ray` uses the cluster of `ray.init` (default: a new
    one on this machine). A job of a worker is one scenario under one controller on `batch` seeds (default: chosen automatically).
    Without `seeds`, jobs come in rounds, one for each number of seeds after which verdicts are judged.
    Manifests of your own must exist on each worker.
    """
    if not names:
        raise ArgumentError('name a suite, such as "l4s", or "all"')
    if isinstance(controllers, str | Controller):
        name = controllers if isinstance(controllers, str) else controllers.name
        raise ArgumentError(f'controllers are a list: controllers=["{name}"]')
    if seeds is not None and repeats is not None:
        raise ArgumentError("`repeats` is another name of `seeds`: give one of them")
    given = repeats if seeds is None else seeds
    chosen = [named(controller) for controller in controllers]
    own = {c.name: c for _, more in chosen for c in more}
    show = progress_of(progress)
    count = jobs_of(jobs)
    check_engine(engine, client)
    runs = _paceline.SuiteRuns(
        list(names),
        [name for name, _ in chosen],
        None if given is None else seeds_of(given),
        with_registered(own.values()),
        None if out is None else Path(out),
        resume,
    )
    try:
        if engine == "threads":
            runs.run(count, show)
        else:
            shared = _Shared({**_registered, **own}.values())
            done = completed(engine, client, _run_job, shared, lambda workers: runs.jobs(workers, batch), show)
            for number, made in done:
                runs.add(number, made)
        made = runs.finish()
        return SuiteResult(json.loads(made.document), made.text, made.html, Table._of_columns(made.rows))
    finally:
        # A traceback can keep the object alive.
        runs.close()
