"""Sweeps: the same rows whoever makes them."""

import importlib
import os
import signal
import sys
import time

import pytest

import paceline

SEEDS = int(os.environ.get("PACELINE_SWEEP_SEEDS", "2"))
"""Seeds per point: 100 make a thousand jobs."""

GRID = paceline.SweepFile(
    {
        "id": "test/grid",
        "title": "Two gains on a short call",
        "repeats": SEEDS,
        "axis": [
            {"key": "flow.video.config.k_u", "log": {"from": 0.001, "to": 0.1, "steps": 5}},
            {"key": "flow.video.config.k_d", "values": [0.0001, 0.001]},
        ],
        "measure": [
            {"name": "used", "scenario": "mmsys16/table1", "metric": "utilization", "set": {"duration": "10s"}},
            {"name": "waited", "scenario": "mmsys16/table1", "metric": "queue_p95_ms", "set": {"duration": "10s"}},
        ],
    }
)


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep") / "threads"
    result = paceline.sweep(GRID, out=out, threads=2)
    return result, (out / "rows.parquet").read_bytes(), (out / "points.parquet").read_bytes()


def same(local, out):
    return [(out / name).read_bytes() for name in ("rows.parquet", "points.parquet")] == [*local[1:]]


def test_threads_do_not_matter(local, tmp_path):
    assert local[0]["id"] == "test/grid"
    paceline.sweep(GRID, out=tmp_path / "one", threads=1)
    assert same(local, tmp_path / "one")
    memory = paceline.sweep(GRID)
    assert len(memory["points"]) == 10 and memory["points"][0]["values"][0]["n"] >= 2
    other = paceline.sweep(GRID, out=tmp_path / "other", set={"axis.1.values": [0.0002, 0.001]})
    assert other["id"] == "test/grid" and not same(local, tmp_path / "other")


def test_a_folder_is_not_gone_on_with_unasked(local, tmp_path):
    paceline.sweep(GRID, out=tmp_path / "out")
    with pytest.raises(paceline.SweepError, match="holds .* of the .* jobs"):
        paceline.sweep(GRID, out=tmp_path / "out")
    paceline.sweep(GRID, out=tmp_path / "out", resume=True)
    assert same(local, tmp_path / "out")
    with pytest.raises(paceline.SweepError, match="cannot be gone on with"):
        paceline.sweep(GRID, out=tmp_path / "out", resume=True, seeds=7)


def test_complaints(tmp_path, monkeypatch):
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="no engine 'slurm'; there are: threads, dask, ray"):
        paceline.sweep(GRID, out=out, engine="slurm")
    with pytest.raises(ValueError, match="needs a folder"):
        paceline.sweep(GRID, engine="dask")
    with pytest.raises(ValueError, match="`client` is Dask's"):
        paceline.sweep(GRID, out=out, engine="ray", client=object())
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"paceline\[ray\]"):
        paceline.sweep(GRID, out=out, engine="ray")
    for seeds in (0, 10_001):
        with pytest.raises(ValueError, match="seeds are 1 to 10000"):
            paceline.sweep(GRID, out=out, seeds=seeds)
    with pytest.raises(paceline.ScenarioError):
        paceline.sweep("mmsys16/fig88", out=out)
    assert not out.exists(), "nothing was begun"


def steady(bps, fails_at=float("inf")):
    """A controller in Python whose rate is its code."""

    class Steady(paceline.SendHalf):
        def handle_feedback(self, now_s, feedback):
            if now_s > fails_at:
                raise KeyError("on purpose")

        def decision(self):
            return paceline.Decision(bps)

    return paceline.register("test-steady", send=Steady)


STEADY = paceline.SweepFile(
    {
        "id": "test/steady",
        "title": "A controller in Python",
        "controllers": ["fixed", "test-steady"],
        "axis": [{"key": "path.rtt", "values": ["20 ms", "40 ms"]}],
        "measure": [{"name": "used", "scenario": "mmsys16/table1", "metric": "utilization", "set": {"duration": "2s"}}],
    }
)


def test_other_code_does_not_go_on(tmp_path):
    steady(300e3)
    paceline.sweep(STEADY, out=tmp_path / "out")
    before = (tmp_path / "out/rows.parquet").read_bytes()
    steady(400e3)
    with pytest.raises(paceline.SweepError, match="job 2, run again"):
        paceline.sweep(STEADY, out=tmp_path / "out", resume=True)
    steady(300e3)
    paceline.sweep(STEADY, out=tmp_path / "out", resume=True)
    assert (tmp_path / "out/rows.parquet").read_bytes() == before


def test_a_sweep_that_broke_goes_on_while_its_traceback_is_kept(tmp_path):
    steady(300e3, fails_at=1.0)
    with pytest.raises(KeyError, match="on purpose") as kept:
        paceline.sweep(STEADY, out=tmp_path / "out", threads=1)
    steady(300e3)
    with pytest.raises(paceline.SweepError, match="resume=True goes on") as told:
        paceline.sweep(STEADY, out=tmp_path / "out")
    assert "--" not in str(told.value)
    swept = paceline.sweep(STEADY, out=tmp_path / "out", resume=True)
    assert kept.traceback and swept["id"] == "test/steady"


def test_a_half_that_cannot_be_made_is_told_of_once():
    class Stillborn(paceline.SendHalf):
        def __init__(self, setup):
            raise KeyError("at birth")

    paceline.register("test-steady", send=Stillborn)
    with pytest.raises(KeyError, match="at birth"):
        paceline.sweep(STEADY)
    assert paceline.Scenario("mmsys16/fig9").cases == ["threshold=static", "threshold=adaptive"]
    steady(300e3)


REFINED = {
    "id": "test/refined",
    "title": "The better of two controllers",
    "controllers": ["fixed", "gcc-2016"],
    "axis": [{"key": "path.rtt", "values": ["20 ms", "40 ms"]}],
    "measure": [{"name": "used", "scenario": "mmsys16/table1", "metric": "utilization", "set": {"duration": "2s"}}],
    "sum": {"normalised": True},
    "refine": {"best": 1, "repeats": 3},
}


def test_the_best_points_follow_on_more_seeds(tmp_path):
    memory = paceline.sweep(paceline.SweepFile(REFINED))
    assert len(memory["points"]) == 4 and memory["refined"]["id"] == "test/refined/best"
    (best,) = memory["refined"]["points"]
    assert best["at"] == memory["best"]["at"] and best["values"][0]["n"] == 3
    stored = paceline.sweep(paceline.SweepFile(REFINED), out=tmp_path / "out", seeds=2)
    assert stored["repeats"] == 2 and stored["refined"]["repeats"] == 3 and stored["refined"]["points"] == []
    assert (tmp_path / "out/best/rows.parquet").is_file()
    assert "refined" not in paceline.sweep(GRID, seeds=1)


def test_a_worker_of_another_version_and_rows_beyond_the_end_are_refused(tmp_path):
    made = importlib.import_module("paceline.sweeps")
    ask = made.Ask("sweep.toml", GRID.text, [], None, None)
    job = made.Job(ask, 1, ())
    rows = job.rows(0, 1)
    job.version = "0.0.1"
    with pytest.raises(paceline.SweepError, match="is of 0.0.1: install the same"):
        job.rows(0, 1)
    folder = made._paceline.Sweep(ask, 1, []).open(tmp_path / "out", False)
    assert folder.batches(100) == [(0, 10)]
    with pytest.raises(paceline.SweepError, match="has 10 jobs"):
        folder.write(rows.replace('"job":0', '"job":10'))
    folder.write(rows.replace('"job":0', '"job":9'))
    assert folder.done == 1 and folder.batches(100) == [(0, 9)]
    folder.close()
    with pytest.raises(ValueError, match="closed"):
        folder.write(rows)


def test_dask_makes_the_same_though_a_worker_is_killed(local, tmp_path):
    distributed = pytest.importorskip("distributed", reason="the engine `dask` is not installed")
    out = tmp_path / "dask"
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        assert len(set(pids)) == 2
        client.submit(_kill_soon, pids[0], workers=[list(client.scheduler_info()["workers"])[1]], pure=False)
        paceline.sweep(GRID, out=out, engine="dask", client=client, batch=SEEDS // 2)
        assert pids[0] not in client.run(os.getpid).values(), "the worker was to be killed"
        refined = paceline.sweep(paceline.SweepFile(REFINED), out=tmp_path / "refined", engine="dask", client=client)
    assert refined["refined"]["best"]["at"] == refined["best"]["at"]
    assert same(local, out)


def _kill_soon(pid):
    time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)


def test_ray_makes_the_same(local, tmp_path):
    ray = pytest.importorskip("ray", reason="the engine `ray` is not installed")
    ray.init(num_cpus=2, include_dashboard=False)
    try:
        paceline.sweep(GRID, out=tmp_path / "ray", engine="ray", batch=SEEDS // 2)
    finally:
        ray.shutdown()
    assert same(local, tmp_path / "ray")
