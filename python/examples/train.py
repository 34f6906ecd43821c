"""Trains a congestion controller of nine numbers in less than a minute, by the cross-entropy method, and says how it compares.

    python train.py [--generations 15] [--figure learning.svg]

The policy is linear: each step it moves the logarithm of its rate by at most a tenth of its range, by a weighted sum of
what it saw. A generation is a crowd of weights around the best of the last one, each flown on the same calls, on threads of
the gym; new calls in each generation. The calls that the figure shows are never learned from.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from paceline import gym

CROWD, ELITE, CALLS = 24, 6, 8
HELD_OUT = range(1_000_000, 1_000_020)
BASELINES = ["gcc-tfb", "gcc-2016", "nada", "scream", "fixed"]
WEIGHTS = 9


def signals(seen: np.ndarray) -> np.ndarray:
    """What the policy looks at, each of the order of one: `(n, WEIGHTS)`."""
    now, before = seen[:, -1], seen[:, -2]
    target, _, received, queuing, rtt, rtt_min, loss, silence = now.T
    attained = np.log(np.maximum(received, 0.01) / np.maximum(target, 0.01))
    return np.stack(
        [
            np.ones(len(now)),
            np.minimum(queuing * 10.0, 3.0),
            np.sqrt(np.minimum(queuing * 10.0, 3.0)),
            np.clip((queuing - before[:, 3]) * 20.0, -2.0, 2.0),
            np.minimum((rtt - rtt_min) * 5.0, 2.0),
            np.minimum(loss * 5.0, 2.0),
            np.clip(attained, -2.0, 1.0),
            np.minimum(silence * 5.0, 2.0),
            np.log(np.maximum(target, 0.01)),
        ],
        axis=1,
    )


class Policy:
    """One row of weights for each call that is flown."""

    def __init__(self, weights: np.ndarray, start: float) -> None:
        self.weights, self.at = weights, np.full(len(weights), start)

    def __call__(self, seen: np.ndarray) -> np.ndarray:
        wanted = np.tanh((signals(seen) * self.weights).sum(axis=1))
        self.at = np.clip(self.at + 0.1 * wanted, -1.0, 1.0)
        return self.at[:, None].astype(np.float32)


def fly(envs: gym.VectorEnv, weights: np.ndarray, seeds: list[int], start: float) -> np.ndarray:
    """The mean reward of each seat over one call."""
    policy = Policy(weights, start)
    seen, _ = envs.reset(seed=seeds)
    rewards, steps, over = np.zeros(len(seeds)), 0, False
    while not over:
        seen, reward, _, truncated, _ = envs.step(policy(seen))
        rewards, steps, over = rewards + reward, steps + 1, truncated.all()
    return rewards / steps


def held_out(mean: np.ndarray, start: float) -> list[gym.Score]:
    return gym.evaluate(Policy(np.tile(mean, (len(HELD_OUT), 1)), start), seeds=HELD_OUT, history=2)


def train(generations: int) -> tuple[np.ndarray, float, list[tuple[float, float]]]:
    """The weights, the action they start from, and the reward on the held-out calls and in the crowd, by generation."""
    random = np.random.default_rng(1)
    envs = gym.VectorEnv(CROWD * CALLS, history=2)
    start = float(envs.action(500e3))
    mean, spread = np.zeros(WEIGHTS), np.full(WEIGHTS, 0.7)
    curve = []
    began = time.process_time()
    for generation in range(generations + 1):
        kept = np.mean([s.reward for s in held_out(mean, start)])
        crowd = mean + spread * random.standard_normal((CROWD, WEIGHTS))
        seeds = [int(seed) for seed in random.integers(1, HELD_OUT[0], CALLS)]
        rewards = fly(envs, np.repeat(crowd, CALLS, axis=0), seeds * CROWD, start).reshape(CROWD, CALLS).mean(axis=1)
        curve.append((float(kept), float(rewards.mean())))
        took = time.process_time() - began
        print(f"{generation:2}  held out {kept:6.3f}  crowd {rewards.mean():6.3f}  {took:5.1f} s of CPU", flush=True)
        best = crowd[np.argsort(rewards)[-ELITE:]]
        if generation < generations:
            # Half of the way: a crowd this small is lucky at times.
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
    kept, crowd = np.array(curve).T
    axes.plot(crowd, color="0.6", linewidth=1, label="the crowd it is drawn from")
    axes.plot(kept, color="C0", linewidth=2, label="learned, on calls held out")
    for number, name in enumerate(name for name in rows if name not in ("learned", "fixed")):
        reward = np.mean([s.reward for s in rows[name]])
        axes.axhline(reward, color=f"C{number + 1}", linestyle="--", linewidth=1, label=name)
    axes.set(xlabel="generation", ylabel="reward per step", xlim=(0, len(kept) - 1), ylim=(-0.5, 1))
    axes.legend(fontsize="small", loc="lower right")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generations", type=int, default=15)
    parser.add_argument("--figure", help="where to draw the learning curve")
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
