"""Runs and what they came to: the functions of the package that answer the questions of the command."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _paceline
from .controllers import Controller, named, with_known
from .errors import WorldUnavailable
from .scenario import Ask, Scenario, of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Comparison", "Run", "Runs", "Series", "compare", "repeat", "reproduce", "run"]


class Series(NamedTuple):
    """A number over time. The arrays own the memory that the run filled; nothing was copied."""

    name: str
    unit: str
    time_s: npt.NDArray[np.float64]
    value: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.time_s)

    def mean(self, from_s: float = -np.inf, to_s: float = np.inf) -> float:
        """The mean of the values of a span."""
        first, last = np.searchsorted(self.time_s, [from_s, to_s])
        return float(self.value[first:last].mean())


class _Result(Mapping[str, Any]):
    """A document of the command's `--json`, read as a mapping."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def __getitem__(self, key: str) -> Any:
        return self.document[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.document)

    def __len__(self) -> int:
        return len(self.document)


class Run(_Result):
    """One run: as a mapping what `run --json` has of it (`run["flows"]`), and more beside it."""

    def __init__(self, watched: _paceline.Watched) -> None:
        self._watched = watched
        self.all: dict[str, Any] = json.loads(watched.document)
        """The whole document of `run --json`, with summary, assertions and notes."""
        super().__init__(self.all["runs"][0])
        self.metrics: dict[str, float] = json.loads(watched.metrics)
        """Every metric of the run as a whole that has a value, by id."""
        self.series: dict[str, Series] = {s[0]: Series(*s) for s in watched.series()}
        """What was seen over time, such as `video.target_bps` of a flow and `forward.queue_ms` of a hop."""

    @property
    def scenario(self) -> str:
        """Its id."""
        return str(self.all["scenario"])

    @property
    def title(self) -> str:
        """A line on the scenario."""
        return self._watched.title()

    @property
    def seed(self) -> int:
        return int(self["seed"])

    @property
    def trace_hash(self) -> str:
        """Over every decision of links and endpoints: equal runs have equal hashes."""
        return str(self["trace_hash"])

    @property
    def assertions(self) -> list[dict[str, Any]]:
        """Every bound of the scenario, and whether it holds."""
        return list(self.all["assertions"])

    @property
    def expectations(self) -> list[dict[str, Any]]:
        """Every published value, and what was measured."""
        return list(self.all["expectations"])

    @property
    def notes(self) -> list[str]:
        """What a reader should know."""
        return list(self.all["notes"])

    @property
    def capacity(self) -> dict[str, list[tuple[float, float]] | None]:
        """From when (s) which capacity (bit/s), by hop; None: unlimited."""
        return dict(self._watched.capacity())

    def received_bps(self, flow: str, bin_s: float = 0.5) -> Series:
        """What a flow received, headers included, as its mean over bins."""
        arrived = self.series[f"{flow}.received_bytes"]
        ends = np.arange(0.0, float(self["duration_s"]) + bin_s, bin_s)
        sums, _ = np.histogram(arrived.time_s, ends, weights=arrived.value)
        return Series(f"{flow}.received_bps", "bit/s", ends[:-1], sums * 8.0 / bin_s)

    def plot(self) -> Figure:
        """Rates, queues and losses over time, drawn by matplotlib."""
        from .plot import plot

        return plot(self)

    def svg(self) -> str:
        """Rate and queue over time, as an SVG document; needs no other package."""
        return self._watched.svg()

    def __repr__(self) -> str:
        flows = ", ".join(f"{f['id']} under {f['controller']}" for f in self["flows"])
        return f"<Run of {self.scenario}, seed {self.seed}: {flows}; trace {self.trace_hash}>"

    def _repr_html_(self) -> str:
        shown = ("utilization", "throughput_bps", "queue_p50_ms", "queue_p95_ms", "loss_ratio", "freeze_s", "jain")
        cells = [(name, self.metrics[name]) for name in shown if name in self.metrics]
        head = "".join(f"<th>{html.escape(name)}</th>" for name, _ in cells)
        row = "".join(f"<td>{value:.4g}</td>" for _, value in cells)
        caption = html.escape(f"{self.scenario}: {self.title} (seed {self.seed}, trace {self.trace_hash})")
        return f"<p>{caption}</p><table><tr>{head}</tr><tr>{row}</tr></table>{self.svg()}"


class Runs(_Result):
    """Runs of one scenario on several seeds: as a mapping what `run --repeats N --json` prints."""

    @property
    def summary(self) -> dict[str, dict[str, float]]:
        """Every metric: mean, std, ci95 and n."""
        return dict(self["summary"])

    @property
    def runs(self) -> list[dict[str, Any]]:
        """Each run, by seed."""
        return list(self["runs"])

    def __repr__(self) -> str:
        return f"<{len(self.runs)} runs of {self['scenario']}>"

    def _repr_html_(self) -> str:
        return _table(["metric", "mean", "± 95 %", "n"], [_summed(n, s) for n, s in self.summary.items()])


class Comparison(_Result):
    """The same seeds under several controllers: as a mapping what `compare --json` prints."""

    @property
    def summary(self) -> dict[str, dict[str, dict[str, float]]]:
        """Of each controller, every metric: mean, std, ci95 and n."""
        return {c["controller"]: c["result"]["summary"] for c in self["controllers"]}

    def differences(self, controller: str) -> dict[str, dict[str, Any]]:
        """What each metric is above that of the first controller, seed by seed."""
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


def _summed(name: str, s: Mapping[str, Any]) -> list[str]:
    ci95 = "–" if s["ci95"] is None else f"{s['ci95']:.2g}"
    return [name, f"{s['mean']:.4g}", ci95, str(s["n"])]


def _table(head: list[str], rows: list[list[str]]) -> str:
    def line(tag: str, cells: list[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    return "<table>" + line("th", head) + "".join(line("td", row) for row in rows) + "</table>"


def _chosen(controller: Controller | str | None) -> tuple[str | None, list[Any]]:
    """The name to run under, and all that is known."""
    name, own = (None, []) if controller is None else named(controller)
    return name, with_known(own)


def _in_simulator(world: str) -> None:
    if world != "sim":
        hint = f"`paceline run SCENARIO --world {world}` is how the command goes there"
        raise WorldUnavailable(f"the Python package has the world `sim`, not `{world}`", hint)


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
    """One run, as `paceline run` makes it: under the scenario's own controllers, or every media flow under this one.

    `set` changes the scenario by dotted keys, `case` chooses one of its cases, `out` is a folder that rows go to as Parquet
    files, beside the result.
    """
    _in_simulator(world)
    name, known = _chosen(controller)
    ask = of(scenario).ask(set, case)
    return Run(_paceline.run(ask, name, seed, known, None if out is None else Path(out)))


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
    """Runs on several seeds, on all cores, and their summary: `paceline run --repeats`."""
    _in_simulator(world)
    name, known = _chosen(controller)
    ask = of(scenario).ask(set, case)
    return Runs(json.loads(_paceline.runs(ask, name, _seeds(seeds), known, None if out is None else Path(out))))


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
    """The same seeds under each controller, as many as the scenario says unless told: `paceline compare`."""
    _in_simulator(world)
    if not controllers:
        raise ValueError("compare needs controllers")
    chosen = [named(c) for c in controllers]
    names, own = [name for name, _ in chosen], [c for _, more in chosen for c in more]
    if len(names) != len(dict.fromkeys(names)):
        raise ValueError(f"a controller is named twice: {', '.join(names)}")
    each = None if seeds is None else _seeds(seeds)
    into = None if out is None else Path(out)
    return Comparison(json.loads(_paceline.compare(of(scenario).ask(set, case), names, each, with_known(own), into)))


def reproduce(
    target: Scenario | str | Path,
    controller: Controller | str | None = None,
    *,
    seeds: int | None = None,
    world: str = "sim",
) -> dict[str, Any]:
    """A verdict on each published value and claim of a paper, an experiment, `all`, or a scenario: what `paceline reproduce
    --json` prints. With a controller, every media flow is under it."""
    _in_simulator(world)
    asks = _targets(target)
    name, known = _chosen(controller)
    document: dict[str, Any] = json.loads(_paceline.reproduce(asks, name, seeds, known))
    return document


def _targets(target: Scenario | str | Path) -> list[Ask]:
    if isinstance(target, Scenario):
        return [target.ask()]
    there = json.loads(_paceline.catalogue([]))

    def meant(kind: str) -> list[str]:
        return [i for i in there[kind] if target == "all" or i == target or i.startswith(f"{target}/")]

    # A table that a formula gives is no scenario: it has nothing to change.
    tables = [Ask(i, None, [], None, None) for i in meant("tables")]
    return [Scenario(i).ask() for i in meant("scenarios")] + tables or [Scenario(target).ask()]


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    return list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
