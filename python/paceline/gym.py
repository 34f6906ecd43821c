# SPDX-License-Identifier: MIT OR Apache-2.0
"""Calls whose rate an agent controls, for reinforcement learning: gymnasium environments on the simulator.

    import gymnasium, paceline.gym
    env = gymnasium.make("paceline/Call-v0")
    envs = paceline.gym.VectorEnv(64)

In each step of 100 ms the agent sets the send rate of its flow, as a number from -1 to 1: from the flow's minimum rate to the
maximum rate of its sources, on a logarithmic scale. It observes what a sender knows (`FEATURES`), and its reward is

    min(1, goodput / share) - delay_per_s * delay - loss * lost

for its packets. `info` holds the ground truth (`TRUTHS`), which no sender knows: use it for analysis, not for training. An
episode ends, truncated, with the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

try:
    import gymnasium
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
except ImportError as missing:
    from .errors import PackageMissing

    raise PackageMissing("the gym needs gymnasium: pip install 'paceline[gym]'") from missing

from . import _paceline
from ._paceline import Decision, Feedback, SentPacket, Setup
from .arguments import seeds_of
from .controllers import Controller, SendHalf, named, with_registered
from .errors import ArgumentError
from .scenario import Scenario, _Request, as_scenario

__all__ = [
    "CALL",
    "FEATURES",
    "TRUTHS",
    "Env",
    "Quantity",
    "Score",
    "Task",
    "VectorEnv",
    "as_controller",
    "evaluate",
]

Floats = npt.NDArray[np.float32]
Policy: TypeAlias = Callable[[Floats], Floats]
"""Maps observations `(n, history, features)` to n actions."""


class Quantity(NamedTuple):
    """A quantity of an observation or of the ground truth."""

    name: str
    unit: str
    meaning: str


FEATURES: list[Quantity] = [Quantity(*q) for q in _paceline.quantities()[0]]
"""Features of an observation, in order. All are finite and not negative."""

TRUTHS: list[Quantity] = [Quantity(*q) for q in _paceline.quantities()[1]]
"""Ground truth in `info`, for each step."""


@dataclass(frozen=True)
class Task:
    """A distribution of episodes, and their reward. The seed determines the whole episode."""

    scenario: Scenario | str | Path | Sequence[Scenario | str | Path] = "gym/call"
    """A scenario, or several; each episode draws one."""
    ranges: Mapping[str, tuple[str, float, float]] = field(default_factory=dict)
    """By key of the scenario: a value with `{}` in place of a number, and the minimum and maximum of the number, such as
    `("{} kbps", 300, 3000)`. Each episode draws every `{}`, log-uniformly if both are above zero."""
    flow: str | None = None
    """The media flow that the agent controls (default: the first). The others run as in the scenario."""
    step_s: float = 0.1
    """The length of a step, s."""
    delay_per_s: float = 2.0
    """Cost of one second of delay beyond propagation."""
    loss: float = 2.0
    """Cost of losing all packets. At 1 or less, sending into a full, short queue would be rewarded."""


@dataclass(frozen=True)
class _Task:
    """A task as the extension reads it."""

    requests: list[_Request]
    ranges: list[tuple[str, str, float, float]]
    flow: str | None
    step_s: float
    delay_per_s: float
    loss: float

    @classmethod
    def from_task(cls, task: Task) -> _Task:
        one = isinstance(task.scenario, str | Path | Scenario)
        scenarios: Any = [task.scenario] if one else task.scenario
        ranges = [(key, *given) for key, given in task.ranges.items()]
        requests = [as_scenario(scenario)._request() for scenario in scenarios]
        return cls(requests, ranges, task.flow, task.step_s, task.delay_per_s, task.loss)


CALL = Task(
    "gym/call",
    ranges={
        "path.forward.capacity": ('[["0s", "{} kbps"], ["10s", "{} kbps"], ["20s", "{} kbps"]]', 300, 3000),
        "path.rtt": ("{} ms", 20, 200),
        "path.forward.queue.limit": ("{} ms", 100, 500),
    },
)
"""The task of `paceline/Call-v0`: 30 s over a link of 0.3 to 3 Mbit/s that changes twice, with a round-trip time of 20 to
200 ms and a queue of 100 to 500 ms."""


def _spaces(history: int) -> tuple[Any, Any]:
    """Returns the spaces of observations and of actions."""
    shape = (history, len(FEATURES))
    return (
        gymnasium.spaces.Box(0.0, np.inf, shape, np.float32),
        gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32),
    )


class _Rates:
    """Converts between actions and rates."""

    _gym: _paceline.Gym

    def rate_bps(self, action: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Returns the rate of an action, bit/s. If episodes differ in the flow's rate limits, those of the first apply."""
        low, high = (float(rate) for rate in self._gym.rates)
        part = (np.clip(np.asarray(action, dtype=np.float64), -1.0, 1.0) + 1.0) / 2.0
        return np.asarray(low * (high / low) ** part)

    def action(self, rate_bps: npt.ArrayLike) -> Floats:
        """Returns the action for a rate, bit/s."""
        low, high = (float(rate) for rate in self._gym.rates)
        part = np.log(np.clip(np.asarray(rate_bps, dtype=np.float64), low, high) / low) / np.log(high / low)
        return np.asarray(part * 2.0 - 1.0, dtype=np.float32)


class Env(_Rates, gymnasium.Env[Floats, Floats]):
    """One call. `paceline/Call-v0` is this on the task `CALL`."""

    metadata = {"render_modes": []}

    def __init__(self, task: Task = CALL, *, history: int = 4) -> None:
        """`history` is the number of steps in an observation, the newest last."""
        self.task, self._history = task, history
        self.observation_space, self.action_space = _spaces(history)
        self._gym = _paceline.Gym(_Task.from_task(task), 1, history, 1, with_registered())
        self._started, self._over = False, True

    def __reduce__(self) -> Any:
        """Pickles the task: the copy begins before its first episode."""
        return _made, (type(self), (self.task,), {"history": self._history})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Starts the episode of this seed, or the next one. The same seed gives the same episode, here and in `VectorEnv`;
        without ranges it is the run of `paceline run --seed`."""
        super().reset(seed=seed)
        if seed is None and not self._started:
            # Without a seed, every environment is different, as in gymnasium.
            seed = int(self.np_random.integers(1 << 32))
        observations, _, _, truths = self._gym.reset([seed])
        self._started, self._over = True, False
        return observations[0], _info(truths[0])

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        if self._over:
            raise RuntimeError("the episode is over: call reset() to start the next")
        observations, rewards, truncated, truths = self._gym.step(np.asarray(action, dtype=np.float32).reshape(-1))
        self._over = bool(truncated[0])
        return observations[0], float(rewards[0]), False, self._over, _info(truths[0])


class VectorEnv(_Rates, gymnasium.vector.VectorEnv[Floats, Floats, npt.NDArray[Any]]):
    """Many calls at once, on threads without the GIL. Each call is the same as in `Env`; the step after the last step of an
    episode starts the next episode (`AutoresetMode.NEXT_STEP`)."""

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, num_envs: int = 1, task: Task = CALL, *, history: int = 4, threads: int | None = None) -> None:
        """`threads` is the number of threads (default: the number of cores). If controllers written in Python are registered,
        there is one."""
        if num_envs < 1:
            raise ArgumentError(f"num_envs must be 1 or more, not {num_envs}")
        self.num_envs, self.task = num_envs, task
        self._arguments = {"history": history, "threads": threads}
        self.single_observation_space, self.single_action_space = _spaces(history)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._gym = _paceline.Gym(
            _Task.from_task(task), num_envs, history, min(_threads(threads), num_envs), with_registered()
        )
        self._all = np.ones(num_envs, dtype=np.bool_)
        self._started = False

    def __reduce__(self) -> Any:
        """Pickles the task: the copy begins before its first episodes."""
        return _made, (type(self), (self.num_envs, self.task), self._arguments)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Starts an episode in each environment. A single seed is that of the first; the others get consecutive seeds."""
        if seed is None and not self._started:
            seed = int(np.random.default_rng().integers(1 << 32))
        self._started = True
        if seed is None:
            seeds: list[int | None] = [None] * self.num_envs
        elif isinstance(seed, int | np.integer):
            seeds = [int(seed) + number for number in range(self.num_envs)]
        else:
            seeds = list(seed)
        observations, _, _, truths = self._gym.reset(seeds)
        return observations, self._infos(truths)

    def step(
        self, actions: Floats
    ) -> tuple[Floats, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        actions = np.asarray(actions, dtype=np.float32).reshape(-1)
        observations, rewards, truncated, truths = self._gym.step(actions)
        return observations, rewards, np.zeros(self.num_envs, dtype=np.bool_), truncated, self._infos(truths)

    def _infos(self, truths: npt.NDArray[np.float64]) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        for number, truth in enumerate(TRUTHS):
            infos[truth.name], infos[f"_{truth.name}"] = truths[:, number], self._all
        infos["seed"] = infos["seed"].astype(np.int64)
        return infos


class Score(NamedTuple):
    """The result of an episode: means over its steps."""

    seed: int
    steps: int
    reward: float
    used: float
    """Goodput divided by the flow's share, 0 to 1: the first term of the reward."""
    delay_s: float
    """Delay beyond propagation, s."""
    loss: float
    """Fraction of lost packets, of those known to be lost or received."""


def evaluate(
    controller: str | Controller | Policy | None,
    task: Task = CALL,
    *,
    seeds: int | Iterable[int] = 20,
    history: int = 4,
    threads: int | None = None,
) -> list[Score]:
    """Runs the episodes of these seeds, or of the seeds 1 to N, with the reward of an agent: under a registered controller, under the
    scenario's own (`None`), or under a policy, which maps observations `(n, history, features)` to n actions."""
    seeds = seeds_of(seeds)
    if controller is None or isinstance(controller, str | Controller):
        name, more = (None, []) if controller is None else named(controller)
        scores = _paceline.evaluate(_Task.from_task(task), name, seeds, _threads(threads), with_registered(more))
        return [Score(*score) for score in scores]
    return _evaluate_policy(controller, VectorEnv(len(seeds), task, history=history, threads=threads), seeds)


def _evaluate_policy(policy: Policy, envs: VectorEnv, seeds: list[int]) -> list[Score]:
    observations, _ = envs.reset(seed=seeds)
    active = np.ones(len(seeds), dtype=np.bool_)
    sums = np.zeros((4, len(seeds)))
    loss = np.zeros(len(seeds))
    while active.any():
        observations, rewards, _, truncated, infos = envs.step(policy(observations))
        share = infos["share_bps"]
        used = np.where(share > 0.0, np.minimum(infos["goodput_bps"] / np.maximum(share, 1.0), 1.0), 0.0)
        sums += active * np.array([np.ones(len(seeds)), rewards, used, infos["delay_s"]])
        known = infos["lost"] + infos["arrived"]
        loss = np.where(active, infos["lost"] / np.maximum(known, 1.0), loss)
        active &= ~truncated
    steps, rewards, used, delay = sums
    means = zip(seeds, steps, rewards / steps, used / steps, delay / steps, loss, strict=True)
    return [Score(int(s), int(n), float(r), float(u), float(d), float(lost)) for s, n, r, u, d, lost in means]


class _PolicyHalf(SendHalf):
    """A policy as a send half: it acts at the end of each step, on what the sender observed."""

    def __init__(self, setup: Setup, policy: Policy, step_s: float, history: int) -> None:
        self._policy, self._step_s, self._setup = policy, step_s, setup
        self._observed = np.zeros((history, len(FEATURES)), dtype=np.float32)
        self._observer: _paceline.Observer | None = None
        self._target_bps, self._next_s = float(setup.start_bps), 0.0

    def _at(self, now_s: float) -> _paceline.Observer:
        if self._observer is None:
            rates = (self._setup.start_bps, self._setup.min_bps, self._setup.max_bps)
            self._observer = _paceline.Observer(now_s, rates, self._step_s)
        return self._observer

    def handle_sent(self, now_s: float, packet: SentPacket) -> None:
        self._at(now_s).handle_sent(packet.size)

    def handle_feedback(self, now_s: float, feedback: Feedback) -> None:
        self._at(now_s).handle_feedback(now_s, feedback)

    def poll_timeout(self) -> float:
        return self._next_s

    def handle_timeout(self, now_s: float) -> None:
        observer = self._at(now_s)
        self._observed = np.concatenate([self._observed[1:], observer.observe(now_s)[np.newaxis]])
        action = np.asarray(self._policy(self._observed[np.newaxis]), dtype=np.float32).reshape(-1)
        self._target_bps = float(observer.act(float(action[0])))
        self._next_s = now_s + self._step_s

    def decision(self) -> Decision:
        return Decision(self._target_bps, padding_bps=0.0)


def as_controller(policy: Policy, name: str = "policy", *, step_s: float = 0.1, history: int = 4) -> Controller:
    """Returns a policy as a controller, which `run`, `compare` and `suite` take like any other. `step_s` and `history` are those with
    which it was trained. The same policy acts on every flow, each with its own observations, one at a time: `(1, history,
    features)`."""
    send = partial(_PolicyHalf, policy=policy, step_s=step_s, history=history)
    return Controller(name, send=send, summary="a policy of the gym")


def _info(truths: npt.NDArray[np.float64]) -> dict[str, Any]:
    info = dict(zip((truth.name for truth in TRUTHS), truths.tolist(), strict=True))
    info["seed"] = int(info["seed"])
    return info


def _made(kind: Any, arguments: tuple[Any, ...], more: dict[str, Any]) -> Any:
    """Makes an environment again."""
    return kind(*arguments, **more)


def _threads(threads: int | None) -> int:
    return os.cpu_count() or 1 if threads is None else threads


gymnasium.register(
    id="paceline/Call-v0",
    entry_point="paceline.gym:Env",
    vector_entry_point="paceline.gym:VectorEnv",
    # The run ends by itself; no wrapper needs to count steps.
    max_episode_steps=None,
)
