# SPDX-License-Identifier: MIT OR Apache-2.0
"""Path schedules: a path whose capacity, delay and loss change in steps, with a source and perhaps a TCP flow beside the call.

A schedule can be drawn by an optimiser, simplified step by step, and written as a scenario with bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optuna.trial import Trial

__all__ = ["BOUNDS", "Bound", "Schedule", "Step", "Tcp"]

SETTLE_S = 5
"""The bounds apply from this time on: the start is judged by the suite rfc8867."""

RETURN_S = 5
"""The bounds apply from this time after the end of a TCP flow on."""

SHORTEST_S = 15
"""The shortest schedule."""


@dataclass(frozen=True)
class Bound:
    """A bound of each scenario."""

    id: str
    metric: str
    limit: float
    is_lowest: bool
    """Whether the limit is the lowest allowed value, or the highest."""
    why: str

    def miss(self, value: float) -> float:
        """By how much a value misses the bound: 0 if it holds, less than or equal to 1."""
        if self.is_lowest:
            return max(0.0, (self.limit - value) / self.limit)
        return max(0.0, 1 - self.limit / value) if value > 0 else 0.0


BOUNDS: tuple[Bound, ...] = (
    Bound("use", "link_share", 0.5, True, "Half of what the source and the link allow, after the start (Paceline's choice)."),
    Bound(
        "queue",
        "queue_p95_ms",
        100.0,
        False,
        "100 ms of queue, as the yardstick of cellular paths, which RFC 8868, section 4.3, has as 70 ms (Paceline's choice).",
    ),
    Bound("freeze", "freeze_ratio", 0.05, False, "Video stands still for a twentieth of the time (Paceline's choice)."),
)
"""The bounds. A path on which the causal oracle misses a bound proves nothing of a controller."""


@dataclass(frozen=True)
class Step:
    """The path for some seconds."""

    seconds: int
    capacity_kbps: int
    delay_ms: int
    """One way, in both directions."""
    loss_percent: float
    """Random loss on the way of the media."""


@dataclass(frozen=True)
class Tcp:
    """A CUBIC flow beside the call."""

    start_s: int
    seconds: int


@dataclass(frozen=True)
class Schedule:
    """A path over time, with the source of the call."""

    steps: tuple[Step, ...]
    queue_ms: int
    """Drop-tail."""
    jitter_ms: int
    """Standard deviation; the order of packets stays."""
    source_kbps: int
    tcp: Tcp | None

    @classmethod
    def suggest(cls, trial: Trial) -> Schedule:
        """Draws a schedule."""
        count = trial.suggest_int("steps", 1, 4)
        steps = tuple(
            Step(
                trial.suggest_int(f"seconds_{n}", 4, 20),
                trial.suggest_int(f"capacity_kbps_{n}", 200, 20_000, log=True),
                trial.suggest_int(f"delay_ms_{n}", 5, 150, log=True),
                float(trial.suggest_categorical(f"loss_percent_{n}", [0.0, 0.5, 1.0, 2.0, 5.0])),
            )
            for n in range(count)
        )
        short = SHORTEST_S - sum(step.seconds for step in steps)
        if short > 0:
            steps = (*steps[:-1], replace(steps[-1], seconds=steps[-1].seconds + short))
        tcp = None
        if trial.suggest_categorical("tcp", [False, True]):
            tcp = Tcp(trial.suggest_int("tcp_start_s", 2, 10), trial.suggest_int("tcp_seconds", 3, 15))
        return cls(
            steps,
            trial.suggest_int("queue_ms", 50, 1500, log=True),
            int(trial.suggest_categorical("jitter_ms", [0, 2, 5, 10])),
            trial.suggest_int("source_kbps", 500, 20_000, log=True),
            tcp,
        ).lengthened()

    @property
    def seconds(self) -> int:
        """The duration."""
        return sum(step.seconds for step in self.steps)

    @property
    def window_s(self) -> tuple[int, int]:
        """The time in which the bounds apply."""
        begin = SETTLE_S if self.tcp is None else max(SETTLE_S, self.tcp.start_s + self.tcp.seconds + RETURN_S)
        return begin, self.seconds

    def lengthened(self) -> Schedule:
        """Returns the schedule with a last step that is long enough for the bounds to apply for 10 s."""
        begin, end = self.window_s
        missing = begin + 10 - end
        if missing <= 0:
            return self
        return replace(self, steps=(*self.steps[:-1], replace(self.steps[-1], seconds=self.steps[-1].seconds + missing)))

    @property
    def complexity(self) -> float:
        """How much there is to explain: steps, changes between them, losses, jitter, TCP, seconds and digits."""
        changes = sum(
            (before.capacity_kbps != after.capacity_kbps)
            + (before.delay_ms != after.delay_ms)
            + (before.loss_percent != after.loss_percent)
            for before, after in zip(self.steps, self.steps[1:], strict=False)
        )
        losses = any(step.loss_percent for step in self.steps)
        numbers = [self.queue_ms, self.source_kbps]
        numbers += [number for step in self.steps for number in (step.capacity_kbps, step.delay_ms)]
        digits = sum(len(str(number).rstrip("0")) for number in numbers)
        others = 3 * (self.tcp is not None) + 2 * (self.jitter_ms > 0) + 2 * losses
        return 3 * len(self.steps) + 2 * changes + others + 0.1 * self.seconds + 0.1 * digits

    def simpler(self) -> Iterator[Schedule]:
        """Returns schedules that are simpler in one respect, the largest simplification first."""
        for candidate in self._changed():
            longer = candidate.lengthened()
            if longer.complexity < self.complexity:
                yield longer

    def _changed(self) -> Iterator[Schedule]:
        for n in range(len(self.steps)):
            if len(self.steps) > 1:
                yield replace(self, steps=self.steps[:n] + self.steps[n + 1 :])
        if self.tcp is not None:
            yield replace(self, tcp=None)
        if self.jitter_ms:
            yield replace(self, jitter_ms=0)
        if any(step.loss_percent for step in self.steps):
            yield self._each(lambda step: replace(step, loss_percent=0.0))
        if len({step.delay_ms for step in self.steps}) > 1:
            yield self._each(lambda step: replace(step, delay_ms=self.steps[0].delay_ms))
        if len({step.capacity_kbps for step in self.steps}) > 1:
            yield self._each(lambda step: replace(step, capacity_kbps=self.steps[0].capacity_kbps))
        for n, step in enumerate(self.steps):
            if step.loss_percent:
                yield self._at(n, replace(step, loss_percent=0.0))
            if n and step.delay_ms != self.steps[n - 1].delay_ms:
                yield self._at(n, replace(step, delay_ms=self.steps[n - 1].delay_ms))
            if step.seconds > 4:
                yield self._at(n, replace(step, seconds=max(4, step.seconds // 2)))
        if self.tcp is not None and self.tcp.seconds > 3:
            yield replace(self, tcp=replace(self.tcp, seconds=max(3, self.tcp.seconds // 2)))
        for digits in (1, 2):
            yield replace(
                self,
                steps=tuple(
                    replace(
                        step, capacity_kbps=_round(step.capacity_kbps, digits), delay_ms=_round(step.delay_ms, digits)
                    )
                    for step in self.steps
                ),
                queue_ms=_round(self.queue_ms, digits),
                source_kbps=_round(self.source_kbps, digits),
            )

    def _each(self, change: Callable[[Step], Step]) -> Schedule:
        return replace(self, steps=tuple(change(step) for step in self.steps))

    def _at(self, place: int, step: Step) -> Schedule:
        return replace(self, steps=(*self.steps[:place], step, *self.steps[place + 1 :]))

    def scenario(self, id: str, title: str, controller: str, comment: str) -> str:
        """Writes the scenario, with each line of the comment before it."""
        starts = [sum(step.seconds for step in self.steps[:n]) for n in range(len(self.steps))]

        def series(values: list[str]) -> str:
            kept = [n for n, value in enumerate(values) if n == 0 or value != values[n - 1]]
            if len(kept) == 1:
                return f'"{values[0]}"'
            return "[" + ", ".join(f'["{starts[n]} s", "{values[n]}"]' for n in kept) + "]"

        delays = series([f"{step.delay_ms} ms" for step in self.steps])
        lines = [f"# {line}".rstrip() for line in comment.splitlines()]
        lines += [f'id = "{id}"', f'title = "{title}"', f'duration = "{self.seconds} s"', ""]
        lines += ["[path.forward]", f"capacity = {series([f'{step.capacity_kbps} kbps' for step in self.steps])}"]
        lines += [f"delay = {delays}", f'queue = {{ discipline = "drop-tail", limit = "{self.queue_ms} ms" }}']
        if any(step.loss_percent for step in self.steps):
            lines.append(f"loss = {series([f'{step.loss_percent:g} %' for step in self.steps])}")
        if self.jitter_ms:
            lines.append(f'jitter = {{ std = "{self.jitter_ms} ms" }}')
        lines += ["", "[path.reverse]", f"delay = {delays}", ""]
        lines += ["[[flow]]", 'id = "call"', f'controller = "{controller}"']
        lines += [f'encoder = {{ min = "50 kbps", max = "{self.source_kbps} kbps" }}']
        if self.tcp is not None:
            end = self.tcp.start_s + self.tcp.seconds
            lines += ["", "[[flow]]", 'id = "download"', 'kind = "tcp"', 'congestion = "cubic"']
            lines += [f'start = "{self.tcp.start_s} s"', f'stop = "{end} s"']
        begin, end = self.window_s
        for bound in BOUNDS:
            limits = f"[{bound.limit}, inf]" if bound.is_lowest else f"[0, {bound.limit}]"
            lines += ["", "[[assert]]", f'id = "{bound.id}"', f'metric = "{bound.metric}"']
            if bound.metric != "queue_p95_ms":
                lines.append('flow = "call"')
            lines += [f'window = ["{begin} s", "{end} s"]', f"bounds = {limits}", f'why = "{bound.why}"']
        return "\n".join(lines) + "\n"


def _round(value: int, digits: int) -> int:
    return int(float(f"{value:.{digits}g}"))
