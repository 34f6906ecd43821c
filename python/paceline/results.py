# SPDX-License-Identifier: MIT OR Apache-2.0
"""Stored results: folders that `out=` or `--out` wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _paceline
from .controllers import with_registered
from .errors import ArgumentError
from .result import _Frames, stored_rows
from .runs import ComparisonTable, Run, Runs, _by_run
from .suites import SuiteResult
from .sweeps import SweepResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Results", "load"]


class Results(_Frames):
    """A folder of results. Frames have a row for each run (scenario, world, controllers, changes, seed, hash, metrics), or those of the
    sweep or the suites. Events are read when a run's `series` or `packets` are used."""

    def __init__(
        self,
        folder: Path,
        groups: list[Runs],
        runs: list[Run],
        comparisons: list[ComparisonTable],
        sweep: SweepResult | None,
        suites: SuiteResult | None,
        scoreboard: dict[str, Any] | None,
    ) -> None:
        self.folder = folder
        """The folder."""
        self._rows = partial(stored_rows, folder, [run.folder.name for run in runs if run.folder] or None)
        self.groups = groups
        """Runs of one scenario under the same controllers, with their summary."""
        self.runs = runs
        """Every run, by scenario, controllers and seed. One whose process was killed has events, but no metrics."""
        self.comparisons = comparisons
        """The table of each comparison."""
        self.sweep = sweep
        """The sweep of a folder that a sweep wrote."""
        self.suites = suites
        """The suites of a folder that `suite` wrote."""
        self.scoreboard = scoreboard
        """The document that `reproduce --out` wrote."""

    def _columns(self) -> Mapping[str, Any]:
        if self._one is not None:
            return self._one._columns()
        about: dict[str, Any] = {
            "scenario": [run.scenario for run in self.runs],
            "world": [run.world for run in self.runs],
            "controllers": [", ".join(dict.fromkeys(run.controllers)) for run in self.runs],
            "changes": [", ".join(run.all["changes"]) for run in self.runs],
        }
        return about | _by_run(self.runs)

    @property
    def _one(self) -> SweepResult | SuiteResult | None:
        """The only result of the folder."""
        return self.sweep or self.suites

    def plot(self) -> Figure:
        """Draws the sweep, the suites, or the runs by controllers over time, with matplotlib."""
        from .plot import plot_groups

        if self._one is not None:
            return self._one.plot()
        if len({run.scenario for run in self.runs}) != 1:
            raise ArgumentError("the folder has no runs, or runs of several scenarios: plot its `groups` one by one")
        names = dict.fromkeys(", ".join(dict.fromkeys(run.controllers)) for run in self.runs)
        of = {name: [r for r in self.runs if ", ".join(dict.fromkeys(r.controllers)) == name] for name in names}
        return plot_groups(of)

    def __repr__(self) -> str:
        if self._one is not None:
            return f"<{self.folder}: {self._one!r}>"
        if not self.runs and self.scoreboard is not None:
            return f"<{self.folder}: a scoreboard>"
        counts = [(len(self.runs), "run"), (len(self.groups), "group"), (len(self.comparisons), "comparison")]
        parts = [f"{count} {name}{'' if count == 1 else 's'}" for count, name in counts]
        return f"<{self.folder}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        shown: list[Any] = [*self.comparisons, *self.groups, *([] if self._one is None else [self._one])]
        return "<hr>".join(result._repr_html_() for result in shown) or f"<pre>{self!r}</pre>"


def load(folder: str | Path) -> Results:
    """Reads a folder of results, written by this package (`out=`) or by the command (`--out`): runs, groups, comparisons, a
    sweep, suites, or a scoreboard."""
    folder = Path(folder)
    data = _paceline.load(folder, with_registered())
    groups = [(json.loads(document), text, html) for document, text, html in data["groups"]]
    metrics = {
        directory: run["metrics"]
        for group, _, _ in groups
        for directory, run in zip(group["runs"], group["per_run"], strict=True)
    }
    runs = [_stored_run(run, metrics) for run in data["runs"]]
    by_directory = {run.folder.name: run for run in runs if run.folder is not None}
    found = []
    for group, text, html in groups:
        own = [by_directory[directory] for directory in group["runs"] if directory in by_directory]
        document = {**group, "runs": [run.document for run in own]}
        rows = partial(stored_rows, folder, group["runs"])
        found.append(Runs({"document": document, "text": text, "html": html, "rows": rows}, own))
    every = partial(stored_rows, folder, [run.folder.name for run in runs if run.folder] or None)
    comparisons = [
        ComparisonTable(json.loads(document), text, html, every) for document, text, html in data["comparisons"]
    ]
    sweep = data["sweep"] and SweepResult(data["sweep"], None, rows=every)
    suites = None
    if data["suites"] is not None:
        document, text, html = data["suites"]
        suites = SuiteResult(json.loads(document), text, html, every)
    scoreboard = data["scoreboard"] and json.loads(data["scoreboard"])
    return Results(folder, found, runs, comparisons, sweep, suites, scoreboard)


def _stored_run(data: Mapping[str, Any], metrics: Mapping[str, dict[str, float]]) -> Run:
    stored, document = json.loads(data["stored"]), json.loads(data["document"])
    # A run whose process was killed has no result.
    cut = {"seed": stored["seed"], "world": stored["world"], "trace_hash": None, "duration_s": stored.get("cut_at_s")}
    folder = Path(data["directory"])
    every: dict[str, Any] = {
        "scenario": stored["scenario"],
        "changes": stored.get("changes", []),
        "runs": [document or cut],
        "assertions": [],
        "expectations": [],
        "notes": [] if document else [f"the run was cut at {stored.get('cut_at_s')} s"],
    }
    values = {
        "document": every,
        "metrics": metrics.get(folder.name, {}),
        "folder": folder,
        "rows": partial(stored_rows, folder.parent.parent, [folder.name]),
        "series": None,
        "packets": None,
    }
    return Run({**data, **values}, json.loads(data["description"]), list(data["controllers"]))
