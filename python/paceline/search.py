# SPDX-License-Identifier: MIT OR Apache-2.0
"""Adversarial search: the path schedule on which a controller misses a bound by the most, made as simple as possible.

The optimiser is Optuna's TPE sampler. A schedule counts only if the causal oracle keeps the bound on it: then the path allows what the
controller does not do. What is found is simplified as long as most of the miss stays, and confirmed on further seeds. The journal in the
folder makes a search resumable. The runs of a batch use all cores, or the workers of a cluster.
The command `paceline search` calls this module.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import _paceline
from .calibration import _optuna
from .errors import ArgumentError, PacelineError
from .schedules import BOUNDS, Bound, Schedule, Step, Tcp
from .suites import suite

__all__ = ["Found", "search"]

ORACLE = "causal"
"""The oracle that must keep a bound."""

BATCH = 8
"""Schedules that are run at the same time."""

PLACEHOLDER = "googcc"
"""The controller in the files that are run; it is replaced. An oracle does not replace `fixed`, which also sends cross traffic."""

SEEDS = 5
"""Runs that confirm what was found."""

REPEATS = 10
"""The runs of each test of the suite that is written, at most."""

TRIED = 5
"""The best schedules, of which the first that is confirmed counts."""

KEPT = 0.8
"""The part of the miss that a simpler schedule must keep."""

PRICE_PER_SECOND = 0.002
"""What a second of a schedule costs, so that the search prefers short ones."""


@dataclass(frozen=True)
class Found:
    """What a search found."""

    controller: str
    bound: str
    schedule: Schedule | None
    """The schedule; `None` if no miss was found, or none that further seeds confirm."""
    miss: float
    """By how much the bound is missed, from 0 to 1."""
    measured: float
    """The mean over the seeds."""
    oracle: float
    """What the causal oracle has there."""
    trials: int
    name: str
    """The name of the scenario file, without `.toml`; empty without a schedule."""
    is_unconfirmed: bool = False
    """Whether a schedule missed the bound on one seed and no schedule did on all."""


@dataclass(frozen=True)
class _Outcome:
    """The controller and the oracle on a schedule."""

    measured: float
    oracle: float
    miss: float
    """0 if the oracle misses the bound, too."""
    is_confirmed: bool
    """Whether the bound fails, and holds for the oracle."""


def search(
    controller: str,
    *,
    folder: str | Path,
    bound: str = "use",
    trials: int = 200,
    seed: int = 1,
    engine: str = "threads",
    client: Any = None,
    log: Callable[[str], None] = lambda line: None,
) -> Found:
    """Searches the schedule on which a controller misses a bound by the most, and writes it as a scenario into the folder.

    `bound` is `use` (at least half of what source and link allow), `queue` (95th percentile of the queuing delay of at most 100 ms) or
    `freeze` (video stands still for at most 5 % of the time). `trials` schedules are drawn, from the random numbers of `seed`. `engine`
    and `client` are those of `paceline.suite`. The folder keeps the trials: the same call continues an interrupted search. `log` receives
    a line for each batch and each simplification."""
    if trials < 1:
        raise ArgumentError("a search needs at least one trial")
    by_id = {one.id: one for one in BOUNDS}
    if bound not in by_id:
        raise ArgumentError(f"no bound {bound!r}; the bounds are {', '.join(by_id)}")
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    task = _Task(controller, by_id[bound], seed, engine, client)
    best, count = task.explore(path, trials, log)
    if not best:
        return Found(controller, bound, None, 0.0, 0.0, 0.0, count, "")
    confirmed = [pair for pair in zip(best, task.outcomes(best, SEEDS), strict=True) if pair[1].is_confirmed]
    if confirmed:
        schedule, outcome = task.simplify(*confirmed[0], log)
    else:
        log(f"{task.name}: not confirmed on {SEEDS} seeds")
        return Found(controller, bound, None, 0.0, 0.0, 0.0, count, "", is_unconfirmed=True)
    found = Found(controller, bound, schedule, outcome.miss, outcome.measured, outcome.oracle, count, task.name)
    text = schedule.scenario(
        f"adversarial/{task.name}", f"What {controller} does badly: {bound}", controller, _comment(found, seed)
    )
    (path / f"{task.name}.toml").write_text(text, encoding="utf-8")
    return found


def _comment(found: Found, seed: int) -> str:
    bound = next(one for one in BOUNDS if one.id == found.bound)
    shown = "at least" if bound.is_lowest else "at most"
    return (
        f"Found by a search (seed {seed}, {found.trials} schedules) against {found.controller}, and simplified.\n"
        f"{found.controller} has a {bound.metric} of {found.measured:.3g}, where {shown} {bound.limit:g} is required\n"
        f"and the causal oracle has {found.oracle:.3g} (means of {SEEDS} seeds)."
    )


@dataclass(frozen=True)
class _Task:
    controller: str
    bound: Bound
    seed: int
    engine: str
    client: Any

    @property
    def name(self) -> str:
        plain = "".join(letter if letter.isalnum() or letter in "-." else "-" for letter in self.controller).strip("-.")
        return f"{plain}-{self.bound.id}-{self.seed}"

    @property
    def inputs(self) -> str:
        """A short hash of the version, the bounds and an external controller: trials of other inputs are not continued."""
        text = json.dumps([_paceline.VERSION, [asdict(one) for one in BOUNDS], self.controller])
        digest = hashlib.sha256(text.encode())
        # An external controller may have been compiled again.
        for word in self.controller.partition(":")[2].split():
            if Path(word).is_file():
                digest.update(Path(word).read_bytes())
        return digest.hexdigest()[:8]

    def explore(self, folder: Path, trials: int, log: Callable[[str], None]) -> tuple[list[Schedule], int]:
        """Draws schedules. Returns the best of those that miss the bound, the best first, and the number of all schedules."""
        optuna = _optuna()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        journal = folder / f"{self.name}-{self.inputs}.journal"
        storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(journal)))
        study = optuna.create_study(study_name=self.name, storage=storage, direction="maximize", load_if_exists=True)
        # A resumed search continues with other random numbers than an uninterrupted one would.
        drawn = (self.seed, len(study.trials))
        seed = int.from_bytes(hashlib.sha256(repr(drawn).encode()).digest()[:4], "big")
        study.sampler = optuna.samplers.TPESampler(
            seed=self.seed if not study.trials else seed, n_startup_trials=max(10, trials // 4)
        )

        def finished() -> int:
            return sum(trial.state == optuna.trial.TrialState.COMPLETE for trial in study.trials)

        while (done := finished()) < trials:
            asked = [study.ask() for _ in range(min(BATCH, trials - done))]
            schedules = [Schedule.suggest(trial) for trial in asked]
            for trial, schedule, outcome in zip(asked, schedules, self.outcomes(schedules, 1), strict=True):
                trial.set_user_attr("schedule", asdict(schedule))
                trial.set_user_attr("miss", outcome.miss)
                study.tell(trial, outcome.miss - PRICE_PER_SECOND * schedule.seconds)
            worst = max(trial.user_attrs["miss"] for trial in study.trials if "miss" in trial.user_attrs)
            log(f"{self.name}: {finished()} of {trials} schedules, largest miss {worst:.2f}")
        found = [trial for trial in study.trials if trial.user_attrs.get("miss", 0.0) > 0]
        found.sort(key=lambda trial: trial.value, reverse=True)
        return [_schedule(trial.user_attrs["schedule"]) for trial in found[:TRIED]], finished()

    def simplify(
        self, schedule: Schedule, outcome: _Outcome, log: Callable[[str], None]
    ) -> tuple[Schedule, _Outcome]:
        """Makes a schedule simpler as long as most of its miss stays. Returns it with its outcome on all seeds."""
        least = KEPT * outcome.miss
        while True:
            candidates = list(schedule.simpler())
            if not candidates:
                return schedule, outcome
            outcomes = self.outcomes(candidates, SEEDS)
            kept = [pair for pair in zip(candidates, outcomes, strict=True) if pair[1].is_confirmed and pair[1].miss >= least]
            if not kept:
                return schedule, outcome
            schedule, outcome = min(kept, key=lambda pair: pair[0].complexity)
            log(f"{self.name}: {len(schedule.steps)} steps, {schedule.seconds} s, miss {outcome.miss:.2f}")

    def outcomes(self, schedules: Sequence[Schedule], seeds: int) -> list[_Outcome]:
        """Runs the controller and the oracle on each schedule."""
        with tempfile.TemporaryDirectory() as folder:
            names = [f"path-{n}" for n in range(len(schedules))]
            for name, schedule in zip(names, schedules, strict=True):
                text = schedule.scenario(f"search/{name}", name, PLACEHOLDER, "")
                (Path(folder) / f"{name}.toml").write_text(text, encoding="utf-8")
            listed = ", ".join(f'"{name}"' for name in names)
            manifest = Path(folder) / "search.suite.toml"
            manifest.write_text(f'id = "search"\ntitle = "Schedules"\nscenarios = [{listed}]\n', encoding="utf-8")
            report = suite(
                str(manifest),
                controllers=[self.controller, ORACLE],
                seeds=seeds,
                engine=self.engine,
                client=self.client,
            )
        own, oracle = report["suites"][0]["rows"]
        place = [one.id for one in BOUNDS].index(self.bound.id)
        pairs = zip(own["results"], oracle["results"], strict=True)
        return [self._outcome(ours["bounds"][place], theirs["bounds"][place]) for ours, theirs in pairs]

    def _outcome(self, ours: dict[str, Any], theirs: dict[str, Any]) -> _Outcome:
        # A run without a value, such as one in which nothing arrived, has none of what the bound wants.
        nothing = 0.0 if self.bound.is_lowest else 1e9
        measured = nothing if ours["measured"] is None else float(ours["measured"])
        oracle = nothing if theirs["measured"] is None else float(theirs["measured"])
        miss = self.bound.miss(measured) if theirs["pass"] else 0.0
        return _Outcome(measured, oracle, miss, theirs["pass"] and ours["verdict"] == "fails")


def _schedule(fields: dict[str, Any]) -> Schedule:
    steps = tuple(Step(**step) for step in fields["steps"])
    tcp = None if fields["tcp"] is None else Tcp(**fields["tcp"])
    return Schedule(**{**fields, "steps": steps, "tcp": tcp})


def _manifest(folder: Path, found: Sequence[Found]) -> Path:
    listed = ", ".join(f'"{one.name}"' for one in found)
    path = folder / "adversarial.suite.toml"
    title = "Paths that a search found, each against one controller"
    path.write_text(f'id = "adversarial"\ntitle = "{title}"\nrepeats = {REPEATS}\nscenarios = [{listed}]\n', encoding="utf-8")
    return path


def main() -> None:
    """Runs `paceline search` with the arguments of this process."""
    parser = argparse.ArgumentParser(prog="paceline search")
    parser.add_argument("controllers")
    parser.add_argument("--out", required=True)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--searches", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bounds", default=",".join(bound.id for bound in BOUNDS))
    given = parser.parse_args()
    bounds = given.bounds.split(",")
    found = []
    try:
        for controller in given.controllers.split(","):
            for n in range(given.searches):
                one = search(
                    controller,
                    folder=given.out,
                    bound=bounds[n % len(bounds)],
                    trials=given.trials,
                    seed=given.seed + n // len(bounds),
                    log=lambda line: print(line, file=sys.stderr, flush=True),
                )
                found.append(one)
    except PacelineError as error:
        print(f"  × {error}", file=sys.stderr)
        sys.exit(2)
    for one in found:
        print(_line(one))
    written = [one for one in found if one.schedule is not None]
    if written:
        manifest = _manifest(Path(given.out), written)
        print(f"\nthe scenarios are a suite: paceline suite {manifest} --controllers all")


def _line(found: Found) -> str:
    if found.schedule is None:
        if found.is_unconfirmed:
            return f"{found.controller}, {found.bound}: a miss on one seed, none on {SEEDS} ({found.trials} schedules)"
        return f"{found.controller} keeps the bound `{found.bound}` where the oracle does ({found.trials} schedules)"
    bound = next(one for one in BOUNDS if one.id == found.bound)
    return (
        f"{found.name}: {bound.metric} {found.measured:.3g} (bound {bound.limit:g}, causal oracle {found.oracle:.3g}), "
        f"{len(found.schedule.steps)} steps, {found.schedule.seconds} s"
    )


if __name__ == "__main__":
    main()
