# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plots with matplotlib, which is imported at the first plot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _paceline
from .errors import ArgumentError, PackageMissing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .choices import Choice
    from .runs import ComparisonTable, Reproduction, Run
    from .suites import SuiteResult
    from .sweeps import SweepResult

Floats = npt.NDArray[np.float64]

MBIT = 1e6


def figure(width: float = 8, height: float = 6) -> Figure:
    """Creates a figure."""
    try:
        return shown_in_notebooks()(figsize=(width, height), layout="constrained")
    except ImportError as missing:
        raise PackageMissing("plots need matplotlib: pip install 'paceline[plot]'") from missing


@cache
def shown_in_notebooks() -> type[Figure]:
    """Returns a class of figures that notebooks show: they show others only if `pyplot` made them."""
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        def _repr_png_(self) -> bytes:
            drawn = BytesIO()
            self.savefig(drawn, format="png")
            return drawn.getvalue()

        def __reduce__(self) -> Any:
            # As a plain figure, which other programs can read.
            return Figure.__new__, (Figure,), self.__getstate__()

    return NotebookFigure


def plot_run(run: Run) -> Figure:
    """Draws rates and capacity of a run, queuing delay of hops with a capacity, and losses."""
    drawn = figure()
    rate, queue, loss = drawn.subplots(3, 1, sharex=True, height_ratios=[3, 2, 1])
    end = float(run["duration_s"])
    draw_capacity(rate, run)
    for hop in limited(run):
        if f"{hop}.queue_ms" in run.series:
            delay = run.series[f"{hop}.queue_ms"]
            queue.plot(delay.time_s, delay.value, linewidth=0.8, label=f"delay at {hop}")
    for number, flow in enumerate(f["id"] for f in run["flows"]):
        colour = f"C{number}"
        if f"{flow}.received_bytes" in run.series:
            received = run.received_bps(flow)
            rate.step(received.time_s, received.value / MBIT, where="post", color=colour, label=f"{flow} received")
        if f"{flow}.target_bps" in run.series:
            target = run.series[f"{flow}.target_bps"]
            rate.step(target.time_s, target.value / MBIT, where="post", color=colour, ls=":", label=f"{flow} target")
        if f"{flow}.fraction_lost" in run.series:
            lost = run.series[f"{flow}.fraction_lost"]
            loss.plot(lost.time_s, lost.value * 100, color=colour, label=f"{flow} lost")
    rate.set(title=f"{run.scenario}: {run.title}", ylabel="rate (Mbit/s)")
    queue.set(ylabel="queuing delay (ms)")
    loss.set(ylabel="reported loss (%)", xlabel="time (s)", xlim=(0, end))
    legends(rate, queue)
    return drawn


def plot_groups(groups: Mapping[str, Sequence[Run]]) -> Figure:
    """Draws the mean rate of each media flow and the mean queuing delay at the bottlenecks over time, for each group of runs, with
    the range of its runs."""
    drawn = figure()
    rate, queue = drawn.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    first = next(iter(groups.values()))[0]
    end = float(first["duration_s"])
    draw_capacity(rate, first)
    edges = np.linspace(0.0, end, 101)
    number = 0
    for name, runs in groups.items():
        prefix = f"{name}: " if name else ""
        for flow in (f["id"] for f in runs[0]["flows"] if f["streams"]):
            received = [per_second(run.series[f"{flow}.received_bytes"], edges) * 8 / MBIT for run in runs]
            draw_range(rate, edges, received, f"C{number}", f"{prefix}{flow} received")
            number += 1
    for index, (name, runs) in enumerate(groups.items()):
        prefix = f"{name}: " if name else ""
        for hop in limited(runs[0]):
            key = f"{hop}.queue_ms"
            delays = [binned_mean(run.series[key], edges) for run in runs if key in run.series]
            if delays:
                draw_range(queue, edges, delays, f"C{index}", f"{prefix}delay at {hop}")
    count = len(next(iter(groups.values())))
    shown = "one run" if count == 1 else f"mean and range of {count} runs"
    rate.set(title=f"{first.scenario}: {first.title}\n{shown}", ylabel="rate (Mbit/s)")
    queue.set(ylabel="queuing delay (ms)", xlabel="time (s)", xlim=(0, end))
    legends(rate, queue)
    return drawn


def plot_table(table: ComparisonTable) -> Figure:
    """Draws each quantity of a comparison under each controller, with its interval."""
    kinds = {m["name"]: m for m in json.loads(_paceline.catalogue([]))["metrics"]}
    rows, controllers = table["rows"], table["controllers"]
    columns = 3
    lines = -(-len(rows) // columns)
    drawn = figure(9, 0.9 + lines * (0.7 + 0.22 * len(controllers)))
    axes = drawn.subplots(lines, columns, squeeze=False).ravel()
    for axis, row in zip(axes, rows, strict=False):
        subject = row["subject"]
        where = "/".join(part for part in (subject["flow"], subject["stream"]) if part) or "forward bottleneck"
        unit, factor = shown_unit(kinds.get(row["metric"], {"unit": "", "kind": ""}))
        for index, value in enumerate(row["values"]):
            if value is not None:
                interval = (value["ci95"] or 0.0) * factor if value["n"] > 1 else 0.0
                axis.errorbar(value["mean"] * factor, index, xerr=interval, fmt="o", color=f"C{index}", capsize=3)
        label = f"{row['label']} ({unit})" if unit else row["label"]
        axis.set_title(f"{where}: {label}", fontsize="small")
        axis.set_yticks(range(len(controllers)), controllers, fontsize="small")
        axis.set_ylim(len(controllers) - 0.5, -0.5)
        axis.tick_params(axis="x", labelsize="small")
    for axis in axes[len(rows) :]:
        axis.axis("off")
    return drawn


def plot_sweep(sweep: SweepResult) -> Figure:
    """Draws each measure of a sweep: over the values of one key, with its interval, or of two keys as a grid."""
    # A key with one value is no axis.
    columns = range(len(sweep.keys_swept))
    varied = [n for n in columns if len({repr(point["at"][n]) for point in sweep.points}) > 1] or [0]
    keys = [sweep.keys_swept[n] for n in varied]
    points = [{**point, "at": [point["at"][n] for n in varied]} for point in sweep.points]
    if len(keys) > 2:
        raise ArgumentError(f"plots show one or two swept keys, not {len(keys)}: {', '.join(keys)}; use to_pandas()")
    kinds = {m["name"]: m for m in json.loads(_paceline.catalogue([]))["metrics"]}
    measures = sweep["measures"]
    drawn = figure(6 if len(keys) == 1 else 6.5, 2.4 * len(measures) + 0.6)
    axes = drawn.subplots(len(measures), 1, squeeze=False).ravel()
    for index, (axis, measure) in enumerate(zip(axes, measures, strict=True)):
        unit, factor = shown_unit(kinds.get(measure["metric"], {"unit": "", "kind": ""}))
        label = f"{measure['metric']} ({unit})" if unit else measure["metric"]
        means = [(point["values"][index] or {}).get("mean", np.nan) * factor for point in points]
        if len(keys) == 1:
            at, ticks = positions([point["at"][0] for point in points])
            errors = [((point["values"][index] or {}).get("ci95") or 0.0) * factor for point in points]
            axis.errorbar(at, means, yerr=errors, fmt="o-", capsize=3)
            if ticks:
                axis.set_xticks(at, ticks)
            elif any("log" in axis and keys[0] in axis["keys"] for axis in sweep["axes"]):
                axis.set_xscale("log")
            axis.set(title=measure["name"], xlabel=keys[0], ylabel=label)
        else:
            down, right = (list(dict.fromkeys(point["at"][key] for point in points)) for key in range(2))
            grid = np.full((len(down), len(right)), np.nan)
            for point, mean in zip(points, means, strict=True):
                grid[down.index(point["at"][0]), right.index(point["at"][1])] = mean
            image = axis.imshow(grid, origin="lower", aspect="auto")
            drawn.colorbar(image, ax=axis, label=label)
            axis.set_xticks(range(len(right)), [tick(value) for value in right], rotation=30)
            axis.set_yticks(range(len(down)), [tick(value) for value in down])
            axis.set(title=measure["name"], xlabel=keys[1], ylabel=keys[0])
    return drawn


def plot_reproduction(result: Reproduction) -> Figure:
    """Draws each measured value of a reproduction over the published one, with its interval and the tolerance."""
    cells = [(e["id"], c) for e in result["experiments"] for c in e["cells"] if c["published"] and c["measured"] is not None]
    if not cells:
        raise ArgumentError("no cell has a published value; use to_pandas()")
    drawn = figure(8, 1.2 + 0.25 * len(cells))
    axes = drawn.subplots()
    for line, (_, cell) in enumerate(cells):
        published, tolerance = cell["published"], (cell["tolerance"] or 0.0) / abs(cell["published"])
        axes.plot([1 - tolerance, 1 + tolerance], [line, line], color="0.85", linewidth=8, solid_capstyle="butt")
        interval = (cell["ci95"] or 0.0) / abs(published)
        axes.errorbar(cell["measured"] / published, line, xerr=interval, fmt="o", color="C0", capsize=3)
    cases = [", ".join(map(str, cell["case"].values())) for _, cell in cells]
    names = [f"{id} {c['metric']} {case}" for (id, c), case in zip(cells, cases, strict=True)]
    axes.axvline(1.0, color="0.6", linewidth=1)
    axes.set_yticks(range(len(names)), names, fontsize="small")
    axes.set(xlabel="measured / published; grey: tolerance", ylim=(len(cells) - 0.5, -0.5))
    return drawn


def plot_suites(result: SuiteResult) -> Figure:
    """Draws the mean score of each test under each controller: a grid for each suite."""
    suites, controllers = result["suites"], result.controllers
    heights = [0.22 * len(suite["tests"]) for suite in suites]
    drawn = figure(3.5 + 0.45 * len(controllers), 1.5 * len(suites) + sum(heights))
    axes = drawn.subplots(len(suites), 1, squeeze=False, height_ratios=heights).ravel()
    for axis, suite in zip(axes, suites, strict=True):
        grid = np.full((len(suite["tests"]), len(controllers)), np.nan)
        for column, row in enumerate(suite["rows"]):
            for line, made in enumerate(row["results"]):
                grid[line, column] = np.mean(made["scores"]) if made["scores"] else np.nan
        image = axis.imshow(grid, vmin=0, vmax=100, aspect="auto", cmap="RdYlGn")
        cases = [", ".join(f"{key}={value}" for key, value in test["case"].items()) for test in suite["tests"]]
        names = [f"{test['scenario']} {case}".strip() for test, case in zip(suite["tests"], cases, strict=True)]
        axis.set_yticks(range(len(names)), names, fontsize="small")
        axis.set_xticks(range(len(controllers)), controllers, fontsize="small", rotation=30, ha="right")
        axis.set_title(f"{suite['id']}: {suite['title']}", fontsize="medium")
    drawn.colorbar(image, ax=list(axes), label="score")
    return drawn


def plot_choice(choice: Choice) -> Figure:
    """Draws the score of each controller on each path, with its interval."""
    names = list(dict.fromkeys(entry["controller"] for path in choice["paths"] for entry in path["table"]["ranking"]))
    drawn = figure(1.5 + 2.5 * len(choice["paths"]), 1 + 0.3 * len(names))
    axes = drawn.subplots(1, len(choice["paths"]), squeeze=False, sharey=True).ravel()
    for axis, path in zip(axes, choice["paths"], strict=True):
        for entry in path["table"]["ranking"]:
            score, colour = entry["score"], "k" if entry["place"] is None else "C0"
            interval = score["ci95"] if score["n"] > 1 else 0.0
            axis.errorbar(score["mean"], names.index(entry["controller"]), xerr=interval, fmt="o", color=colour, capsize=3)
        axis.set(title=path["name"], xlabel="score", xlim=(0, 100), ylim=(len(names) - 0.5, -0.5))
        axis.set_yticks(range(len(names)), names)
    return drawn


def limited(run: Run) -> list[str]:
    """Returns the hops of a run that have a capacity."""
    return [hop for hop, steps in run.capacity.items() if steps]


def draw_capacity(axes: Any, run: Run) -> None:
    """Draws the capacity of each hop that has one."""
    for hop in limited(run):
        steps = run.capacity[hop] or []
        time, bps = np.array([*steps, (float(run["duration_s"]), steps[-1][1])]).T
        axes.step(time, bps / MBIT, where="post", color="0.6", linewidth=2, label=f"capacity of {hop}")


def draw_range(axes: Any, edges: Floats, runs: list[Floats], colour: str, label: str) -> None:
    """Draws the mean of several runs, and their range."""
    middle, values = (edges[:-1] + edges[1:]) / 2, np.array(runs)
    with np.errstate(invalid="ignore"):
        known = ~np.all(np.isnan(values), axis=0)
        middle, values = middle[known], values[:, known]
        axes.plot(middle, np.nanmean(values, axis=0), color=colour, label=label)
        if len(runs) > 1:
            low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
            axes.fill_between(middle, low, high, color=colour, alpha=0.2, linewidth=0)


def per_second(series: Any, edges: Floats) -> Floats:
    """Returns the sum of the values in each bin, per second."""
    sums, _ = np.histogram(series.time_s, edges, weights=series.value)
    return np.asarray(sums / np.diff(edges))


def binned_mean(series: Any, edges: Floats) -> Floats:
    """Returns the mean of the values in each bin; NaN without values."""
    sums, _ = np.histogram(series.time_s, edges, weights=series.value)
    counts, _ = np.histogram(series.time_s, edges)
    means: Floats = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
    return means


def shown_unit(metric: Mapping[str, Any]) -> tuple[str, float]:
    """Returns the unit in which values of a metric are drawn, and the factor to it."""
    if metric["unit"] == "bit/s":
        return "Mbit/s", 1 / MBIT
    if metric["kind"] in ("utilisation", "share", "loss"):
        return "%", 100.0
    return str(metric["unit"]), 1.0


def positions(values: list[Any]) -> tuple[list[float], list[str]]:
    """Returns places on an axis, and the names there if the values are not numbers."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return [float(value) for value in values], []
    return [float(index) for index in range(len(values))], [tick(value) for value in values]


def tick(value: Any) -> str:
    """Formats a value at an axis."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def legends(*axes: Any) -> None:
    """Adds legends where there are lines."""
    for axis in axes:
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize="small", loc="best")
