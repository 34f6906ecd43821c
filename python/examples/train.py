"""Trains a congestion controller with nine weights in less than a minute, by the cross-entropy method, and compares it.

    python train.py [--generations 15] [--figure learning.svg]

The policy is linear: in each step it changes the logarithm of its rate, by at most a tenth of its range, by a weighted sum of
features. A generation is a population of weights around the best of the previous generation. All of them are evaluated on the
same calls, on threads of the gym; each generation uses new calls. The calls of the figure are not used for training.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from paceline import gym

POPULATION, ELITE, CALLS = 24, 6, 8
HELD_OUT = range(1_000_000, 1_000_020)
BASELINES = ["gcc-tfb", "gcc-2016", "nada", "scream", "fixed"]
WEIGHTS = 9


def features(observations: np.ndarray) -> np.ndarray:
    """Returns the features of the policy, each of the order of one: `(n, WEIGHTS)`."""
    now, before = observations[:, -1], observations[:, -2]
    target, _, received, queuing, rtt, rtt_min, loss, silence = now.T
    received_ratio = np.log(np.maximum(received, 0.01) / np.maximum(target, 0.01))
    return np.stack(
        [
            np.ones(len(now)),
            np.minimum(queuing * 10.0, 3.0),
            np.sqrt(np.minimum(queuing * 10.0, 3.0)),
            np.clip((queuing - before[:, 3]) * 20.0, -2.0, 2.0),
            np.minimum((rtt - rtt_min) * 5.0, 2.0),
            np.minimum(loss * 5.0, 2.0),
            np.clip(received_ratio, -2.0, 1.0),
            np.minimum(silence * 5.0, 2.0),
            np.log(np.maximum(target, 0.01)),
        ],
        axis=1,
    )


class Policy:
    """A policy with one row of weights for each call."""

    def __init__(self, weights: np.ndarray, start: float) -> None:
        self.weights, self.at = weights, np.full(len(weights), start)

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        change = np.tanh((features(observations) * self.weights).sum(axis=1))
        self.at = np.clip(self.at + 0.1 * change, -1.0, 1.0)
        return self.at[:, None].astype(np.float32)


def evaluate(envs: gym.VectorEnv, weights: np.ndarray, seeds: list[int], start: float) -> np.ndarray:
    """Returns the mean reward of each environment over one call."""
    policy = Policy(weights, start)
    observations, _ = envs.reset(seed=seeds)
    rewards, steps, over = np.zeros(len(seeds)), 0, False
    while not over:
        observations, reward, _, truncated, _ = envs.step(policy(observations))
        rewards, steps, over = rewards + reward, steps + 1, truncated.all()
    return rewards / steps


def held_out(mean: np.ndarray, start: float) -> list[gym.Score]:
    return gym.evaluate(Policy(np.tile(mean, (len(HELD_OUT), 1)), start), seeds=HELD_OUT, history=2)


def train(generations: int) -> tuple[np.ndarray, float, list[tuple[float, float]]]:
    """Returns the weights, the initial action, and for each generation the reward on held-out calls and in the population."""
    random = np.random.default_rng(1)
    envs = gym.VectorEnv(POPULATION * CALLS, history=2)
    start = float(envs.action(500e3))
    mean, spread = np.zeros(WEIGHTS), np.full(WEIGHTS, 0.7)
    curve = []
    started = time.process_time()
    for generation in range(generations + 1):
        validation = np.mean([s.reward for s in held_out(mean, start)])
        population = mean + spread * random.standard_normal((POPULATION, WEIGHTS))
        seeds = [int(seed) for seed in random.integers(1, HELD_OUT[0], CALLS)]
        rewards = (
            evaluate(envs, np.repeat(population, CALLS, axis=0), seeds * POPULATION, start)
            .reshape(POPULATION, CALLS)
            .mean(axis=1)
        )
        curve.append((float(validation), float(rewards.mean())))
        cpu_s = time.process_time() - started
        print(
            f"{generation:2}  held out {validation:6.3f}  population {rewards.mean():6.3f}  {cpu_s:5.1f} s of CPU",
            flush=True,
        )
        best = population[np.argsort(rewards)[-ELITE:]]
        if generation < generations:
            # Takes half of the step, because a small population has large random errors.
            mean, spread = 0.5 * mean + 0.5 * best.mean(axis=0), 0.5 * spread + 0.5 * best.std(axis=0) + 0.01
    return mean, start, curve


def table(rows: dict[str, list[gym.Score]]) -> None:
    print(f"\n{'':12} {'reward':>7} {'± 95 %':>7} {'used':>6} {'delay':>8} {'loss':>7}")
    for name, scores in rows.items():
        reward = np.array([s.reward for s in scores])
        error = 1.96 * reward.std(ddof=1) / np.sqrt(len(reward))
        used, delay, loss = (np.mean([getattr(s, key) for s in scores]) for key in ("used", "delay_s", "loss"))
        print(f"{name:12} {reward.mean():7.3f} {error:7.3f} {used:6.1%} {delay * 1e3:5.0f} ms {loss:7.2%}")


def draw(path: str, curve: list[tuple[float, float]], rows: dict[str, list[gym.Score]]) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "paceline"
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4), layout="constrained")
    axes = figure.subplots()
    validation, population = np.array(curve).T
    axes.plot(population, color="0.6", linewidth=1, label="population, on training calls")
    axes.plot(validation, color="C0", linewidth=2, label="learned, on held-out calls")
    for number, name in enumerate(name for name in rows if name not in ("learned", "fixed")):
        reward = np.mean([s.reward for s in rows[name]])
        axes.axhline(reward, color=f"C{number + 1}", linestyle="--", linewidth=1, label=name)
    axes.set(xlabel="generation", ylabel="reward per step", xlim=(0, len(validation) - 1), ylim=(-0.5, 1))
    axes.legend(fontsize="small", loc="lower right")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generations", type=int, default=15)
    parser.add_argument("--figure", help="file for a plot of the learning curve")
    arguments = parser.parse_args()
    mean, start, curve = train(arguments.generations)
    rows = {"learned": held_out(mean, start)}
    rows |= {name: gym.evaluate(name, seeds=HELD_OUT) for name in BASELINES}
    table(rows)
    print("\nweights:", np.array2string(mean, precision=2))
    if arguments.figure:
        draw(arguments.figure, curve, rows)


if __name__ == "__main__":
    main()
