"""Trains PPO of Stable-Baselines3 on simulated calls, and compares it with the registered controllers.

pip install 'paceline[gym]' stable-baselines3
python train_sb3.py --steps 200000
"""

import argparse
import time

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecNormalize

from paceline import gym

HELD_OUT = range(1_000_000, 1_000_020)
"""Seeds of calls that are not used for training, as in train.py."""

BASELINES = ("nada", "scream", "gcc-tfb", "gcc-2016", "fixed")


def train(steps: int, environments: int, seed: int) -> tuple[PPO, VecNormalize]:
    """Trains a policy. Observations are normalised; rewards are already between about -4 and 1."""
    set_random_seed(seed)
    envs = VecNormalize(make_vec_env(gym.Env, n_envs=environments, seed=seed), norm_reward=False)
    model = PPO(
        "MlpPolicy",
        envs,
        n_steps=512,
        batch_size=512,
        n_epochs=5,
        learning_rate=5e-4,
        # The effect of a rate is seen within some seconds: 0.95 per step of 100 ms looks 2 s ahead.
        gamma=0.95,
        ent_coef=0.0,
        # A small deviation of the first actions, in units of the action.
        policy_kwargs={"log_std_init": -1.0},
        device="cpu",
        seed=seed,
    )
    model.learn(steps)
    return model, envs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--environments", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", help="file for the policy")
    arguments = parser.parse_args()
    # The network is small: more threads only wait for each other.
    torch.set_num_threads(1)
    started = time.process_time()
    model, envs = train(arguments.steps, arguments.environments, arguments.seed)
    print(f"{arguments.steps} steps in {time.process_time() - started:.0f} s of CPU")
    envs.training = False

    def policy(observations: np.ndarray) -> np.ndarray:
        actions, _ = model.predict(envs.normalize_obs(observations), deterministic=True)
        return actions

    rows = {"PPO": gym.evaluate(policy, seeds=HELD_OUT)}
    rows |= {name: gym.evaluate(name, seeds=HELD_OUT) for name in BASELINES}
    print(f"{'':10} {'reward':>7} {'± 95 %':>7} {'used':>6} {'delay':>8} {'loss':>7}")
    for name, scores in rows.items():
        reward = np.array([s.reward for s in scores])
        error = 1.96 * reward.std(ddof=1) / np.sqrt(len(reward))
        used, delay, loss = (np.mean([getattr(s, key) for s in scores]) for key in ("used", "delay_s", "loss"))
        print(f"{name:10} {reward.mean():7.3f} {error:7.3f} {used:6.1%} {delay * 1e3:5.0f} ms {loss:7.2%}")
    if arguments.save:
        model.save(arguments.save)


if __name__ == "__main__":
    main()
