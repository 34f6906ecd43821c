# SPDX-License-Identifier: MIT OR Apache-2.0
"""Calibration: a search for the values of assumed constants that reproduce most of a paper, judged on experiments that took no part.

A paper leaves constants open. Each has an assumed value and a printed range. The search changes them within their ranges and
counts the cells that are reproduced on one half of the experiments; the other half judges the result. The same search for
a wrong controller shows how much calibration alone can reproduce. A value found here never becomes a default.

The optimiser is Optuna's TPE sampler. Its journal in the folder makes a search resumable. The runs of a trial use all cores.
The command `paceline calibrate` calls this module.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _paceline
from .errors import ArgumentError, PacelineError, PackageMissing, ScenarioError
from .scenario import Scenario, _Request

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from optuna.trial import Trial

__all__ = ["Calibration", "Constant", "Score", "Search", "calibrate"]

Half = Literal["first", "second"]

_BASE: dict[str, tuple[str, float]] = {
    "bps": ("bps", 1.0),
    "kbps": ("bps", 1e3),
    "Mbps": ("bps", 1e6),
    "us": ("us", 1.0),
    "ms": ("us", 1e3),
    "s": ("us", 1e6),
    "B": ("B", 1.0),
    "KB": ("B", 1e3),
    "packets": ("packets", 1.0),
    "%": ("%", 1.0),
    "": ("", 1.0),
}
"""Each unit of a constant, as a unit in which whole numbers are fine enough, and how many of these it has."""

_SHOWN: dict[str, tuple[str, float]] = {"bps": ("kbit/s", 1e3), "us": ("ms", 1e3), "B": ("KB", 1e3)}
"""The unit of an axis, and how many base units it has."""

_LOGARITHMIC = 5.0
"""A range whose ends differ by this factor or more is searched on a logarithmic scale."""


@dataclass(frozen=True)
class Constant:
    """A constant that a paper leaves open, with its range."""

    id: str
    key: str
    value: str
    low: str
    high: str
    experiments: tuple[str, ...]
    """The experiments that assume it."""

    def suggest(self, trial: Trial) -> str:
        """Returns the value that the optimiser tries, as a scenario would write it."""
        lowest, highest = _number(self.low), _number(self.high)
        if lowest is None or highest is None:
            return str(trial.suggest_categorical(self.id, list(dict.fromkeys([self.low, self.value, self.high]))))
        (low, unit, _), (high, _, _) = lowest, highest
        whole = all(number is not None and number[2] for number in map(_number, (self.low, self.value, self.high)))
        log = low > 0 and high / low >= _LOGARITHMIC
        if unit or whole:
            return f"{float(f'{trial.suggest_int(self.id, round(low), round(high), log=log):.3g}'):.0f} {unit}".strip()
        return f"{trial.suggest_float(self.id, low, high, log=log):.3g}"

    def points(self) -> list[tuple[Any, str]]:
        """Returns values over the range, as the optimiser names them and as a scenario would write them: five of a number, all of
        a choice."""
        lowest, highest = _number(self.low), _number(self.high)
        if lowest is None or highest is None:
            return [(value, value) for value in dict.fromkeys([self.low, self.value, self.high])]
        (low, unit, _), (high, _, _) = lowest, highest
        whole = all(number is not None and number[2] for number in map(_number, (self.low, self.value, self.high)))
        found = []
        for n in range(5):
            value = low * (high / low) ** (n / 4) if _is_logarithmic(self) else low + (high - low) * n / 4
            text = f"{float(f'{value:.3g}'):.0f} {unit}".strip() if unit or whole else f"{value:.3g}"
            found.append((float(text.split()[0]), text))
        return found

    def assumed(self) -> Any:
        """Returns the assumed value as the optimiser names it."""
        number = _number(self.value)
        if number is None or _number(self.low) is None:
            return self.value
        value, unit, _ = number
        whole = all(end is not None and end[2] for end in map(_number, (self.low, self.value, self.high)))
        return round(value) if unit or whole else value


@dataclass(frozen=True)
class Score:
    """The cells that are evidence, and how many of them are reproduced."""

    reproduced: int
    cells: int

    def __str__(self) -> str:
        return f"{self.reproduced} of {self.cells}"


@dataclass(frozen=True)
class Search:
    """The best of the trials of one controller."""

    controller: str | None
    """The controller of every media flow; those of the experiments if `None`."""
    constants: dict[str, str]
    """The best values."""
    own: Score
    """On the half that was searched."""
    other: Score
    """On the half that took no part."""
    trials: int


@dataclass(frozen=True)
class Calibration:
    """The result for a paper."""

    paper: str
    half: Half
    searched: tuple[str, ...]
    """The experiments that were searched."""
    judged: tuple[str, ...]
    """The experiments that took no part."""
    seeds: int
    constants: tuple[Constant, ...]
    as_read: tuple[Score, Score]
    """With the assumed values: on the searched half and on the other one."""
    best: Search
    wrong: tuple[Search, ...]
    profiles: dict[str, list[tuple[Any, int]]]
    """By constant: values over its range, and the cells of the searched half whose mean is within the tolerance, with all other
    constants at their best values."""

    @property
    def pinned(self) -> dict[str, bool]:
        """By constant: whether the data pin it down, that is, whether at least two cells fewer are reproduced at one end of its range
        than at the best of these values. One cell is less than other seeds change."""
        return {name: _is_pinned([cells for _, cells in points]) for name, points in self.profiles.items()}

    def table(self) -> str:
        """Returns the four columns as a Markdown table."""
        rows = [("as read", *self.as_read), ("calibrated", self.best.own, self.best.other)]
        rows += [(f"`{search.controller}`, calibrated", search.own, search.other) for search in self.wrong]
        lines = ["| | half that was searched | other half |", "|---|---:|---:|"]
        return "\n".join(lines + [f"| {name} | {own} | {other} |" for name, own, other in rows])

    def plot(self) -> Figure:
        """Draws the cells that are reproduced over the value of each constant, with the assumed value."""
        try:
            from matplotlib.figure import Figure
        except ImportError as missing:
            raise PackageMissing("plots need matplotlib: pip install 'paceline[plot]'") from missing
        columns = 3
        rows = math.ceil(len(self.constants) / columns)
        figure = Figure(figsize=(4 * columns, 2.6 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).flat
        pinned = self.pinned
        for axis, constant in zip(axes, self.constants, strict=False):
            points = self.profiles.get(constant.id, [])
            number = _number(constant.low)
            unit, scale = _SHOWN.get(number[1], (number[1], 1.0)) if number else ("", None)
            shown = [str(value).strip('"') if scale is None else float(value) / scale for value, _ in points]
            assumed = constant.assumed()
            style = {"color": "tab:blue", "marker": "o", "linestyle": "none" if scale is None else "-"}
            axis.plot(shown, [cells for _, cells in points], **style)
            axis.axvline(
                str(assumed).strip('"') if scale is None else float(assumed) / scale, color="tab:orange", linestyle="--"
            )
            if _is_logarithmic(constant):
                axis.set_xscale("log")
            if scale is not None:
                ends = [shown[0], shown[len(shown) // 2], shown[-1]]
                axis.set_xticks(ends, [f"{value:g}" for value in ends])
                axis.minorticks_off()
            axis.set_ylim(0, max(cells for _, cells in points) + 1)
            axis.set_title(constant.id + (" (pinned)" if pinned[constant.id] else ""), fontsize=10)
            axis.set_xlabel(unit)
            axis.set_ylabel("cells reproduced")
        for axis in list(figure.axes)[len(self.constants) :]:
            axis.set_visible(False)
        figure.suptitle(f"{self.paper}: cells of the searched half, one constant at a time; dashed: the assumed value")
        return figure


def calibrate(
    paper: str,
    *,
    folder: str | Path,
    trials: int = 60,
    seeds: int = 3,
    half: Half = "first",
    wrong: Sequence[str] = ("fixed",),
    log: Callable[[str], None] = lambda line: None,
) -> Calibration:
    """Searches the assumed constants of a paper on one half of its experiments, and judges them on the other.

    The experiments are sorted by name; `first` is every other one, beginning with the first. `trials` is the budget of each
    search, including a first one with the assumed values; a trial makes `seeds` runs of each case. `wrong` names controllers that are searched with the same budget.
    The folder keeps the trials: the same call continues an interrupted search. `log` receives a line for each trial."""
    if trials < 1 or seeds < 1:
        raise ArgumentError("a calibration needs at least one trial and one seed")
    if half not in ("first", "second"):
        raise ArgumentError(f"half must be 'first' or 'second', not {half!r}")
    _optuna()
    catalogue = json.loads(_paceline.catalogue([]))
    known = {entry["name"] for entry in catalogue["controllers"]}
    unknown = [name for name in wrong if name not in known]
    if unknown:
        raise ArgumentError(f"no controller {unknown[0]!r}; `paceline list controllers` shows all")
    scenarios = [name for name in catalogue["scenarios"] if name.startswith(f"{paper}/")]
    requests = {name: Scenario(name)._request() for name in scenarios}
    names = sorted(name for name, request in requests.items() if json.loads(_paceline.constants([request])))
    if len(names) < 2:
        raise ArgumentError(f"{paper!r} has fewer than two experiments with assumed constants")
    chosen = tuple(names[0::2] if half == "first" else names[1::2])
    rest = tuple(name for name in names if name not in chosen)
    constants = _constants([requests[name] for name in names])
    evidence = _Evidence.of([requests[name] for name in names])
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    task = _Task(paper, half, [requests[n] for n in chosen], [requests[n] for n in rest], constants, evidence, seeds)
    as_read = task.score(None, {}, chosen=True), task.score(None, {}, chosen=False)
    best = task.search(None, trials, path, log)
    profiles = task.profiles(best.constants, path, log)
    others = tuple(task.search(name, trials, path, log) for name in wrong)
    result = Calibration(paper, half, chosen, rest, seeds, constants, as_read, best, others, profiles)
    (path / f"{paper}-{half}.json").write_text(json.dumps(asdict(result), indent=1) + "\n", encoding="utf-8")
    return result


def _constants(requests: list[_Request]) -> tuple[Constant, ...]:
    found: dict[str, dict[str, Any]] = {}
    for one in json.loads(_paceline.constants(requests)):
        experiment = one.pop("experiment")
        found.setdefault(one["id"], {**one, "experiments": []})["experiments"].append(experiment)
    return tuple(Constant(**{**one, "experiments": tuple(one["experiments"])}) for one in found.values())


def _optuna() -> Any:
    try:
        import optuna
        import optuna.storages.journal
    except ImportError as missing:
        raise PackageMissing("a calibration needs optuna: pip install 'paceline[calibrate]'") from missing
    return optuna


@dataclass(frozen=True)
class _Evidence:
    """The places of the cells that neither the null sender nor a fitted constant reproduces, by experiment."""

    cells: Mapping[str, frozenset[int]]

    @classmethod
    def of(cls, requests: list[_Request]) -> _Evidence:
        report = json.loads(_paceline.trial(requests, None, None, [], True))
        places = {
            experiment["id"]: frozenset(
                place
                for place, cell in enumerate(experiment["cells"])
                if not cell["null_reproduces"] and cell.get("fitted") is None
            )
            for experiment in report["experiments"]
        }
        return cls(places)


@dataclass(frozen=True)
class _Task:
    paper: str
    half: Half
    chosen: list[_Request]
    rest: list[_Request]
    constants: tuple[Constant, ...]
    evidence: _Evidence
    seeds: int

    @property
    def inputs(self) -> str:
        """A short hash of the version, the constants and the cells that count: trials of other inputs are not continued."""
        cells = {name: sorted(places) for name, places in self.evidence.cells.items()}
        text = json.dumps([_paceline.VERSION, [asdict(constant) for constant in self.constants], cells], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def cells(
        self, controller: str | None, values: Mapping[str, str], seeds: int | None, *, chosen: bool
    ) -> list[dict[str, Any]]:
        requests = self.chosen if chosen else self.rest
        report = json.loads(_paceline.trial(requests, controller, seeds, list(values.items()), False))
        return [
            cell
            for experiment in report["experiments"]
            for place, cell in enumerate(experiment["cells"])
            if place in self.evidence.cells[experiment["id"]]
        ]

    def score(self, controller: str | None, values: Mapping[str, str], *, chosen: bool) -> Score:
        """The verdicts, on as many seeds as they need."""
        cells = self.cells(controller, values, None, chosen=chosen)
        return Score(sum(cell["verdict"] == "reproduced" for cell in cells), len(cells))

    def profiles(
        self, best: dict[str, str], folder: Path, log: Callable[[str], None]
    ) -> dict[str, list[tuple[Any, int]]]:
        """Changes one constant at a time from the best values. The file keeps what was computed."""
        path = folder / f"{self.paper}-{self.half}-profiles-{self.seeds}-{self.inputs}.json"
        known: dict[str, int] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        found: dict[str, list[tuple[Any, int]]] = {}
        for constant in self.constants:
            for value, text in constant.points():
                values = {**best, constant.id: text}
                key = json.dumps(values, sort_keys=True)
                if key not in known:
                    near = [_near(cell) for cell in self.cells(None, values, self.seeds, chosen=True)]
                    known[key] = near.count(1.0)
                    path.write_text(json.dumps(known), encoding="utf-8")
                    log(f"{self.paper}: {constant.id} = {text}, {known[key]} cells")
                found.setdefault(constant.id, []).append((value, known[key]))
        return found

    def search(self, controller: str | None, trials: int, folder: Path, log: Callable[[str], None]) -> Search:
        optuna = _optuna()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        name = f"{self.paper}-{self.half}-{controller or 'own'}-{self.seeds}"
        journal = folder / f"{name}-{self.inputs}.journal"
        storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(journal)))
        # A resumed search continues with other random numbers than an uninterrupted one would.
        study = optuna.create_study(
            study_name=name,
            storage=storage,
            direction="maximize",
            load_if_exists=True,
            sampler=optuna.samplers.TPESampler(seed=1, multivariate=True, n_startup_trials=max(10, trials // 4)),
        )
        if not study.trials:
            study.enqueue_trial({constant.id: constant.assumed() for constant in self.constants})

        def objective(trial: Trial) -> float:
            values = {constant.id: constant.suggest(trial) for constant in self.constants}
            trial.set_user_attr("constants", values)
            try:
                cells = self.cells(controller, values, self.seeds, chosen=True)
            except ScenarioError as error:
                # Within their ranges constants may still contradict each other, such as a start rate below the lowest rate.
                log(f"{name}: trial {trial.number + 1} left out: its constants contradict each other")
                raise optuna.TrialPruned from error
            # A few seeds are too few for intervals: the mean alone counts here, and the verdicts in the result.
            near = [_near(cell) for cell in cells]
            score = Score(near.count(1.0), len(cells))
            log(f"{name}: trial {finished() + 1} of {trials}, {score}")
            # Closeness, below 1 in sum, decides between equal counts.
            return score.reproduced + 0.99 * sum(near) / max(len(near), 1)

        def finished() -> int:
            return sum(trial.state == optuna.trial.TrialState.COMPLETE for trial in study.trials)

        while finished() < trials:
            if len(study.trials) > 4 * trials:
                raise ArgumentError(f"most combinations of the constants of {self.paper!r} contradict each other")
            study.optimize(objective, n_trials=trials - finished())
        best = study.best_trial.user_attrs["constants"]
        own, other = (self.score(controller, best, chosen=chosen) for chosen in (True, False))
        return Search(controller, best, own, other, finished())


def _near(cell: dict[str, Any]) -> float:
    """How near the mean is to the tolerance or the bounds: 1 within, 1/2 at twice the tolerance."""
    measured = cell["measured"]
    if measured is None:
        return 0.0
    if cell["published"] is not None:
        distance = abs(measured - cell["published"]) / max(cell["tolerance"], 1e-12) - 1
    else:
        low, high = (math.nan if end is None else end for end in cell["bounds"])
        outside = max((low - measured if low == low else 0.0), (measured - high if high == high else 0.0), 0.0)
        ends = [abs(end) for end in (low, high) if end == end]
        distance = outside / (0.25 * max([*ends, 1e-9]))
    return 1.0 if distance < 1e-9 else 1 / (1 + float(distance))


def _number(text: str) -> tuple[float, str, bool] | None:
    """Returns a value in its base unit, and whether it is a whole number; `None` for a name."""
    found = re.fullmatch(r"\s*([-+]?[0-9.]+(?:e[-+]?[0-9]+)?)\s*([A-Za-z%]*)\s*", text.strip('"'))
    if found is None or found[2] not in _BASE:
        return None
    unit, factor = _BASE[found[2]]
    return float(found[1]) * factor, unit, "." not in found[1] and "e" not in found[1]


def _is_logarithmic(constant: Constant) -> bool:
    low, high = _number(constant.low), _number(constant.high)
    return low is not None and high is not None and low[0] > 0 and high[0] / low[0] >= _LOGARITHMIC


def _is_pinned(cells: list[int]) -> bool:
    return max(cells) - min(cells[0], cells[-1]) >= 2


def main() -> None:
    """Runs `paceline calibrate` with the arguments of this process."""
    parser = argparse.ArgumentParser(prog="paceline calibrate")
    parser.add_argument("paper")
    parser.add_argument("--out", required=True)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--half", choices=("first", "second"), default="first")
    parser.add_argument("--wrong", default="fixed")
    given = parser.parse_args()
    try:
        result = calibrate(
            given.paper,
            folder=given.out,
            trials=given.trials,
            seeds=given.seeds,
            half=given.half,
            wrong=[name for name in given.wrong.split(",") if name],
            log=lambda line: print(line, file=sys.stderr, flush=True),
        )
    except PacelineError as error:
        print(f"  × {error}", file=sys.stderr)
        sys.exit(2)
    print(f"{result.paper}: searched {', '.join(result.searched)}; judged {', '.join(result.judged)}\n")
    print(result.table())
    print("\nthe best values; * pinned down by the data:")
    for constant in result.constants:
        mark = "*" if result.pinned[constant.id] else " "
        best, assumed = (value.strip('"') for value in (result.best.constants[constant.id], constant.value))
        print(f"  {mark} {constant.id} = {best} (assumed {assumed})")
    print(f"\nthe result is in {Path(given.out) / f'{result.paper}-{result.half}.json'}")


if __name__ == "__main__":
    main()
