"""The gym: the checks of gymnasium, seeds, threads, baselines, and properties of the reward."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import paceline

gymnasium = pytest.importorskip("gymnasium")
gym = pytest.importorskip("paceline.gym")

QUEUING = [f.name for f in gym.FEATURES].index("queuing")
RTT = [f.name for f in gym.FEATURES].index("rtt")


def test_passes_the_checks_of_gymnasium():
    from gymnasium.utils.env_checker import check_env

    env = gymnasium.make("paceline/Call-v0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Rates and times have no upper bound.
        warnings.filterwarnings("ignore", message=".*Box observation space maximum.*")
        check_env(env.unwrapped, skip_render_check=True)
    assert env.observation_space.shape == (4, len(gym.FEATURES))


def test_an_episode_ends_with_its_run():
    env = gym.Env(gym.Task("gym/call"))
    env.reset(seed=3)
    steps, over, rewards = 0, False, []
    while not over:
        observation, reward, terminated, over, info = env.step(env.action(500e3).reshape(1))
        assert not terminated and env.observation_space.contains(observation)
        rewards.append(reward)
        steps += 1
    assert steps == 300 and info["time_s"] == pytest.approx(30.0) and info["seed"] == 3
    assert 0.2 < np.mean(rewards) < 0.9
    with pytest.raises(RuntimeError, match="reset"):
        env.step(np.zeros(1, dtype=np.float32))


def test_actions_and_rates_convert_both_ways():
    env = gym.Env()
    low, high = env.rate_bps(-1.0), env.rate_bps(1.0)
    assert low < 100e3 and 4e6 < high < 4.3e6
    for rate in (100e3, 1e6, 3e6):
        assert env.rate_bps(env.action(rate)) == pytest.approx(rate, rel=1e-5)


def run_episode(envs, seed, steps=40):
    envs.action_space.seed(1)
    observations, infos = envs.reset(seed=seed)
    results = [(observations, infos["seed"])]
    for _ in range(steps):
        observations, rewards, _, _, infos = envs.step(envs.action_space.sample())
        results.append((observations, rewards, infos["delay_s"]))
    return results


def same(one, other):
    return all(
        np.array_equal(a, b) for left, right in zip(one, other, strict=True) for a, b in zip(left, right, strict=True)
    )


def test_results_depend_on_seeds_and_not_on_threads():
    alone = run_episode(gym.VectorEnv(6, threads=1), 5)
    assert same(alone, run_episode(gym.VectorEnv(6, threads=3), 5))
    assert not same(alone, run_episode(gym.VectorEnv(6, threads=3), 6))
    assert list(alone[0][1]) == [5, 6, 7, 8, 9, 10]


def test_an_episode_is_the_same_in_env_and_vector_env():
    envs, env = gymnasium.make_vec("paceline/Call-v0", 3), gym.Env()
    many, _ = envs.reset(seed=[4, 9, 2])
    one, _ = env.reset(seed=9)
    assert np.array_equal(many[1], one)
    for action in np.linspace(-1.0, 1.0, 20, dtype=np.float32):
        many, rewards, _, _, _ = envs.step(np.full((3, 1), action))
        one, reward, *_ = env.step(np.array([action]))
        assert np.array_equal(many[1], one) and rewards[1] == reward


def test_later_steps_do_not_change_earlier_observations():
    envs = gym.VectorEnv(2)
    first, _ = envs.reset(seed=1)
    kept = first.copy()
    for _ in range(5):
        second, *_ = envs.step(envs.action_space.sample())
    assert np.array_equal(first, kept) and not np.array_equal(first, second)


def test_a_baseline_is_the_same_run_as_paceline_run():
    call = paceline.Scenario("gym/call").edit({"path.forward.loss": "5 %"})
    seeds = range(1, 13)
    for controller in ("gcc-tfb", "nada"):
        scores = gym.evaluate(controller, gym.Task(call, step_s=0.1), seeds=seeds)
        runs = [paceline.run(call, controller=controller, seed=seed)["flows"][0]["loss_ratio"] for seed in seeds]
        # The score counts packets of whole steps, the run counts bytes: in one run of few packets of different sizes they
        # differ by up to 0.01, in the mean of twelve by less than half of it.
        difference = np.mean([score.loss for score in scores]) - np.mean(runs)
        assert abs(difference) < 0.005
        for score in scores:
            assert 0.03 < score.loss < 0.08
            assert score.steps == 300 and -0.1 < score.reward < score.used <= 1.0


def test_controllers_are_baselines_on_the_same_seeds():
    seeds = range(1, 4)
    for controller in ("gcc-2016", "scream", "fixed", None):
        scores = gym.evaluate(controller, seeds=seeds)
        assert [s.seed for s in scores] == list(seeds)
        assert scores == gym.evaluate(controller, seeds=seeds, threads=1)
    with pytest.raises(ValueError, match="gcc-2016"):
        gym.evaluate("gcc-2061")


def test_a_controller_in_python_is_a_baseline():
    class Half(paceline.SendHalf):
        def decision(self):
            return paceline.Decision(400e3)

    class Broken(Half):
        def handle_feedback(self, now_s, feedback):
            raise KeyError("broken on purpose")

    steady = paceline.Controller("steady", send=Half, feedback="transport-wide")
    (score,) = gym.evaluate(steady, gym.Task("gym/call"), seeds=[1])
    assert 0.2 < score.used < 0.6 and score.delay_s < 0.1
    broken = paceline.Controller("broken", send=Broken, feedback="transport-wide")
    with pytest.raises(KeyError, match="on purpose"):
        gym.evaluate(broken, gym.Task("gym/call"), seeds=[1])


def constant(bps):
    env = gym.Env(gym.Task("gym/call"))
    return lambda observations: np.full((len(observations), 1), env.action(bps))


def test_a_policy_is_scored_like_a_controller():
    task, seeds = gym.Task("gym/call"), [1, 2, 3]
    scores = gym.evaluate(constant(500e3), task, seeds=seeds)
    assert [s.seed for s in scores] == seeds and {s.steps for s in scores} == {300}
    assert all(0.3 < s.reward < 0.7 and s.loss < 0.05 for s in scores)


def test_a_policy_as_a_controller_makes_the_same_episodes(tmp_path):
    env = gym.Env()

    def policy(observations):
        newest = observations[:, -1]
        queuing, received, target = newest[:, 3], newest[:, 2], newest[:, 0]
        rate = np.where(queuing > 0.05, 0.8 * received, 1.05 * np.maximum(target, 0.3))
        # The oldest step also counts, so that a wrong history changes the result.
        return env.action(1e6 * np.maximum(rate, 0.1) + 1e4 * observations[:, 0, 0])

    controller = gym.as_controller(policy, "mine")
    scores = gym.evaluate(policy, seeds=4)
    assert gym.evaluate(controller, seeds=[1, 2, 3, 4]) == scores
    assert gym.evaluate(gym.as_controller(policy, history=3), seeds=4) != scores
    made = paceline.compare("mmsys16/table1", [controller, "gcc-2016"], seeds=1, set={"duration": "10s"})
    assert 0.2 < made.summary["mine"]["utilization"]["mean"] <= 1.0
    assert paceline.suite("l4s", controllers=[controller], seeds=1).controllers == ["mine"]


def test_overload_lowers_the_reward():
    task = gym.Task("gym/call", ranges={"path.forward.capacity": ("{} kbps", 500, 1500)})
    rewards = [
        np.mean([s.reward for s in gym.evaluate(constant(b), task, seeds=range(6))]) for b in (450e3, 1.6e6, 4e6)
    ]
    assert rewards[0] > 0.3 and rewards[0] > rewards[1] + 0.3 > rewards[2] + 0.3, rewards


def test_rtt_is_never_below_propagation():
    envs = gym.VectorEnv(20)
    envs.reset(seed=1)
    envs.action_space.seed(2)
    count = 0
    for _ in range(100):
        observations, _, _, _, infos = envs.step(envs.action_space.sample())
        rtt, queuing = observations[:, -1, RTT], observations[:, -1, QUEUING]
        known = rtt > 0.0
        assert (rtt[known] > infos["propagation_s"][known] - 1e-6).all() and (queuing >= 0.0).all()
        count += known.sum()
    assert count > 1500


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"scenario": "gym/cal"}, paceline.ScenarioError, "gym/call"),
        ({"flow": "vidoe"}, ValueError, "video"),
        ({"step_s": 60.0}, ValueError, "step"),
        ({"ranges": {"path.forward.capacitee": ("{} kbps", 1, 2)}}, paceline.ScenarioError, "capacity"),
        ({"ranges": {"path.rtt": ("ms", 1, 2)}}, ValueError, "{}"),
        ({"scenario": []}, ValueError, "scenario"),
    ],
)
def test_rejects_invalid_tasks(arguments, error, message):
    with pytest.raises(error, match=message):
        gym.Env(gym.Task(**arguments))


def test_rejects_invalid_actions():
    envs = gym.VectorEnv(2)
    envs.reset(seed=1)
    with pytest.raises(ValueError, match="action 1"):
        envs.step(np.array([[0.0], [np.nan]]))
    with pytest.raises(ValueError, match="2 episodes"):
        envs.step(np.zeros((3, 1)))


def test_environments_can_be_pickled():
    import pickle

    task = gym.Task("gym/call", ranges={"path.rtt": ("{} ms", 20, 200)})
    for env in (gym.Env(task, history=3), gym.VectorEnv(2, task, history=3, threads=1)):
        copy = pickle.loads(pickle.dumps(env))
        assert copy.task == task and copy.observation_space == env.observation_space
        first, second = env.reset(seed=5), copy.reset(seed=5)
        np.testing.assert_array_equal(first[0], second[0])
        action = env.action_space.sample()
        np.testing.assert_array_equal(env.step(action)[0], copy.step(action)[0])
    with pytest.raises(paceline.ArgumentError, match="num_envs must be 1 or more"):
        gym.VectorEnv(0)


def test_the_seed_of_an_episode_is_a_whole_number():
    _, info = gym.Env().reset(seed=7)
    assert info["seed"] == 7 and isinstance(info["seed"], int)
    _, infos = gym.VectorEnv(2).reset(seed=7)
    assert infos["seed"].tolist() == [7, 8] and infos["seed"].dtype == np.int64
