"""Adversarial search: schedules, their simplification, and a search that continues."""

import json

import pytest

from paceline import ArgumentError, suite
from paceline.schedules import BOUNDS, Schedule, Step, Tcp
from paceline.search import KEPT, _schedule, search

pytest.importorskip("optuna", reason="optuna is not installed")

STEPS = (Step(8, 2000, 20, 0.0), Step(9, 512, 70, 1.0))
SCHEDULE = Schedule(STEPS, 300, 5, 2500, Tcp(3, 4))


def test_a_miss_is_zero_within_the_bound_and_at_most_one():
    use, queue, freeze = BOUNDS
    assert [use.miss(value) for value in (0.7, 0.5, 0.25, 0.0)] == [0, 0, 0.5, 1]
    assert [queue.miss(value) for value in (0.0, 100.0, 200.0, 1e9)] == [0, 0, 0.5, pytest.approx(1)]
    assert [freeze.miss(value) for value in (0.05, 0.1)] == [0, pytest.approx(0.5)]


def test_the_bounds_apply_after_the_start_and_after_tcp():
    assert SCHEDULE.window_s == (12, 17)
    assert SCHEDULE.lengthened().window_s == (12, 22) and SCHEDULE.lengthened().steps[1].seconds == 14
    alone = Schedule(STEPS, 300, 0, 2500, None)
    assert alone.window_s == (5, 17) and alone.lengthened() == alone


def test_each_simpler_schedule_is_simpler_and_there_is_an_end():
    schedule, rounds = SCHEDULE.lengthened(), 0
    while candidates := list(schedule.simpler()):
        assert all(candidate.complexity < schedule.complexity for candidate in candidates)
        assert all(candidate.window_s[1] - candidate.window_s[0] >= 10 for candidate in candidates)
        schedule, rounds = candidates[0], rounds + 1
    assert 3 <= rounds <= 20
    assert schedule.steps == (Step(15, schedule.steps[0].capacity_kbps, schedule.steps[0].delay_ms, 0.0),)
    assert schedule.tcp is None and schedule.jitter_ms == 0


def test_a_schedule_is_a_scenario_with_steps(tmp_path):
    text = SCHEDULE.lengthened().scenario("own/path", "A path", "googcc", "two\nlines")
    assert text.startswith('# two\n# lines\nid = "own/path"')
    assert 'capacity = [["0 s", "2000 kbps"], ["8 s", "512 kbps"]]' in text
    assert 'loss = [["0 s", "0 %"], ["8 s", "1 %"]]' in text and 'stop = "7 s"' in text
    steps = (Step(8, 2000, 20, 0.0), Step(9, 512, 20, 0.0))
    text = Schedule(steps, 300, 0, 2500, None).scenario("own/path", "A path", "googcc", "")
    (tmp_path / "path.toml").write_text(text, encoding="utf-8")
    manifest = tmp_path / "own.suite.toml"
    manifest.write_text('id = "own"\ntitle = "Own"\nrepeats = 1\nscenarios = ["path"]\n', encoding="utf-8")
    report = suite(str(manifest), controllers=["fixed", "causal"])
    fixed, oracle = report["suites"][0]["rows"]
    passes = [[bound["pass"] for bound in row["results"][0]["bounds"]] for row in (fixed, oracle)]
    # 2.5 Mbit/s into 512 kbit/s: all of the link, and a full queue. The oracle keeps every bound.
    assert passes == [[True, False, False], [True, True, True]]


def test_finds_that_a_constant_rate_fills_queues_and_continues(tmp_path):
    lines = []
    found = search("fixed", folder=tmp_path, bound="queue", trials=9, seed=3, log=lines.append)
    assert found.schedule is not None and found.trials == 9
    assert found.measured > 100 > found.oracle and found.miss > 0.1
    text = (tmp_path / f"{found.name}.toml").read_text(encoding="utf-8")
    assert "fixed has a queue_p95_ms of" in text and 'id = "adversarial/fixed-queue-3"' in text
    journal = next(tmp_path.glob("*.journal"))
    stored = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    asked = [line for line in stored if line.get("user_attr") and "schedule" in line["user_attr"]]
    assert _schedule(asked[0]["user_attr"]["schedule"]).seconds >= 15
    # The same call makes no further trial, and one with more continues.
    again = search("fixed", folder=tmp_path, bound="queue", trials=9, seed=3)
    assert again == found
    more = []
    assert search("fixed", folder=tmp_path, bound="queue", trials=10, seed=3, log=more.append).trials == 10
    assert "10 of 10 schedules" in more[0]
    assert 0 < KEPT < 1
    # A search that continues draws other schedules.
    stored = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    drawn = [str(line["user_attr"]["schedule"]) for line in stored if "schedule" in (line.get("user_attr") or {})]
    assert len(drawn) == len(set(drawn)) == 10


def test_wrong_arguments_have_an_error():
    with pytest.raises(ArgumentError, match="the bounds are use, queue, freeze"):
        search("fixed", folder=".", bound="speed")
    with pytest.raises(ArgumentError, match="at least one trial"):
        search("fixed", folder=".", trials=0)
