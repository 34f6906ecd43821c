# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs and their results: the commands `run`, `compare` and `reproduce` as functions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _paceline
from .arguments import Making, Progress, Record, controllers_of, count_of, progress_of, seed_of, seeds_of
from .controllers import Controller, named, with_registered
from .errors import ArgumentError, SeriesError
from .result import Result
from .scenario import Scenario, _Request, as_scenario
from .tables import Series, SeriesMap, Table, columns_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Comparison", "ComparisonTable", "Reproduction", "Run", "Runs", "compare", "repeat", "reproduce", "run"]


_PLOT = '<div class="plot"></div>'
"""The place of a plot in a view of the extension."""


class Run(Result):
    """One run. As a mapping it is the run's entry in `run --json`, such as `run["flows"]`. Frames have a row for each value of each
    series: `series`, `unit`, `time_s`, `value`."""

    def __init__(self, data: Mapping[str, Any], description: dict[str, Any] | None, controllers: list[str]) -> None:
        self.all: dict[str, Any] = data["document"]
        """The whole document of `run --json`, with summary, assertions and notes."""
        super().__init__(self.all["runs"][0], data["text"], data["html"], data["rows"])
        self.metrics: dict[str, float] = data["metrics"]
        """Every metric of the whole run that has a value, by id."""
        self.controllers = controllers
        """The controller of each flow."""
        self.folder: Path | None = data.get("folder")
        """The folder that stores the run; `None` for a run in memory."""
        self._description, self._series, self._packets = description, data["series"], data["packets"]

    @property
    def scenario(self) -> str:
        """Id of the scenario."""
        return str(self.all["scenario"])

    @property
    def title(self) -> str:
        """Title of the scenario."""
        return str((self._description or {}).get("title", ""))

    @property
    def world(self) -> str:
        """World that made the run."""
        return str(self["world"])

    @property
    def seed(self) -> int:
        """Its seed."""
        return int(self["seed"])

    @property
    def trace_hash(self) -> str:
        """Hash over every decision of links and endpoints: equal runs have equal hashes."""
        return str(self["trace_hash"])

    @property
    def series(self) -> SeriesMap:
        """Time series, such as `video.target_bps` of a flow and `forward.queue_ms` of a hop. Those of a stored run are read at
        the first access."""
        series: SeriesMap | None = self._series
        if series is None and self.folder is not None:
            series = self._series = SeriesMap({s[0]: Series(*s) for s in _paceline.replay(self.folder, False)[0] or []})
        if series is None:
            raise SeriesError("the run was made without series: make it with record='series'")
        return series

    @property
    def packets(self) -> Table:
        """What happened to each packet, in the columns of `packets.parquet`. Those of a stored run are read at the first
        access."""
        packets: Table | None = self._packets
        if packets is None and self.folder is not None:
            packets = self._packets = Table._of_packets(_paceline.replay(self.folder, True)[1] or [])
        if packets is None:
            raise SeriesError("the run was made without packets: make it with record='packets'")
        return packets

    @property
    def assertions(self) -> list[dict[str, Any]]:
        """Every bound of the scenario, and whether the run is within it."""
        return list(self.all["assertions"])

    @property
    def expectations(self) -> list[dict[str, Any]]:
        """Every published value with the measured value. Published values are for the scenario as written, under its own
        controller."""
        return list(self.all["expectations"])

    @property
    def notes(self) -> list[str]:
        """Remarks on the run."""
        return list(self.all["notes"])

    @property
    def capacity(self) -> dict[str, list[tuple[float, float]] | None]:
        """Capacity of each hop as steps (start in s, bit/s); `None`: unlimited."""
        hops = (self._description or {}).get("hops", [])
        return {hop["id"]: hop["capacity"] and [(at, bps) for at, bps in hop["capacity"]] for hop in hops}

    def received_bps(self, flow: str, bin_s: float = 0.5) -> Series:
        """Returns the rate that a flow received, headers included, as a mean over bins."""
        arrived = self.series[f"{flow}.received_bytes"]
        ends = np.arange(0.0, float(self["duration_s"]) + bin_s, bin_s)
        sums, _ = np.histogram(arrived.time_s, ends, weights=arrived.value)
        return Series(f"{flow}.received_bps", "bit/s", ends[:-1], sums * 8.0 / bin_s)

    def _columns(self) -> dict[str, Any]:
        series: list[Series] = list(self.series.values())
        lengths = [len(s) for s in series]
        none = np.zeros(0)
        return {
            "series": np.repeat(np.array([s.name for s in series], dtype=object), lengths),
            "unit": np.repeat(np.array([s.unit for s in series], dtype=object), lengths),
            "time_s": np.concatenate([s.time_s for s in series] or [none]),
            "value": np.concatenate([s.value for s in series] or [none]),
        }

    def plot(self) -> Figure:
        """Draws rates, queues and losses over time with matplotlib."""
        from .plot import plot_run

        return plot_run(self)

    def svg(self) -> str:
        """Draws rate and queue over time as an SVG document. Needs no other package."""
        drawn = [(s.name, s.time_s, s.value) for s in self.series.values()]
        return _paceline.svg(json.dumps(self._description), self.controllers, self.seed, drawn)

    def __repr__(self) -> str:
        flows = ", ".join(f"{f['id']} under {f['controller']}" for f in self.get("flows", []))
        return f"<Run of {self.scenario}, seed {self.seed}: {flows}; trace {self.trace_hash}>"

    def _repr_html_(self) -> str:
        return self._with_plot(self._html)

    def _with_plot(self, html: str) -> str:
        """Returns the HTML with a plot of this run, if it has series."""
        drawn = self._description is not None and (self._series is not None or self.folder is not None)
        return html.replace(_PLOT, f'<div class="plot">{self.svg()}</div>', 1) if drawn else html


class Runs(Result):
    """Runs of one scenario on several seeds. As a mapping it is the document of `run --repeats N --json`. Frames have a row for each
    run: `seed`, `trace_hash`, and each metric."""

    def __init__(self, data: Mapping[str, Any], runs: list[Run]) -> None:
        super().__init__(data["document"], data["text"], data["html"], data["rows"])
        self.runs = runs
        """The runs, in the order of their seeds."""

    @property
    def scenario(self) -> str:
        """Id of the scenario."""
        return str(self["scenario"])

    @property
    def summary(self) -> dict[str, dict[str, float]]:
        """Mean, std, ci95 and n of every metric."""
        return dict(self["summary"])

    @property
    def series(self) -> SeriesMap:
        """Each series, as a list with that of each run."""
        names = dict.fromkeys(name for run in self.runs for name in run.series)
        return SeriesMap({name: [run.series[name] for run in self.runs if name in run.series] for name in names})

    def _columns(self) -> dict[str, list[Any]]:
        return _by_run(self.runs)

    def plot(self) -> Figure:
        """Draws the mean rate and queuing delay over time, with the range of the runs, with matplotlib."""
        from .plot import plot_groups

        return plot_groups({"": self.runs})

    def __repr__(self) -> str:
        return f"<{len(self.runs)} runs of {self.scenario}>"

    def _repr_html_(self) -> str:
        # The plot is of the first run, as in the terminal.
        return self.runs[0]._with_plot(self._html) if self.runs else self._html


class ComparisonTable(Result):
    """The ranking by score, the verdict, and the quantities of each flow and stream with their differences to the first controller.
    The extension computes it, as for the command. Frames have a row for each quantity and controller: what it describes, mean, half of
    its 95 % interval, whether it is the best mean, and the difference to the first controller with its interval and verdict."""

    @property
    def verdict(self) -> str:
        """What follows from the ranking, in a few sentences."""
        return " ".join(self["verdict"])

    @property
    def ranking(self) -> list[dict[str, Any]]:
        """The controllers in order of their mean score, then those that are only shown as scale, with `place` `None`."""
        return list(self["ranking"])

    def _columns(self) -> dict[str, list[Any]]:
        units = metric_units()
        rows = []
        for row in self["rows"]:
            subject = row["subject"]
            for index, controller in enumerate(self["controllers"]):
                value, difference = row["values"][index] or {}, row["differences"][index] or {}
                rows.append(
                    {
                        "role": subject["role"],
                        "flow": subject["flow"],
                        "stream": subject["stream"],
                        "metric": row["metric"],
                        "label": row["label"],
                        "unit": units.get(row["metric"], ""),
                        "controller": controller,
                        "mean": value.get("mean"),
                        "ci95": value.get("ci95"),
                        "n": value.get("n"),
                        "best": row["best"][index],
                        "difference": difference.get("mean"),
                        "difference_interval": difference.get("interval"),
                        "verdict": difference.get("verdict"),
                        "better": difference.get("better"),
                    }
                )
        return columns_of(rows)

    def plot(self) -> Figure:
        """Draws each quantity under each controller, with its interval, with matplotlib."""
        from .plot import plot_table

        return plot_table(self)

    def __repr__(self) -> str:
        return f"<{self['scenario']} under {', '.join(self['controllers'])}>"


class Comparison(Result):
    """Runs on the same seeds under several controllers. As a mapping it is the document of `compare --json`. Frames have a row for each
    run: `controller`, `seed`, `trace_hash`, and each metric; those of `table` have the compared quantities. The first column of
    `rows` is `controller`."""

    def __init__(self, data: Mapping[str, Any], controllers: dict[str, Runs]) -> None:
        document = json.loads(data["document"])
        rows = Table._of_columns(data["rows"])
        super().__init__(document, data["text"], data["html"], rows)
        self.controllers = controllers
        """The runs under each controller, by name; the first is the baseline."""
        self.table = ComparisonTable(document["table"], data["text"], data["html"], rows)
        """The table of quantities, with the ranking and the verdict."""

    @property
    def verdict(self) -> str:
        """What follows from the ranking, in a few sentences."""
        return self.table.verdict

    @property
    def ranking(self) -> list[dict[str, Any]]:
        """The controllers in order of their mean score: `place`, `controller`, `score`, the points lost to each cause, `difference` to
        the first place, `tied` with it, and `others_keep`. Oracles and faulty controllers follow as scale, with `place` `None`."""
        return self.table.ranking

    @property
    def summary(self) -> dict[str, dict[str, dict[str, float]]]:
        """Mean, std, ci95 and n of every metric, for each controller."""
        return {name: runs.summary for name, runs in self.controllers.items()}

    @property
    def series(self) -> dict[str, SeriesMap]:
        """The series of each run, for each controller."""
        return {name: runs.series for name, runs in self.controllers.items()}

    def differences(self, controller: str) -> dict[str, dict[str, Any]]:
        """Returns the paired difference of each metric from the first controller."""
        for found in self["differences"]:
            if found["controller"] == controller:
                return dict(found["metrics"])
        others = list(self.controllers)[1:]
        raise ArgumentError(
            f"no difference of {controller!r}: compared with {self['table']['controllers'][0]} are {others}"
        )

    def _columns(self) -> dict[str, list[Any]]:
        names = [name for name, runs in self.controllers.items() for _ in runs.runs]
        return {"controller": names, **_by_run([run for runs in self.controllers.values() for run in runs.runs])}

    def plot(self) -> Figure:
        """Draws the mean rate and queuing delay over time under each controller, with the range of the runs, with matplotlib.
        `table.plot()` draws the compared quantities."""
        from .plot import plot_groups

        return plot_groups({name: runs.runs for name, runs in self.controllers.items()})

    def __repr__(self) -> str:
        return repr(self.table)


class Reproduction(Result):
    """The verdicts on published values and claims. As a mapping it is the document of `reproduce --json`. Frames have a row for each
    cell. `rows` has the simulated runs as written, without those of the null sender."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        text = data["text"]
        super().__init__(json.loads(data["document"]), text, f"<pre>{escape(text)}</pre>", Table._of_columns(data["rows"]))

    def _columns(self) -> dict[str, list[Any]]:
        rows = []
        for experiment in self["experiments"]:
            for cell in experiment["cells"]:
                case = ", ".join(f"{key}={value}" for key, value in cell["case"].items())
                fields = {key: value for key, value in cell.items() if not isinstance(value, list | dict)}
                rows.append({"experiment": experiment["id"], "case": case, **fields})
        return columns_of(rows)

    def plot(self) -> Figure:
        """Draws each measured value over the published one, with its interval, with matplotlib."""
        from .plot import plot_reproduction

        return plot_reproduction(self)

    def __repr__(self) -> str:
        cells = sum(len(experiment["cells"]) for experiment in self["experiments"])
        return f"<{', '.join(experiment['id'] for experiment in self['experiments'])}: {cells} cells>"


def _by_run(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Returns columns with a row for each run."""
    metrics = dict.fromkeys(name for run in runs for name in run.metrics)
    columns: dict[str, list[Any]] = {
        "seed": [run.seed for run in runs],
        "trace_hash": [run.trace_hash for run in runs],
    }
    return columns | {name: [run.metrics.get(name) for run in runs] for name in metrics}


def metric_units() -> dict[str, str]:
    """Returns the unit of each metric by id; empty for ratios and counts."""
    return {metric["name"]: metric["unit"] for metric in json.loads(_paceline.catalogue([]))["metrics"]}


def _runs(data: Mapping[str, Any]) -> Runs:
    """Returns runs of the extension's data."""
    description, controllers = json.loads(data["description"]), list(data["controllers"])
    rows = Table._of_columns(data["rows"])
    runs = []
    for run in data["runs"]:
        series, packets = run["series"], run["packets"]
        document = json.loads(run["document"])
        decoded = {
            "document": document,
            "rows": partial(rows._where, "seed", document["runs"][0]["seed"]),
            "metrics": json.loads(run["metrics"]),
            "series": None if series is None else SeriesMap({s[0]: Series(*s) for s in series}),
            "packets": None if packets is None else Table._of_packets(packets),
        }
        runs.append(Run({**run, **decoded}, description, controllers))
    return Runs({**data, "document": json.loads(data["document"]), "rows": rows}, runs)


def _chosen(controller: Controller | str | None) -> tuple[str | None, list[Any]]:
    """Returns the controller's name, and all registered controllers with it."""
    name, own = (None, []) if controller is None else named(controller)
    return name, with_registered(own)


def run(
    scenario: Scenario | str | Path,
    controller: Controller | str | None = None,
    *,
    seed: int = 1,
    set: Mapping[str, Any] | None = None,
    case: str | None = None,
    world: str = "sim",
    out: str | Path | None = None,
    record: Record = "packets",
) -> Run:
    """Makes one run, as `paceline run`: under the scenario's own controllers, or with every media flow under this one.

    `set` changes the scenario by dotted keys, `case` selects one of its cases, `world` is `sim`, `testbed` or `browser`, `out` is
    a folder for the events, as Parquet files, and the result. `record` is what the run keeps in memory: its `series` and
    `packets`, its series only (`"series"`), or `"nothing"` besides its results.
    """
    making = Making.of([seed_of(seed)], world, record, out)
    name, known = _chosen(controller)
    request = as_scenario(scenario)._request(set, case)
    return _runs(_paceline.runs(request, name, making, known, None)).runs[0]


def repeat(
    scenario: Scenario | str | Path,
    controller: Controller | str | None = None,
    *,
    seeds: int | Iterable[int] = 10,
    set: Mapping[str, Any] | None = None,
    case: str | None = None,
    world: str = "sim",
    out: str | Path | None = None,
    record: Record = "series",
    progress: Progress = False,
) -> Runs:
    """Makes runs on several seeds, on all cores, and summarises them, as `paceline run --repeats`. `seeds` is their number, or the
    seeds themselves. `progress` shows a bar, or is called with the seconds of runs that are done and their total. The other arguments
    are those of `run`."""
    making = Making.of(seeds_of(seeds), world, record, out)
    name, known = _chosen(controller)
    request = as_scenario(scenario)._request(set, case)
    return _runs(_paceline.runs(request, name, making, known, progress_of(progress)))


def compare(
    scenario: Scenario | str | Path,
    controllers: Sequence[Controller | str],
    *,
    seeds: int | Iterable[int] | None = None,
    set: Mapping[str, Any] | None = None,
    case: str | None = None,
    world: str = "sim",
    out: str | Path | None = None,
    record: Record = "series",
    progress: Progress = False,
) -> Comparison:
    """Makes runs on the same seeds under each controller, as `paceline compare`; the first controller is the baseline. The
    scenario's own number of seeds if `seeds` is `None`. The other arguments are those of `repeat`."""
    chosen = [named(c) for c in controllers_of(controllers)]
    names, own = [name for name, _ in chosen], [c for _, more in chosen for c in more]
    making = Making.of(None if seeds is None else seeds_of(seeds), world, record, out)
    request = as_scenario(scenario)._request(set, case)
    call = f"{(request.call or '').replace('paceline.run(', 'paceline.compare(', 1)}, controllers={names!r}"
    call += ")" if making.seeds is None else f", seeds={making.seeds!r})"
    data = _paceline.compare(request, names, making, with_registered(own), call, progress_of(progress))
    return Comparison(data, {name: _runs(runs) for name, runs in zip(names, data["controllers"], strict=True)})


def reproduce(
    target: Scenario | str | Path,
    controller: Controller | str | None = None,
    *,
    seeds: int | Iterable[int] | None = None,
    world: str = "sim",
    progress: Progress = False,
) -> Reproduction:
    """Gives a verdict on each published value and claim of a paper, an experiment, `all`, or a scenario, as `paceline reproduce`.
    With a controller, every media flow is under it. `seeds` is the number of runs of each case, on the seeds from 1 (default: as
    many as the verdicts need). `progress` is that of `repeat`."""
    requests = _targets(target)
    count = count_of(seeds, "a reproduction")
    name, known = _chosen(controller)
    return Reproduction(_paceline.reproduce(requests, name, count, known, world, progress_of(progress)))


def _targets(target: Scenario | str | Path) -> list[_Request]:
    if isinstance(target, Scenario):
        return [target._request()]
    catalogue = json.loads(_paceline.catalogue([]))

    def selected(kind: str) -> list[str]:
        return [i for i in catalogue[kind] if target == "all" or i == target or i.startswith(f"{target}/")]

    # A formula table is not a scenario and cannot be changed.
    tables = [_Request(i, None, [], None, None) for i in selected("tables")]
    return [Scenario(i)._request() for i in selected("scenarios")] + tables or [Scenario(target)._request()]
