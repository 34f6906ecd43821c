"""Sweeps: the same rows whoever makes them."""

import os
import signal
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


def test_complaints():
    with pytest.raises(ValueError, match="no engine 'slurm'"):
        paceline.sweep(GRID, engine="slurm")
    with pytest.raises(ValueError, match="needs a folder"):
        paceline.sweep(GRID, engine="dask")
    with pytest.raises(paceline.ScenarioError):
        paceline.sweep("mmsys16/fig88")


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
