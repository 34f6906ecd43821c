"""Sweeps: every engine gives the same rows."""

import importlib
import os
import signal
import sys
import time

import pytest

import paceline

SEEDS = int(os.environ.get("PACELINE_SWEEP_SEEDS", "2"))
"""Seeds per point: 100 seeds are a thousand jobs."""

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
    result = paceline.sweep(GRID, out=out, jobs=2)
    return result, (out / "rows.parquet").read_bytes(), (out / "points.parquet").read_bytes()


def same(local, out):
    return [(out / name).read_bytes() for name in ("rows.parquet", "points.parquet")] == [*local[1:]]


def test_results_do_not_depend_on_threads(local, tmp_path):
    assert local[0]["id"] == "test/grid"
    paceline.sweep(GRID, out=tmp_path / "one", jobs=1)
    assert same(local, tmp_path / "one")
    memory = paceline.sweep(GRID)
    assert len(memory["points"]) == 10 and memory["points"][0]["values"][0]["n"] >= 2
    other = paceline.sweep(GRID, out=tmp_path / "other", set={"axis.1.values": [0.0002, 0.001]})
    assert other["id"] == "test/grid" and not same(local, tmp_path / "other")


def test_a_folder_is_resumed_only_on_request(local, tmp_path):
    paceline.sweep(GRID, out=tmp_path / "out")
    with pytest.raises(paceline.SweepError, match="holds .* of the .* jobs"):
        paceline.sweep(GRID, out=tmp_path / "out")
    paceline.sweep(GRID, out=tmp_path / "out", resume=True)
    assert same(local, tmp_path / "out")
    with pytest.raises(paceline.SweepError, match="cannot be resumed"):
        paceline.sweep(GRID, out=tmp_path / "out", resume=True, seeds=7)


def test_rejects_invalid_arguments(tmp_path, monkeypatch):
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="no engine 'slurm'; known: threads, dask, ray"):
        paceline.sweep(GRID, out=out, engine="slurm")
    with pytest.raises(ValueError, match="needs a folder"):
        paceline.sweep(GRID, engine="dask")
    with pytest.raises(ValueError, match="`client` is for Dask"):
        paceline.sweep(GRID, out=out, engine="ray", client=object())
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"paceline\[ray\]"):
        paceline.sweep(GRID, out=out, engine="ray")
    for seeds in (0, 10_001):
        with pytest.raises(ValueError, match="seeds must be 1 to 10000"):
            paceline.sweep(GRID, out=out, seeds=seeds)
    with pytest.raises(paceline.ScenarioError):
        paceline.sweep("mmsys16/fig88", out=out)
    assert not out.exists(), "nothing was written"


def steady(bps, fails_at=float("inf")):
    """Registers a controller with a constant rate in its code."""

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


def test_rejects_a_folder_made_with_other_code(tmp_path):
    steady(300e3)
    paceline.sweep(STEADY, out=tmp_path / "out")
    before = (tmp_path / "out/rows.parquet").read_bytes()
    steady(400e3)
    with pytest.raises(paceline.SweepError, match="job 2, run again"):
        paceline.sweep(STEADY, out=tmp_path / "out", resume=True)
    steady(300e3)
    paceline.sweep(STEADY, out=tmp_path / "out", resume=True)
    assert (tmp_path / "out/rows.parquet").read_bytes() == before


def test_a_failed_sweep_can_be_resumed_while_its_traceback_exists(tmp_path):
    steady(300e3, fails_at=1.0)
    with pytest.raises(KeyError, match="on purpose") as failed:
        paceline.sweep(STEADY, out=tmp_path / "out", jobs=1)
    steady(300e3)
    with pytest.raises(paceline.SweepError, match="resume=True continues") as raised:
        paceline.sweep(STEADY, out=tmp_path / "out")
    assert "--" not in str(raised.value)
    swept = paceline.sweep(STEADY, out=tmp_path / "out", resume=True)
    assert failed.traceback and swept["id"] == "test/steady"


def test_an_exception_in_a_constructor_does_not_affect_later_calls():
    class Broken(paceline.SendHalf):
        def __init__(self, setup):
            raise KeyError("in the constructor")

    paceline.register("test-steady", send=Broken)
    with pytest.raises(KeyError, match="in the constructor"):
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


def test_refine_repeats_the_best_points_on_more_seeds(tmp_path):
    memory = paceline.sweep(paceline.SweepFile(REFINED))
    assert len(memory["points"]) == 4 and memory["refined"]["id"] == "test/refined/best"
    (best,) = memory["refined"]["points"]
    assert best["at"] == memory["best"]["at"] and best["values"][0]["n"] == 3
    stored = paceline.sweep(paceline.SweepFile(REFINED), out=tmp_path / "out", seeds=2)
    assert stored["repeats"] == 2 and stored["refined"]["repeats"] == 3
    assert [len(stored["points"]), len(stored.refined.points)] == [4, 1]
    assert (tmp_path / "out/best/rows.parquet").is_file()
    assert "refined" not in paceline.sweep(GRID, seeds=1)


def test_rejects_workers_of_another_version_and_rows_beyond_the_end(tmp_path):
    sweeps = importlib.import_module("paceline.sweeps")
    request = sweeps._Request("sweep.toml", GRID.text, [], None, None)
    job = sweeps.Job(request, 1, ())
    rows = job.rows(0, 1)
    job.version = "0.0.1"
    with pytest.raises(paceline.PacelineError, match="needs 0.0.1: install the same"):
        job.rows(0, 1)
    folder = sweeps._paceline.Sweep(request, 1, [], "sim").open(tmp_path / "out", False)
    assert folder.batches(100) == [(0, 10)]
    with pytest.raises(paceline.SweepError, match="has 10 jobs"):
        folder.write(rows.replace('"job":0', '"job":10'))
    folder.write(rows.replace('"job":0', '"job":9'))
    assert folder.done == 1 and folder.batches(100) == [(0, 9)]
    folder.close()
    with pytest.raises(ValueError, match="closed"):
        folder.write(rows)


def test_dask_gives_the_same_rows_although_a_worker_is_killed(local, tmp_path):
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
        assert pids[0] not in client.run(os.getpid).values(), "the worker was killed"
        refined = paceline.sweep(paceline.SweepFile(REFINED), out=tmp_path / "refined", engine="dask", client=client)
    assert refined["refined"]["best"]["at"] == refined["best"]["at"]
    assert same(local, out)


def _kill_soon(pid):
    time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)


def test_ray_gives_the_same_rows(local, tmp_path):
    ray = pytest.importorskip("ray", reason="the engine `ray` is not installed")
    ray.init(num_cpus=2, include_dashboard=False)
    try:
        paceline.sweep(GRID, out=tmp_path / "ray", engine="ray", batch=SEEDS // 2)
    finally:
        ray.shutdown()
    assert same(local, tmp_path / "ray")
