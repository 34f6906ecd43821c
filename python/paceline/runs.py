"""Runs and their results: the commands `run`, `compare` and `reproduce` as functions."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _paceline
from .controllers import Controller, named, with_registered
from .errors import WorldUnavailable
from .scenario import Scenario, _Request, as_scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Comparison", "Run", "Runs", "Series", "compare", "repeat", "reproduce", "run"]


class Series(NamedTuple):
    """Values over time. The arrays own the memory that the run filled; nothing was copied."""

    name: str
    unit: str
    time_s: npt.NDArray[np.float64]
    value: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.time_s)

    def mean(self, from_s: float = -np.inf, to_s: float = np.inf) -> float:
        """Returns the mean of the values from `from_s` to `to_s`."""
        first, last = np.searchsorted(self.time_s, [from_s, to_s])
        return float(self.value[first:last].mean())


class _Result(Mapping[str, Any]):
    """A JSON document of the command, as a mapping."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def __getitem__(self, key: str) -> Any:
        return self.document[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.document)

    def __len__(self) -> int:
        return len(self.document)


class Run(_Result):
    """One run. As a mapping it is the run's entry in `run --json`, such as `run["flows"]`."""

    def __init__(self, recorded: _paceline.RecordedRun) -> None:
        self._recorded = recorded
        self.all: dict[str, Any] = json.loads(recorded.document)
        """The whole document of `run --json`, with summary, assertions and notes."""
        super().__init__(self.all["runs"][0])
        self.metrics: dict[str, float] = json.loads(recorded.metrics)
        """Every metric of the whole run that has a value, by id."""
        self.series: dict[str, Series] = {s[0]: Series(*s) for s in recorded.series()}
        """Time series, such as `video.target_bps` of a flow and `forward.queue_ms` of a hop."""

    @property
    def scenario(self) -> str:
        """Id of the scenario."""
        return str(self.all["scenario"])

    @property
    def title(self) -> str:
        """Title of the scenario."""
        return self._recorded.title()

    @property
    def seed(self) -> int:
        return int(self["seed"])

    @property
    def trace_hash(self) -> str:
        """Hash over every decision of links and endpoints: equal runs have equal hashes."""
        return str(self["trace_hash"])

    @property
    def assertions(self) -> list[dict[str, Any]]:
        """Every bound of the scenario, and whether the run is within it."""
        return list(self.all["assertions"])

    @property
    def expectations(self) -> list[dict[str, Any]]:
        """Every published value with the measured value."""
        return list(self.all["expectations"])

    @property
    def notes(self) -> list[str]:
        """Remarks on the run."""
        return list(self.all["notes"])

    @property
    def capacity(self) -> dict[str, list[tuple[float, float]] | None]:
        """Capacity of each hop as steps (start in s, bit/s); `None`: unlimited."""
        return dict(self._recorded.capacity())

    def received_bps(self, flow: str, bin_s: float = 0.5) -> Series:
        """Returns the rate that a flow received, headers included, as a mean over bins."""
        arrived = self.series[f"{flow}.received_bytes"]
        ends = np.arange(0.0, float(self["duration_s"]) + bin_s, bin_s)
        sums, _ = np.histogram(arrived.time_s, ends, weights=arrived.value)
        return Series(f"{flow}.received_bps", "bit/s", ends[:-1], sums * 8.0 / bin_s)

    def plot(self) -> Figure:
        """Draws rates, queues and losses over time with matplotlib."""
        from .plot import plot

        return plot(self)

    def svg(self) -> str:
        """Draws rate and queue over time as an SVG document. Needs no other package."""
        return self._recorded.svg()

    def __repr__(self) -> str:
        flows = ", ".join(f"{f['id']} under {f['controller']}" for f in self["flows"])
        return f"<Run of {self.scenario}, seed {self.seed}: {flows}; trace {self.trace_hash}>"

    def _repr_html_(self) -> str:
        shown = ("utilization", "throughput_bps", "queue_p50_ms", "queue_p95_ms", "loss_ratio", "freeze_duration_s", "jain")
        cells = [(name, self.metrics[name]) for name in shown if name in self.metrics]
        head = "".join(f"<th>{html.escape(name)}</th>" for name, _ in cells)
        row = "".join(f"<td>{value:.4g}</td>" for _, value in cells)
        caption = html.escape(f"{self.scenario}: {self.title} (seed {self.seed}, trace {self.trace_hash})")
        return f"<p>{caption}</p><table><tr>{head}</tr><tr>{row}</tr></table>{self.svg()}"


class Runs(_Result):
    """Runs of one scenario on several seeds. As a mapping it is the document of `run --repeats N --json`."""

    @property
    def summary(self) -> dict[str, dict[str, float]]:
        """Mean, std, ci95 and n of every metric."""
        return dict(self["summary"])

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The runs, in the order of their seeds."""
        return list(self["runs"])

    def __repr__(self) -> str:
        return f"<{len(self.runs)} runs of {self['scenario']}>"

    def _repr_html_(self) -> str:
        return _table(["metric", "mean", "± 95 %", "n"], [_summary_row(n, s) for n, s in self.summary.items()])


class Comparison(_Result):
    """Runs on the same seeds under several controllers. As a mapping it is the document of `compare --json`."""

    @property
    def summary(self) -> dict[str, dict[str, dict[str, float]]]:
        """Mean, std, ci95 and n of every metric, for each controller."""
        return {c["controller"]: c["result"]["summary"] for c in self["controllers"]}

    def differences(self, controller: str) -> dict[str, dict[str, Any]]:
        """Returns the paired difference of each metric from the first controller."""
        found = next(d for d in self["differences"] if d["controller"] == controller)
        return dict(found["metrics"])

    def __repr__(self) -> str:
        return f"<{self['scenario']} under {', '.join(self.summary)}>"

    def _repr_html_(self) -> str:
        names = list(self.summary)
        first = self.summary[names[0]]
        rows = [[metric, *(_cell(self.summary[name].get(metric)) for name in names)] for metric in first]
        return _table(["metric", *names], rows)


def _cell(s: Mapping[str, Any] | None) -> str:
    if s is None:
        return "–"
    return f"{s['mean']:.4g}" + (f" ± {s['ci95']:.2g}" if s["n"] > 1 and s["ci95"] is not None else "")


def _summary_row(name: str, s: Mapping[str, Any]) -> list[str]:
    ci95 = "–" if s["ci95"] is None else f"{s['ci95']:.2g}"
    return [name, f"{s['mean']:.4g}", ci95, str(s["n"])]


def _table(head: list[str], rows: list[list[str]]) -> str:
    def line(tag: str, cells: list[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    return "<table>" + line("th", head) + "".join(line("td", row) for row in rows) + "</table>"


def _chosen(controller: Controller | str | None) -> tuple[str | None, list[Any]]:
    """Returns the controller's name, and all registered controllers with it."""
    name, own = (None, []) if controller is None else named(controller)
    return name, with_registered(own)


def _in_simulator(world: str) -> None:
    if world != "sim":
        hint = f"use the command: `paceline run SCENARIO --world {world}`"
        raise WorldUnavailable(f"the Python package supports only the world `sim`, not `{world}`", hint)


def run(
    scenario: Scenario | str | Path,
    controller: Controller | str | None = None,
    *,
    seed: int = 1,
    set: Mapping[str, Any] | None = None,
    case: str | None = None,
    world: str = "sim",
    out: str | Path | None = None,
) -> Run:
    """Makes one run, as `paceline run`: under the scenario's own controllers, or with every media flow under this one.

    `set` changes the scenario by dotted keys, `case` selects one of its cases, `out` is a folder for the events, as Parquet
    files, and the result.
    """
    _in_simulator(world)
    name, known = _chosen(controller)
    request = as_scenario(scenario)._request(set, case)
    return Run(_paceline.run(request, name, seed, known, None if out is None else Path(out)))


def repeat(
    scenario: Scenario | str | Path,
    controller: Controller | str | None = None,
    *,
    seeds: int | Sequence[int] = 10,
    set: Mapping[str, Any] | None = None,
    case: str | None = None,
    world: str = "sim",
    out: str | Path | None = None,
) -> Runs:
    """Makes runs on several seeds, on all cores, and summarises them, as `paceline run --repeats`."""
    _in_simulator(world)
    name, known = _chosen(controller)
    request = as_scenario(scenario)._request(set, case)
    return Runs(json.loads(_paceline.runs(request, name, _seeds(seeds), known, None if out is None else Path(out))))


def compare(
    scenario: Scenario | str | Path,
    controllers: Sequence[Controller | str],
    *,
    seeds: int | Sequence[int] | None = None,
    set: Mapping[str, Any] | None = None,
    case: str | None = None,
    world: str = "sim",
    out: str | Path | None = None,
) -> Comparison:
    """Makes runs on the same seeds under each controller, as `paceline compare`. The scenario's own number of seeds if `seeds`
    is `None`."""
    _in_simulator(world)
    if not controllers:
        raise ValueError("compare needs at least one controller")
    chosen = [named(c) for c in controllers]
    names, own = [name for name, _ in chosen], [c for _, more in chosen for c in more]
    if len(names) != len(dict.fromkeys(names)):
        raise ValueError(f"a controller is named twice: {', '.join(names)}")
    each = None if seeds is None else _seeds(seeds)
    into = None if out is None else Path(out)
    return Comparison(
        json.loads(_paceline.compare(as_scenario(scenario)._request(set, case), names, each, with_registered(own), into))
    )


def reproduce(
    target: Scenario | str | Path,
    controller: Controller | str | None = None,
    *,
    seeds: int | None = None,
    world: str = "sim",
) -> dict[str, Any]:
    """Gives a verdict on each published value and claim of a paper, an experiment, `all`, or a scenario. Returns the document
    of `paceline reproduce --json`. With a controller, every media flow is under it."""
    _in_simulator(world)
    requests = _targets(target)
    name, known = _chosen(controller)
    document: dict[str, Any] = json.loads(_paceline.reproduce(requests, name, seeds, known))
    return document


def _targets(target: Scenario | str | Path) -> list[_Request]:
    if isinstance(target, Scenario):
        return [target._request()]
    catalogue = json.loads(_paceline.catalogue([]))

    def selected(kind: str) -> list[str]:
        return [i for i in catalogue[kind] if target == "all" or i == target or i.startswith(f"{target}/")]

    # A formula table is not a scenario and cannot be changed.
    tables = [_Request(i, None, [], None, None) for i in selected("tables")]
    return [Scenario(i)._request() for i in selected("scenarios")] + tables or [Scenario(target)._request()]


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    return list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
